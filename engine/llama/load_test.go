package llama

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"quern/engine"
	"quern/models/testmodel"
)

// answer is what a request got, with the alternatives of each token.
type answer struct {
	out    []engine.Output
	result engine.Result
	err    error // it was refused
}

func ask(ctx context.Context, e *engine.Engine, prompt []engine.Token, max int) answer {
	sampler, err := e.NewSampler(engine.SamplerParams{})
	if err != nil {
		return answer{err: err}
	}
	s, err := e.Submit(ctx, engine.Request{Prompt: prompt, MaxTokens: max, Sampler: sampler, Logprobs: 2})
	if err != nil {
		return answer{err: err}
	}
	var a answer
	for {
		out, err := s.Recv(context.Background())
		a.out = append(a.out, out...)
		if err != nil {
			a.result = s.Result()
			return a
		}
	}
}

// nearTie is how close two logprobs must be for a batch of another shape to be
// allowed to decide otherwise: kernels for one row, for few and for many sum up
// in different orders, and round activations at different places.
const nearTie = 0.4

// sameTokens compares an answer under load with that of a run alone, up to the
// first near tie that went the other way.
func sameTokens(t *testing.T, isEOG func(engine.Token) bool, name string, alone, loaded answer) {
	for i, want := range alone.out {
		if i >= len(loaded.out) && loaded.result.Reason == engine.ReasonStop {
			// The end of the turn was sampled here, which is not delivered.
			require.Len(t, want.Top, 2)
			require.True(t, isEOG(want.Top[1].Token), "%s, token %d: only one of them ends", name, i)
			require.Less(t, want.Top[0].Logprob-want.Top[1].Logprob, float32(nearTie), "%s, token %d", name, i)
			return
		}
		if i >= len(loaded.out) {
			require.Contains(t, []engine.Reason{engine.ReasonCancelled, alone.result.Reason}, loaded.result.Reason)
			return
		}
		got := loaded.out[i]
		if got.Token == want.Token {
			require.InDelta(t, want.Logprob, got.Logprob, 2*nearTie, "%s, token %d", name, i)
			continue
		}
		require.Len(t, want.Top, 2)
		require.Equal(t, want.Top[1].Token, got.Token, "%s, token %d", name, i)
		require.Less(t, want.Top[0].Logprob-want.Top[1].Logprob, float32(nearTie), "%s, token %d", name, i)
		t.Logf("%s: a near tie at token %d went the other way", name, i)
		return
	}
}

// Under load, with shared heads, turns, cancels and too few cells, each request
// gets what it gets alone.
func TestLoad(t *testing.T) {
	t.Run("scripted", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "scripted.gguf")
		require.NoError(t, testmodel.Write(path))
		underLoad(t, path, 512)
	})
	t.Run("real", func(t *testing.T) { underLoad(t, modelPath(t, smol), 256) })
}

func underLoad(t *testing.T, path string, cells int) {
	const open, end = "<|im_start|>", "<|im_end|>"
	b, err := Open(t.Context(), path, Options{Cells: cells, Parallel: 4, Threads: 1, Batch: 128, UBatch: 64, KVType: "f16"})
	require.NoError(t, err)
	e := engine.New(b, engine.Config{MaxRunning: 4, Headroom: 1, MaxDraft: 8})
	defer func() { require.NoError(t, e.Close()) }()
	cells = b.Limits().Cells
	tokens := func(text string) []engine.Token {
		p, err := b.Vocab().Tokenize(text, true)
		require.NoError(t, err)
		return p
	}
	head := open + "system\nYou are a helper. " + strings.Repeat("Be brief and kind. ", 6) + end + "\n" + open + "user\n"
	tail := end + "\n" + open + "assistant\n"
	const maxTokens = 16
	type request struct {
		prompt []engine.Token
		got    answer
	}
	var mu sync.Mutex
	var all []*request
	var clients sync.WaitGroup
	for c := range 5 {
		clients.Go(func() {
			r := rand.New(rand.NewPCG(uint64(c), 9))
			history := head + fmt.Sprintf("Tell me a fact about the numbers %d, %d, %d, %d, %d and about %s.",
				r.IntN(1e6), r.IntN(1e6), r.IntN(1e6), r.IntN(1e6), r.IntN(1e6), []string{"bees", "rivers", "iron", "salt", "clouds"}[c]) + tail
			for turn := range 2 {
				q := &request{prompt: tokens(history)}
				if len(q.prompt)+maxTokens > cells {
					return
				}
				ctx, cancel := context.WithCancel(context.Background())
				if r.IntN(4) == 0 {
					time.AfterFunc(time.Duration(r.IntN(300))*time.Millisecond, cancel)
				}
				q.got = ask(ctx, e, q.prompt, maxTokens)
				cancel()
				mu.Lock()
				all = append(all, q)
				mu.Unlock()
				for _, o := range q.got.out {
					history += string(b.Vocab().Piece(o.Token))
				}
				history += end + "\n" + open + fmt.Sprintf("user\nAnd turn %d?", turn+2) + tail
			}
		})
	}
	clients.Wait()
	s := e.Stats()
	t.Logf("%d requests; cached %d of %d tokens, %d preemptions, %d evictions, %d of %d drafts right", len(all),
		s.CachedTokens, s.PromptTokens, s.Preemptions, s.Evictions, s.AcceptedTokens, s.DraftedTokens)
	require.Positive(t, s.CachedTokens)
	require.Positive(t, s.Evictions+s.Preemptions)
	require.Zero(t, s.FailedSteps)
	for i, q := range all {
		require.NoError(t, q.got.err)
		e.FlushCache()
		alone := ask(t.Context(), e, q.prompt, maxTokens)
		require.Zero(t, alone.result.CachedTokens)
		require.NoError(t, errors.Join(alone.err, alone.result.Err))
		sameTokens(t, b.IsEOG, fmt.Sprint("request ", i), alone, q.got)
	}
	e.FlushCache()
	require.Zero(t, e.Stats().CellsUsed)
}
