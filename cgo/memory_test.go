package cgo

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

const end = math.MaxInt32

func modes(t *testing.T, f func(t *testing.T, unified bool)) {
	for name, unified := range map[string]bool{"unified": true, "streams": false} {
		t.Run(name, func(t *testing.T) { f(t, unified) })
	}
}

// next is the greedy continuation of a sequence whose last token is not yet
// decoded.
func next(t *testing.T, c *Context, seq, last int32, n int) []int32 {
	t.Helper()
	return generate(t, c, seq, last, n+1, newSampler0(t, SamplerParams{}))[1:]
}

func TestCopySharesAPrefix(t *testing.T) {
	modes(t, func(t *testing.T, unified bool) {
		c := newContext(t, ContextParams{Ctx: 1536, SeqMax: 3, Unified: unified})
		prompt := chatPrompt(t, "Count from one to ten.")
		last := prompt[len(prompt)-1]
		n := len(prompt) - 1
		prefill(t, c, 0, 0, prompt[:n], -1, nil)
		want := next(t, c, 0, last, 8)

		require.NoError(t, c.SeqCopy(0, 1, 0, n)) // 0 has gone on meanwhile
		require.Equal(t, n-1, c.SeqPosMax(1))
		require.Equal(t, want, next(t, c, 1, last, 8))

		require.NoError(t, c.SeqRemove(0, 0, end))
		require.Equal(t, -1, c.SeqPosMax(0))
		require.NoError(t, c.SeqRemove(1, n, end))
		require.Equal(t, n-1, c.SeqPosMax(1), "the copy outlives its source")
		require.Equal(t, want, next(t, c, 1, last, 8))

		require.NoError(t, c.SeqCopy(2, 0, 0, 10), "an empty source")
		require.Equal(t, -1, c.SeqPosMax(0))
		require.ErrorIs(t, c.SeqCopy(1, 1, 0, 10), ErrArgument)
		require.NoError(t, c.SeqCopy(1, 2, 0, 5))
		require.ErrorIs(t, c.SeqCopy(1, 2, 0, 10), ErrArgument, "target not empty")
	})
}

// A sequence can be put together from copies, one after the other, and from
// saved parts of another one.
func TestPartsMakeASequence(t *testing.T) {
	c := newContext(t, ContextParams{Ctx: 1536, SeqMax: 4, Unified: true})
	prompt := chatPrompt(t, "Count from one to ten.")
	last := prompt[len(prompt)-1]
	n := len(prompt) - 1
	prefill(t, c, 0, 0, prompt[:n], -1, nil)
	state := make([]byte, c.StateBound(n-10))
	require.NoError(t, c.SeqCopy(0, 1, 10, n))
	size, err := c.SeqStateTo(1, state)
	require.NoError(t, err)
	_, err = c.SeqStateTo(1, state[:size-1])
	require.Error(t, err, "a byte short")
	_, err = c.SeqStateTo(1, nil)
	require.ErrorIs(t, err, ErrArgument)
	require.NoError(t, c.SeqRemove(1, 0, end))
	want := next(t, c, 0, last, 8)

	require.NoError(t, c.SeqCopy(0, 2, 0, 10))
	require.NoError(t, c.SetSeqState(1, state[:size]))
	require.ErrorIs(t, c.SeqCopy(1, 2, 11, n), ErrArgument, "a gap")
	require.NoError(t, c.SeqCopy(1, 2, 10, n))
	require.NoError(t, c.SeqRemove(1, 0, end))
	require.Equal(t, want, next(t, c, 2, last, 8))
	require.Equal(t, c.StateKind(), newContext(t, ContextParams{Ctx: 512, SeqMax: 2, Unified: true}).StateKind(), "sizes do not matter")
	require.NotEqual(t, c.StateKind(), newContext(t, ContextParams{Ctx: 512, SeqMax: 2, Unified: true, KVType: "q8_0"}).StateKind())
}

func TestCopiesAreFreeWhereUnified(t *testing.T) {
	c := newContext(t, ContextParams{Ctx: 256, Batch: 256, SeqMax: 64, Unified: true})
	fill := make([]int32, 190)
	prefill(t, c, 0, 0, fill, -1, nil)
	for s := int32(1); s < 64; s++ {
		require.NoError(t, c.SeqCopy(0, s, 0, len(fill)))
	}
	b := c.Batch()
	b.N = 0
	for s := range int32(64) {
		b.Add(1000, int32(len(fill)), s, -1, nil)
	}
	require.NoError(t, c.Step(), "190 shared cells + 64 own")
}

func TestMemoryArguments(t *testing.T) {
	c := newContext(t, ContextParams{SeqMax: 2, Ctx: 512})
	for _, err := range []error{
		c.SeqCopy(-1, 0, 0, 1), c.SeqCopy(0, 2, 0, 1), c.SeqCopy(0, 1, 3, 1), c.SeqCopy(0, 1, -1, 1),
		c.SeqRemove(2, 0, 1), c.SeqRemove(-1, 0, 1), c.SeqRemove(0, -1, 1), c.SeqRemove(0, 5, 1), c.SeqRemove(0, 0, 1<<40),
		c.SeqShift(2, 0, 1, 1), c.SeqShift(0, 0, 1, -1), c.SeqShift(0, 0, end, end), c.SeqShift(0, 0, 1, 1<<40),
		c.SetSeqState(2, []byte("x")),
	} {
		require.ErrorIs(t, err, ErrArgument)
	}
	_, err := c.SeqState(2)
	require.ErrorIs(t, err, ErrArgument)
	require.Equal(t, -1, c.SeqPosMax(99))
	require.Equal(t, -1, c.SeqPosMin(-1))
	require.NoError(t, c.SeqRemove(1, 0, end), "removing nothing is fine")
	require.True(t, c.Partial())
	require.True(t, c.CanShift())
}

// Dropping the middle and shifting the tail gives what the shorter text gives:
// the tail's keys were made with another past, so tokens may differ in the long
// run, but not the positions, and the first ones only rarely.
func TestShift(t *testing.T) {
	modes(t, func(t *testing.T, unified bool) {
		c := newContext(t, ContextParams{Ctx: 1024, SeqMax: 2, Unified: unified})
		text := chatPrompt(t, "Repeat: one two three four five six seven eight nine ten.")
		n := len(text) - 1
		prefill(t, c, 0, 0, text[:n], -1, nil)
		require.NoError(t, c.SeqRemove(0, 4, 8))
		require.NoError(t, c.SeqShift(0, 8, end-8, -4))
		require.Equal(t, n-5, c.SeqPosMax(0))
		require.Equal(t, 0, c.SeqPosMin(0))
		require.Len(t, next(t, c, 0, text[n], 4), 4)

		// There and back is the identity, up to rounding of the rotation.
		prefill(t, c, 1, 0, text[:n], -1, nil)
		require.NoError(t, c.SeqShift(1, 0, 1000, 7))
		require.Equal(t, n+6, c.SeqPosMax(1))
		require.NoError(t, c.SeqShift(1, 7, 1000, -7))
		got := traceOf(t, c, 1, text[n:], 6)
		require.NoError(t, c.SeqRemove(1, 0, end))
		prefill(t, c, 1, 0, text[:n], -1, nil)
		requireSame(t, traceOf(t, c, 1, text[n:], 6), got)
	})
}

func TestShiftOfSharedCells(t *testing.T) {
	c := newContext(t, ContextParams{Ctx: 512, SeqMax: 3, Unified: true})
	prefill(t, c, 0, 0, chatPrompt(t, "Hi"), -1, nil)
	require.NoError(t, c.SeqCopy(0, 1, 0, 5))
	require.NoError(t, c.SeqCopy(1, 2, 0, 3))
	require.ErrorContains(t, c.SeqShift(0, 1, 5, 1), "shares cells with 1")
	require.ErrorIs(t, c.SeqShift(2, 1, 5, 1), ErrUnsupported)
	require.NoError(t, c.SeqRemove(1, 0, end))
	require.ErrorContains(t, c.SeqShift(0, 1, 5, 1), "shares cells with 2")
	require.NoError(t, c.SeqRemove(0, 0, end))
	require.NoError(t, c.SeqShift(2, 0, 3, 1))
}

func TestStateRoundTrip(t *testing.T) {
	modes(t, func(t *testing.T, unified bool) {
		for _, kv := range []string{"f16", "q8_0"} {
			p := ContextParams{Ctx: 1024, SeqMax: 2, Unified: unified, KVType: kv}
			c := newContext(t, p)
			prompt := chatPrompt(t, "Name three colours.")
			n := len(prompt) - 1
			prefill(t, c, 0, 0, prompt[:n], -1, nil)
			state, err := c.SeqState(0)
			require.NoError(t, err)
			require.InDelta(t, c.KVBytes()/int64(c.Params().Ctx)*int64(n), len(state), 2000)
			want := next(t, c, 0, prompt[n], 8)

			require.NoError(t, c.SetSeqState(1, state), "into another sequence")
			require.Equal(t, want, next(t, c, 1, prompt[n], 8))
			require.NoError(t, c.SetSeqState(0, state), "over what was there")
			require.Equal(t, n-1, c.SeqPosMax(0))
			require.Equal(t, want, next(t, c, 0, prompt[n], 8))
			other := newContext(t, p)
			require.NoError(t, other.SetSeqState(0, state), "into another context")
			require.Equal(t, want, next(t, other, 0, prompt[n], 8))
		}
	})
}

func TestStateOfNothing(t *testing.T) {
	c := newContext(t, ContextParams{})
	state, err := c.SeqState(0)
	require.NoError(t, err)
	prefill(t, c, 0, 0, []int32{1, 2, 3}, -1, nil)
	require.NoError(t, c.SetSeqState(0, state))
	require.Equal(t, -1, c.SeqPosMax(0))
}

// Foreign, cut and changed states are errors, and leave the sequence empty.
func TestWrongStates(t *testing.T) {
	c := newContext(t, ContextParams{Ctx: 512, SeqMax: 2, Unified: true})
	prompt := chatPrompt(t, "Hello")
	prefill(t, c, 0, 0, prompt, -1, nil)
	state, err := c.SeqState(0)
	require.NoError(t, err)
	r := rand.New(rand.NewPCG(1, 1))
	try := func(b []byte) {
		prefill(t, c, 1, 0, []int32{1}, -1, nil)
		require.ErrorIs(t, c.SetSeqState(1, b), ErrState)
		require.Equal(t, -1, c.SeqPosMax(1))
	}
	try(nil)
	try([]byte("QSQ1"))
	try(append(slices.Clone(state), 0))
	for range 60 {
		try(state[:r.IntN(len(state))])
		b := slices.Clone(state)
		b[r.IntN(len(b))] ^= byte(1 + r.IntN(255))
		try(b)
	}
	other := newContext(t, ContextParams{Ctx: 512, KVType: "q8_0"})
	require.ErrorIs(t, other.SetSeqState(0, state), ErrState)
	small := newContext(t, ContextParams{Ctx: 256, Batch: 256, Unified: true, SeqMax: 2})
	prefill(t, small, 0, 0, make([]int32, 250), -1, nil)
	require.ErrorIs(t, small.SetSeqState(1, state), ErrNoCells)
	require.Equal(t, -1, small.SeqPosMax(1))
	require.NoError(t, c.SetSeqState(1, state), "the context has taken no harm")
	require.Equal(t, len(prompt)-1, c.SeqPosMax(1))
}

// Below the checksum: whatever llama.cpp reads, it ends in an error or a
// sequence, not in a crash.
func TestStateBody(t *testing.T) {
	c := newContext(t, ContextParams{Ctx: 512, SeqMax: 2, Unified: true})
	prefill(t, c, 0, 0, chatPrompt(t, "Hello"), -1, nil)
	state, err := c.SeqState(0)
	require.NoError(t, err)
	r := rand.New(rand.NewPCG(5, 5))
	for range 300 {
		b := slices.Clone(state[stateHeader:])
		for range 1 + r.IntN(3) {
			b[r.IntN(min(len(b), 400))] = byte(r.Uint32())
		}
		_ = c.setBody(1, b[:len(b)-r.IntN(2)*r.IntN(len(b))], 0, 100)
		require.NoError(t, c.SeqRemove(1, 0, end))
	}
	b := c.Batch()
	b.N = 0
	for i := range int32(512 - len(chatPrompt(t, "Hello"))) {
		b.Add(7, i, 1, -1, nil)
	}
	require.NoError(t, c.Step(), "no cell is lost")
}
