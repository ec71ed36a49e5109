package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func costsFor(batch int) *costs {
	l := Limits{Cells: 1 << 20, Seqs: 64, Batch: batch, Unified: true}
	return newCosts(Config{MaxRunning: 32}.withDefaults(l), l)
}

// machine is what a step costs: reading the weights, then each row, of which
// some are free while the step is bound by memory.
type machine struct {
	step, row time.Duration
	free      int
}

func (m machine) cost(rows int) time.Duration {
	return m.step + time.Duration(max(0, rows-m.free))*m.row
}

func TestChunkSettlesNearTheTarget(t *testing.T) {
	for name, m := range map[string]machine{
		"two cores": {29 * time.Millisecond, 11 * time.Millisecond, 0},
		"many":      {20 * time.Millisecond, time.Millisecond, 0},
		"gpu":       {8 * time.Millisecond, 40 * time.Microsecond, 64},
		"weak gpu":  {8 * time.Millisecond, 100 * time.Microsecond, 64},
	} {
		t.Run(name, func(t *testing.T) {
			for _, decode := range []int{1, 4, 32} {
				c := costsFor(8192)
				require.Zero(t, c.chunk(decode), "the first thing is to measure a plain step")
				c.observe(decode, 0, m.cost(decode))
				var longest time.Duration
				rows := 0
				for range 40 {
					rows = c.chunk(decode)
					took := m.cost(decode + rows)
					longest = max(longest, took)
					c.observe(decode, rows, took)
				}
				limit := time.Duration(c.factor * float64(m.cost(decode)))
				least := m.cost(decode + c.least)
				require.LessOrEqual(t, m.cost(decode+rows), max(limit, least))
				require.LessOrEqual(t, longest, max(limit, least)*7/5, "on the way")
				if limit > least {
					require.Greater(t, m.cost(decode+rows), limit/2, "no more timid than need be")
				}
			}
		})
	}
}

func TestChunkAloneKeepsToMaxStep(t *testing.T) {
	m := machine{29 * time.Millisecond, 11 * time.Millisecond, 0}
	c := costsFor(2048)
	require.Equal(t, 32, c.chunk(0), "small until the cost is known")
	for range 5 {
		n := c.chunk(0)
		c.observe(0, n, m.cost(n))
	}
	require.InDelta(t, time.Second, m.cost(c.chunk(0)), float64(400*time.Millisecond))

	fast := machine{8 * time.Millisecond, 40 * time.Microsecond, 0}
	c = costsFor(2048)
	c.observe(0, 64, fast.cost(64))
	require.Equal(t, 2048, c.chunk(0), "the whole batch where that is quick")
}

func TestShortPromptsSayLittle(t *testing.T) {
	m := machine{29 * time.Millisecond, 11 * time.Millisecond, 0}
	c := costsFor(2048)
	for range 5 {
		c.observe(0, 96, m.cost(96))
	}
	was := c.chunk(0)
	for range 20 {
		c.observe(0, 2, m.cost(2))
	}
	require.Greater(t, c.chunk(0), was*2/3)
}

func TestStepCostIsThatOfANearCount(t *testing.T) {
	c := costsFor(512)
	require.Zero(t, c.step(3))
	c.observe(2, 0, 20*time.Millisecond)
	c.observe(8, 0, 80*time.Millisecond)
	for rows, want := range map[int]float64{1: .02, 2: .02, 4: .02, 5: .08, 8: .08, 16: .08, 17: 0, 32: 0} {
		require.InDelta(t, want, c.step(rows), 1e-9, "%d rows", rows)
	}
}

func TestOneSlowStepDoesNotStopPrefill(t *testing.T) {
	m := machine{29 * time.Millisecond, 11 * time.Millisecond, 0}
	c := costsFor(512)
	c.observe(1, 0, m.cost(1))
	c.observe(1, 16, 20*time.Second)
	require.Equal(t, c.least, c.chunk(1))
	for range 30 {
		n := c.chunk(1)
		c.observe(1, n, m.cost(1+n))
	}
	require.Equal(t, 16, c.chunk(1))
}
