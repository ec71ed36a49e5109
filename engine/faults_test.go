package engine_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"quern/engine"
	"quern/engine/enginetest"
)

func TestRowErrorFailsOneRequest(t *testing.T) {
	broken := errors.New("grammar has no way on")
	bubble(t, enginetest.Small, engine.Config{}, func(t *testing.T, r *rig) {
		good := r.submit(engine.Request{Prompt: prompt(1, 10), MaxTokens: 10})
		sampler, err := r.NewSampler(engine.SamplerParams{Seed: 13})
		require.NoError(t, err)
		bad := r.submit(engine.Request{Prompt: prompt(2, 10), MaxTokens: 10, Sampler: sampler})
		out, err := collect(bad)
		require.ErrorIs(t, err, broken)
		require.Len(t, out, 3)
		require.Equal(t, engine.ReasonError, bad.Result().Reason)
		out, err = collect(good)
		require.NoError(t, err)
		require.Len(t, out, 10)
		s := r.Stats()
		require.EqualValues(t, 1, s.Failed)
		require.True(t, s.Healthy)
	}, slow, func(f *enginetest.Fake) {
		f.RowError = func(h []engine.Token, s *enginetest.Sampler) error {
			if s.Params.Seed == 13 && len(h) == 13 {
				return broken
			}
			return nil
		}
	})
}

func TestFailedStepFailsItsBatchOnly(t *testing.T) {
	broken := errors.New("device lost")
	var failing atomic.Int32
	bubble(t, enginetest.Small, engine.Config{MaxRunning: 2, MaxFailures: 2}, func(t *testing.T, r *rig) {
		p := prompt(1, 100)
		_, _ = r.run(engine.Request{Prompt: p, MaxTokens: 1})
		var streams []*engine.Stream
		for i := range 4 {
			streams = append(streams, r.submit(engine.Request{Prompt: prompt(10+i, 10), MaxTokens: 10}))
		}
		time.Sleep(500 * time.Millisecond)
		failing.Store(1)
		for i, s := range streams {
			out, err := collect(s)
			if i < 2 {
				require.ErrorIs(t, err, broken)
				require.Equal(t, engine.ReasonError, s.Result().Reason)
			} else {
				require.NoError(t, err, "it was queued")
				require.Equal(t, r.fake.Alone(prompt(10+i, 10), engine.SamplerParams{}, 10), out)
			}
		}
		require.True(t, r.Stats().Healthy)
		failing.Store(2)
		for i := range 2 {
			_, err := collect(r.submit(engine.Request{Prompt: prompt(20+i, 10), MaxTokens: 10}))
			require.ErrorIs(t, err, broken)
			require.Equal(t, i == 0, r.Stats().Healthy)
		}
		_, res := r.run(engine.Request{Prompt: p, MaxTokens: 1})
		require.Equal(t, 99, res.CachedTokens, "what took no part is as it was")
		require.True(t, r.Stats().Healthy, "a step that works heals")
		require.EqualValues(t, 3, r.Stats().FailedSteps)
	}, slow, func(f *enginetest.Fake) {
		f.Fail = func(int, *engine.Batch) error {
			if failing.Add(-1) >= 0 {
				return broken
			}
			return nil
		}
	})
}

// A backend that finds less room than it claims is believed.
func TestBackendHasFewerCellsThanItSays(t *testing.T) {
	const really = 400
	l := enginetest.Small
	l.Cells = 1000
	var f *enginetest.Fake
	bubble(t, l, engine.Config{Headroom: 1}, func(t *testing.T, r *rig) {
		f = r.fake
		var streams []*engine.Stream
		for i := range 4 {
			streams = append(streams, r.submit(engine.Request{Prompt: prompt(i, 100), MaxTokens: 60}))
		}
		for i, s := range streams {
			out, err := collect(s)
			require.NoError(t, err)
			require.Equal(t, r.fake.Alone(prompt(i, 100), engine.SamplerParams{}, 60), out)
		}
		require.Positive(t, r.Stats().Preemptions)
		out, res := r.run(engine.Request{Prompt: prompt(9, 380), MaxTokens: 20})
		require.Len(t, out, 20, "the room it has is used to the last cell")
		require.Equal(t, engine.ReasonLength, res.Reason)
		s := r.submit(engine.Request{Prompt: prompt(10, 390), MaxTokens: 50})
		got, err := collect(s)
		require.ErrorIs(t, err, engine.ErrNoCells, "nothing is left to give way")
		require.Equal(t, r.fake.Alone(prompt(10, 390), engine.SamplerParams{}, 11), got)
		_, _ = r.run(engine.Request{Prompt: prompt(11, 10), MaxTokens: 5})
	}, slow, func(f0 *enginetest.Fake) {
		f0.Fail = func(_ int, b *engine.Batch) error {
			if f.CellsUsed()+b.N > really {
				return engine.ErrNoCells
			}
			return nil
		}
	})
}

// One refusal makes the next step smaller, not all that follow.
func TestOneRefusal(t *testing.T) {
	l := engine.Limits{Cells: 1000, Seqs: 4, Batch: 64, UBatch: 64, Unified: true, Partial: true}
	bubble(t, l, engine.Config{}, func(t *testing.T, r *rig) {
		out, _ := r.run(engine.Request{Prompt: prompt(1, 800), MaxTokens: 5})
		require.Equal(t, r.fake.Alone(prompt(1, 800), engine.SamplerParams{}, 5), out)
		require.Less(t, r.fake.Steps(), 30)
	}, slow, func(f *enginetest.Fake) {
		f.Fail = func(step int, _ *engine.Batch) error {
			if step == 2 {
				return engine.ErrNoCells
			}
			return nil
		}
	})
}

// Cells are held for what running requests may still need, so that none of them
// has to give way.
func TestAdmissionKeepsRoom(t *testing.T) {
	l := enginetest.Small
	l.Cells = 1000
	bubble(t, l, engine.Config{Headroom: 50}, func(t *testing.T, r *rig) {
		var streams []*engine.Stream
		for i := range 8 {
			streams = append(streams, r.submit(engine.Request{Prompt: prompt(i, 150), MaxTokens: 50}))
		}
		time.Sleep(3 * time.Second)
		require.Equal(t, 5, r.Stats().Running)
		for _, s := range streams {
			_, err := collect(s)
			require.NoError(t, err)
		}
		require.Zero(t, r.Stats().Preemptions)
	}, slow)
	t.Run("a prefix to be reused counts", func(t *testing.T) {
		bubble(t, l, engine.Config{Headroom: 50}, func(t *testing.T, r *rig) {
			p := prompt(1, 600)
			r.run(engine.Request{Prompt: p, MaxTokens: 1})
			running := r.submit(engine.Request{Prompt: prompt(2, 320), MaxTokens: 50})
			next := r.submit(engine.Request{Prompt: join(p[:590], prompt(3, 10)), MaxTokens: 50})
			time.Sleep(time.Second)
			require.Equal(t, 1, r.Stats().Running)
			for _, s := range []*engine.Stream{running, next} {
				_, err := collect(s)
				require.NoError(t, err)
			}
			require.Zero(t, r.Stats().Preemptions)
			require.Equal(t, 590, next.Result().CachedTokens)
		}, slow)
	})
}

func TestNewestGivesWay(t *testing.T) {
	l := enginetest.Small
	l.Cells = 300
	bubble(t, l, engine.Config{Headroom: 1}, func(t *testing.T, r *rig) {
		old := r.submit(engine.Request{Prompt: prompt(1, 100), MaxTokens: 150})
		time.Sleep(time.Second)
		young := r.submit(engine.Request{Prompt: prompt(2, 100), MaxTokens: 100, Logprobs: 1})
		out, err := collect(old)
		require.NoError(t, err)
		require.Equal(t, r.fake.Alone(prompt(1, 100), engine.SamplerParams{}, 150), out)
		require.Zero(t, old.Result().Preemptions)
		out, err = collect(young)
		require.NoError(t, err)
		require.Equal(t, r.fake.Alone(prompt(2, 100), engine.SamplerParams{}, 100), out)
		res := young.Result()
		require.Positive(t, res.Preemptions)
		require.Zero(t, res.CachedTokens, "that of its first start, not of its own tokens found again")
		require.EqualValues(t, 200, r.Stats().PromptTokens)
	}, slow)
}

func TestAbortedStepIsDoneAgain(t *testing.T) {
	for _, partial := range []bool{true, false} {
		l := enginetest.Small
		l.Partial = partial
		bubble(t, l, engine.Config{}, func(t *testing.T, r *rig) {
			a := r.submit(engine.Request{Prompt: prompt(1, 500), MaxTokens: 20})
			b := r.submit(engine.Request{Prompt: prompt(2, 20), MaxTokens: 20})
			for i, s := range []*engine.Stream{a, b} {
				out, err := collect(s)
				require.NoError(t, err)
				require.Equal(t, r.fake.Alone(prompt(1+i, []int{500, 20}[i]), engine.SamplerParams{}, 20), out)
			}
		}, slow, func(f *enginetest.Fake) {
			f.Fail = func(step int, _ *engine.Batch) error {
				if step%10 == 3 && step < 30 {
					return engine.ErrAborted
				}
				return nil
			}
		})
	}
}

func TestSamplerThatCannotBeMade(t *testing.T) {
	bad := errors.New("bad grammar")
	r := newRig(t, enginetest.Small, engine.Config{}, func(f *enginetest.Fake) {
		f.FailSampler = func(p engine.SamplerParams) error {
			if p.Grammar != "" {
				return bad
			}
			return nil
		}
	})
	_, err := r.NewSampler(engine.SamplerParams{Grammar: "root ::="})
	require.ErrorIs(t, err, bad)
}

// A short prompt that comes behind a long one does not wait for all of it.
func TestShortPromptPassesALongOne(t *testing.T) {
	l := enginetest.Small
	l.Cells = 20000
	bubble(t, l, engine.Config{}, func(t *testing.T, r *rig) {
		stream := r.submit(engine.Request{Prompt: prompt(1, 10), MaxTokens: 1000})
		time.Sleep(time.Second)
		long := r.submit(engine.Request{Prompt: prompt(2, 10000), MaxTokens: 1})
		time.Sleep(2 * time.Second)
		_, res := r.run(engine.Request{Prompt: prompt(3, 100), MaxTokens: 1})
		require.Less(t, res.TTFT, 3*time.Second)
		done, _ := long.Progress()
		require.Less(t, done, 3000)
		stream.Cancel()
		_, err := collect(long)
		require.NoError(t, err)
		synctest.Wait()
	}, slow)
}
