package engine_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"quern/engine"
	"quern/engine/enginetest"
)

// drafting runs f with an engine that drafts, and a step that costs as much as
// 20 rows.
func drafting(t *testing.T, maxDraft int, setup func(*enginetest.Fake), f func(t *testing.T, r *rig)) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, twoCores, engine.Config{MaxDraft: maxDraft}, func(f *enginetest.Fake) {
			f.Cost = func(b *engine.Batch) time.Duration { return 20*time.Millisecond + time.Duration(b.N)*time.Millisecond }
			setup(f)
		})
		f(t, r)
		r.close()
	})
}

func repetitive(f *enginetest.Fake) { f.Habit = 1 << 30 }

func TestDraftsSaveSteps(t *testing.T) {
	var without, with engine.Result
	drafting(t, 0, repetitive, func(_ *testing.T, r *rig) { _, without = r.run(engine.Request{Prompt: prompt(1, 20), MaxTokens: 300}) })
	drafting(t, 15, repetitive, func(t *testing.T, r *rig) {
		p := prompt(1, 20)
		out, res := r.run(engine.Request{Prompt: p, MaxTokens: 300})
		require.Equal(t, r.fake.Alone(p, engine.SamplerParams{}, 300), out)
		require.Greater(t, res.AcceptedTokens, 200)
		require.EqualValues(t, res.AcceptedTokens, r.Stats().AcceptedTokens)
		require.EqualValues(t, res.DraftedTokens, r.Stats().DraftedTokens)
		with = res
	})
	t.Logf("%v without, %v with", without.Decode, with.Decode)
	require.Zero(t, without.DraftedTokens)
	require.Less(t, with.Decode, without.Decode/3)
}

// tempting makes drafts that are always wrong: tokens come again and again, and
// are followed by another one each time.
func tempting(f *enginetest.Fake) {
	f.Next = func(history []engine.Token, _ *enginetest.Sampler) engine.Token {
		last, before := history[len(history)-1], 0
		for _, t := range history {
			if t == last {
				before++
			}
		}
		return (last + engine.Token(before)) % 53
	}
}

func TestWrongDraftsCostLittle(t *testing.T) {
	var without, with engine.Result
	run := func(res *engine.Result) func(*testing.T, *rig) {
		return func(t *testing.T, r *rig) {
			var out []engine.Token
			out, *res = r.run(engine.Request{Prompt: prompt(1, 20), MaxTokens: 900})
			require.Equal(t, r.fake.Alone(prompt(1, 20), engine.SamplerParams{}, 900), out)
		}
	}
	drafting(t, 0, tempting, run(&without))
	drafting(t, 15, tempting, run(&with))
	t.Logf("%v without, %v with; %d drafted, %d right", without.Decode, with.Decode, with.DraftedTokens, with.AcceptedTokens)
	require.Positive(t, with.DraftedTokens)
	require.Zero(t, with.AcceptedTokens)
	require.Less(t, float64(with.Decode), float64(without.Decode)/0.97)
}

// Streams that can't draft are not held up much by one that can.
func TestDraftsBesideOthers(t *testing.T) {
	odd := func(f *enginetest.Fake) {
		f.Cost = func(b *engine.Batch) time.Duration { return cost(b.N) } // dear rows
		f.Next = func(history []engine.Token, s *enginetest.Sampler) engine.Token {
			if s.Params.Seed == 1 {
				return history[len(history)-1]
			}
			return engine.Token(uint32(len(history)*2654435761+int(s.Params.Seed)) >> 8 % 1000)
		}
	}
	var alone, beside [8]engine.Result
	all := func(res *[8]engine.Result) func(*testing.T, *rig) {
		return func(_ *testing.T, r *rig) {
			var streams sync.WaitGroup
			for i := range res {
				streams.Go(func() {
					sampler, err := r.NewSampler(engine.SamplerParams{Seed: uint64(i + 1)})
					if err == nil {
						_, res[i] = r.run(engine.Request{Prompt: prompt(i, 20), MaxTokens: 200, Sampler: sampler})
					}
				})
			}
			streams.Wait()
		}
	}
	drafting(t, 0, odd, all(&alone))
	drafting(t, 15, odd, all(&beside))
	t.Logf("the one: %v without drafts, %v with; another: %v, %v", alone[0].Decode, beside[0].Decode, alone[7].Decode, beside[7].Decode)
	require.Positive(t, beside[0].AcceptedTokens)
	require.Less(t, beside[0].Decode, alone[0].Decode)
	require.Less(t, float64(beside[7].Decode), 1.11*float64(alone[7].Decode))
}

// The turn ends inside of a run of drafts that came true.
func TestEndWithinADraft(t *testing.T) {
	said := []engine.Token{1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6}
	end := func(f *enginetest.Fake) {
		f.EOG = 9
		f.Say(said...)
	}
	// The prompt goes on after what the answer repeats, then has an end of turn.
	p := join([]engine.Token{1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3})
	for name, c := range map[string]struct {
		max    int
		want   []engine.Token
		reason engine.Reason
		cached int
	}{
		"by the model": {100, said, engine.ReasonStop, len(p) + len(said)},
		"by length":    {14, said[:14], engine.ReasonLength, len(p) + 13},
	} {
		t.Run(name, func(t *testing.T) {
			drafting(t, 15, end, func(t *testing.T, r *rig) {
				out, res := r.run(engine.Request{Prompt: p, MaxTokens: c.max, Logprobs: 2})
				require.Equal(t, c.want, out)
				require.Equal(t, c.reason, res.Reason)
				require.Positive(t, res.AcceptedTokens)
				// All that was computed is a prefix for the next turn.
				_, next := r.run(engine.Request{Prompt: join(p, out, prompt(3, 5)), MaxTokens: 1})
				require.Equal(t, c.cached, next.CachedTokens)
			})
		})
	}
}

// Where the backend has no cells for drafts, the step is done without them, and
// nobody else has to go.
func TestNoCellsForDrafts(t *testing.T) {
	refuse := func(f *enginetest.Fake) {
		repetitive(f)
		f.Fail = func(_ int, b *engine.Batch) error {
			if b.N > 1 && b.Want[0] >= 0 {
				return engine.ErrNoCells
			}
			return nil
		}
	}
	drafting(t, 15, refuse, func(t *testing.T, r *rig) {
		p := prompt(1, 20)
		out, res := r.run(engine.Request{Prompt: p, MaxTokens: 100})
		require.Equal(t, r.fake.Alone(p, engine.SamplerParams{}, 100), out)
		require.Zero(t, res.Preemptions)
		require.Zero(t, res.AcceptedTokens)
		require.Zero(t, r.Stats().Evictions)
	})
}

func TestCancelWhileDrafting(t *testing.T) {
	drafting(t, 15, repetitive, func(t *testing.T, r *rig) {
		s := r.submit(engine.Request{Prompt: prompt(1, 20), MaxTokens: 10_000})
		time.Sleep(777 * time.Millisecond)
		s.Cancel()
		out, err := collect(s)
		require.ErrorIs(t, err, engine.ErrCancelled)
		require.Equal(t, r.fake.Alone(prompt(1, 20), engine.SamplerParams{}, len(out)), out)
		require.Positive(t, s.Result().AcceptedTokens)
		r.Inspect(func(cells, _ int, err error) {
			require.NoError(t, err)
			require.Equal(t, r.fake.CellsUsed(), cells)
		})
	})
}
