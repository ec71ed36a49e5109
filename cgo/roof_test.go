package cgo

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The bounds are those of any machine that can run a model, so that only a probe
// that was optimised away, or counts wrongly, fails.
func TestRoof(t *testing.T) {
	r, err := MeasureRoof(1)
	require.NoError(t, err)
	require.Greater(t, r.ReadBytes, 1e7)
	require.Less(t, r.ReadBytes, 1e12)
	require.Greater(t, r.FloatProducts, 1e7)
	require.Less(t, r.FloatProducts, 1e12)
	require.Less(t, r.Int8Products, 1e13)
	for _, threads := range []int{0, -1, 5000} {
		_, err := MeasureRoof(threads)
		require.ErrorIs(t, err, ErrArgument)
	}
}
