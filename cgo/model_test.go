package cgo

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestModelInfo(t *testing.T) {
	m := smolModel(t)
	i := m.Info()
	require.Equal(t, "llama", i.Arch)
	require.Equal(t, 8192, i.ContextTrain)
	require.Equal(t, 30, i.Layers)
	require.Equal(t, 9, i.Heads)
	require.Equal(t, 3, i.HeadsKV)
	require.Equal(t, 576, i.Embd)
	require.InDelta(t, 134.5e6, float64(i.Params), 1e6)
	require.True(t, i.HasDecoder)
	require.False(t, i.HasEncoder || i.Recurrent || i.Hybrid)
	require.Contains(t, m.ChatTemplate(), "<|im_start|>")
	require.True(t, slices.IsSortedFunc(m.Meta(), func(a, b KV) int { return strings.Compare(a.Key, b.Key) }))
}

func TestLoadIsCancelled(t *testing.T) {
	path := modelPath(t, smol)
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("changed my mind")
	calls := 0
	_, err := LoadModel(ctx, path, LoadOptions{Progress: func(float32) {
		calls++
		cancel(why)
	}})
	require.ErrorIs(t, err, why)
	require.Equal(t, 1, calls)

	_, err = LoadModel(ctx, path, LoadOptions{})
	require.ErrorIs(t, err, context.Canceled)
}

func TestLoadReportsProgress(t *testing.T) {
	var last float32
	m, err := LoadModel(context.Background(), modelPath(t, smol), LoadOptions{NoMMap: true, NoRepack: true, Progress: func(f float32) {
		require.GreaterOrEqual(t, f, last)
		last = f
	}})
	require.NoError(t, err)
	m.Close()
	require.InDelta(t, 1, last, 1e-6)
}

func TestVocabOnly(t *testing.T) {
	m, err := LoadModel(context.Background(), modelPath(t, smol), LoadOptions{VocabOnly: true})
	require.NoError(t, err)
	defer m.Close()
	toks, err := m.Vocab().Tokenize("hello", false)
	require.NoError(t, err)
	require.NotEmpty(t, toks)
	_, err = NewContext(m, ContextParams{Ctx: 256})
	require.ErrorIs(t, err, ErrUnsupported)
}

// The C model lives until its last user is gone.
func TestCloseOrder(t *testing.T) {
	m, err := LoadModel(context.Background(), modelPath(t, smol), LoadOptions{})
	require.NoError(t, err)
	c, err := NewContext(m, ContextParams{Ctx: 256})
	require.NoError(t, err)
	s, err := NewSampler(m, SamplerParams{})
	require.NoError(t, err)
	m.Close()
	m.Close()
	c.Batch().Add(1, 0, 0, 0, s)
	require.NoError(t, c.Step())
	_, err = m.Vocab().Tokenize("still there", false)
	require.NoError(t, err)
	c.Close()
	c.Close()
	c.Abort()
	require.ErrorIs(t, c.Step(), ErrClosed)
	require.ErrorIs(t, c.SeqRemove(0, 0, 1), ErrClosed)
	require.Equal(t, -1, c.SeqPosMax(0))
	s.Close()
	s.Close()
	_, err = m.Vocab().Tokenize("gone", false)
	require.ErrorIs(t, err, ErrClosed)
	_, err = NewSampler(m, SamplerParams{})
	require.ErrorIs(t, err, ErrClosed)
	_, err = NewContext(m, ContextParams{})
	require.ErrorIs(t, err, ErrClosed)
	require.NotEmpty(t, m.Vocab().Piece(1000), "the table stays")
}

// A load may be abandoned at any moment.
func TestLoadDeadline(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	m, err := LoadModel(ctx, modelPath(t, smol), LoadOptions{NoMMap: true})
	if err == nil {
		m.Close()
		t.Skip("loaded before the deadline")
	}
	require.ErrorIs(t, err, context.DeadlineExceeded)
}
