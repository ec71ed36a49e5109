package cgo

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWeightCopyOfOddShapes(t *testing.T) {
	const f32, q4_1 = 0, 3
	require.Zero(t, WeightCopy(f32, []uint64{64, 64}, 0), "read as it is")
	require.Zero(t, WeightCopy(1<<20, []uint64{64, 64}, 0))
	require.Zero(t, WeightCopy(q4_1, []uint64{33, 64}, 0), "no whole blocks")
	require.Zero(t, WeightCopy(q4_1, []uint64{64, 0}, 0))
	require.Zero(t, WeightCopy(q4_1, []uint64{64, 64, 1, 1, 1}, 0))
	require.Zero(t, WeightCopy(q4_1, []uint64{64, 64, 2}, 3), "more experts than there are")
	if kernelsThere(t) {
		require.GreaterOrEqual(t, WeightCopy(q4_1, []uint64{64, 64}, 0), int64(64*64/32*20))
	}
}

func TestSetThreads(t *testing.T) {
	c := newContext(t, ContextParams{Threads: 2})
	require.Error(t, c.SetThreads(0, 1))
	require.Error(t, c.SetThreads(1, 3))
	require.NoError(t, c.SetThreads(1, 2))
	require.Equal(t, 1, c.Params().Threads)
	require.Contains(t, detok(t, complete(t, c, 0, chatPrompt(t, "What is the capital of France?"), 16, SamplerParams{})), "Paris")
}
