package cgo

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A model with a sliding window of 512 and a sentencepiece vocabulary.
const gemma = "gemma-3-270m-q4_k_m.gguf"

func gemmaContext(t *testing.T, p ContextParams) (*Context, *Model) {
	t.Helper()
	m, err := LoadModel(context.Background(), modelPath(t, gemma), LoadOptions{})
	require.NoError(t, err)
	t.Cleanup(m.Close)
	p.Threads, p.Batch, p.UBatch = 1, 256, 128
	c, err := NewContext(m, p)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c, m
}

func greedyOf(t *testing.T, c *Context, m *Model, seq, last int32, n int) []int32 {
	t.Helper()
	s, err := NewSampler(m, SamplerParams{})
	require.NoError(t, err)
	defer s.Close()
	return generate(t, c, seq, last, n+1, s)[1:]
}

func TestSlidingWindow(t *testing.T) {
	for name, unified := range map[string]bool{"unified": true, "streams": false} {
		t.Run(name, func(t *testing.T) {
			c, m := gemmaContext(t, ContextParams{Ctx: 4096, SeqMax: 4, Unified: unified, SmallSWA: true})
			require.Equal(t, 512, m.Info().SWA)
			text, err := m.Vocab().Tokenize("The quick brown fox jumps over the lazy dog. "+strings.Repeat("One two three four five six seven. ", 130), false)
			require.NoError(t, err)
			text = append([]int32{m.Vocab().BOS()}, text...)
			require.Greater(t, len(text), 900)

			prefill(t, c, 0, 0, text[:300], -1, nil)
			want300 := greedyOf(t, c, m, 0, text[300], 4)
			require.NoError(t, c.SeqRemove(0, 300, end), "within the window")
			require.Equal(t, want300, greedyOf(t, c, m, 0, text[300], 4))
			require.NoError(t, c.SeqRemove(0, 300, end))
			require.NoError(t, c.SeqCopy(0, 1, 0, 300))
			require.Equal(t, want300, greedyOf(t, c, m, 1, text[300], 4))

			prefill(t, c, 0, 300, text[300:900], -1, nil)
			for seq := range int32(3) { // others take the cells that are out of the window
				prefill(t, c, seq+1, c.SeqPosMax(seq+1)+1, text[:600], -1, nil)
			}
			want := greedyOf(t, c, m, 0, text[900], 4)
			for seq := range int32(3) {
				require.NoError(t, c.SeqRemove(seq+1, 0, end))
			}
			require.Positive(t, c.SeqPosMin(0))
			require.ErrorIs(t, c.SeqRemove(0, 300, end), ErrUnsupported, "the window has moved on")
			require.ErrorIs(t, c.SeqCopy(0, 2, 0, 300), ErrUnsupported)
			require.Equal(t, -1, c.SeqPosMax(2))
			require.NoError(t, c.SeqRemove(0, 900, end))
			require.Equal(t, want, greedyOf(t, c, m, 0, text[900], 4))

			require.NoError(t, c.SeqRemove(0, 900, end))
			state, err := c.SeqState(0)
			require.NoError(t, err)
			require.NoError(t, c.SetSeqState(2, state))
			require.Equal(t, want, greedyOf(t, c, m, 2, text[900], 4))
			require.NoError(t, c.SeqCopy(0, 3, 0, 900))
			require.Equal(t, want, greedyOf(t, c, m, 3, text[900], 4))
			require.False(t, c.CanShift())
			require.ErrorIs(t, c.SeqShift(0, 0, 10, 1), ErrUnsupported)
			require.NoError(t, c.SeqRemove(0, 0, end), "whole is always possible")
			for i := 0; i < 1000; i += 17 {
				bad := append([]byte(nil), state...)
				bad[stateHeader+i] ^= 0x55
				require.ErrorIs(t, c.SetSeqState(0, bad), ErrState)
			}
		})
	}
}

// With cells for everything a prefix can be had again, unless its cells out of
// the window were needed.
func TestFullWindow(t *testing.T) {
	c, m := gemmaContext(t, ContextParams{Ctx: 2048, SeqMax: 2, Unified: true})
	text, err := m.Vocab().Tokenize(strings.Repeat("One two three four five six seven. ", 120), false)
	require.NoError(t, err)
	prefill(t, c, 0, 0, text[:300], -1, nil)
	want := greedyOf(t, c, m, 0, text[300], 4)
	require.NoError(t, c.SeqRemove(0, 300, end))
	prefill(t, c, 0, 300, text[300:900], -1, nil)
	require.NoError(t, c.SeqCopy(0, 1, 0, 300))
	require.Equal(t, want, greedyOf(t, c, m, 1, text[300], 4))
	require.True(t, c.CanShift())
}

func TestSentencepiece(t *testing.T) {
	v := vocabOf(t, gemma)
	require.True(t, v.AddBOS())
	for _, text := range append(texts(50), "plain", " leading", "tab\there", strings.Repeat(" ", 5000), strings.Repeat("a", 40000), "\x01\x02") {
		toks, err := v.Tokenize(text, false)
		require.NoError(t, err)
		require.Equal(t, text, join(v, toks))
	}
	bytes := 0
	for k := range int32(v.Size()) {
		if v.IsByte(k) {
			bytes++
			require.Len(t, v.Piece(k), 1)
		}
	}
	require.Equal(t, 256, bytes)
}
