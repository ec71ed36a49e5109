package engine

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRowCosts(t *testing.T) {
	r := newRowCosts(40)
	require.Zero(t, r.step(3), "nothing known")
	cost := func(rows int) float64 { return 0.02 + 0.004*float64(rows) }
	for range 40 {
		for _, n := range []int{1, 5, 16} {
			r.observe(n, cost(n))
		}
	}
	for _, n := range []int{1, 2, 5, 9, 16} {
		require.InEpsilon(t, cost(n), r.step(n), 0.05, "%d rows", n)
	}
	require.InDelta(t, r.step(16)+4*r.step(1)/10, r.step(20), 1e-9)

	// The machine gets twice as slow: all counts do, seen again or not.
	for range 20 {
		r.observe(1, 2*cost(1))
	}
	require.InEpsilon(t, 2*cost(16), r.step(16), 0.05)

	// One step that is held up changes little.
	r.observe(5, 5)
	require.Less(t, r.step(5), 2*cost(5)*1.6)
	require.Less(t, r.step(1), 2*cost(1)*1.3)
}

// Where no step has a single row, the proportions come out all the same.
func TestRowCostsOfManyStreams(t *testing.T) {
	r := newRowCosts(40)
	for range 100 {
		r.observe(8, 0.08)
		r.observe(10, 0.09)
	}
	require.InEpsilon(t, 9.0/8, r.step(10)/r.step(8), 0.01)
	require.InEpsilon(t, 0.08, r.step(8), 0.02)
}
