package engine_test

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"quern/engine"
	"quern/engine/enginetest"
)

// slow is a backend whose steps take 100 ms and a millisecond a row.
func slow(f *enginetest.Fake) {
	f.Cost = func(b *engine.Batch) time.Duration {
		return 100*time.Millisecond + time.Duration(b.N)*time.Millisecond
	}
}

// bubble runs f in synctest's time with an engine that is closed at its end.
func bubble(t *testing.T, l engine.Limits, c engine.Config, f func(t *testing.T, r *rig), setup ...func(*enginetest.Fake)) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, l, c, setup...)
		f(t, r)
		r.close()
	})
}

func TestSubmitRefuses(t *testing.T) {
	l := enginetest.Small
	l.Vocab = 1000
	r := newRig(t, l, engine.Config{MaxLength: 500})
	done, cancel := context.WithCancelCause(context.Background())
	gone := errors.New("client gone")
	cancel(gone)
	var long *engine.TooLongError
	var token *engine.TokenError
	for name, c := range map[string]struct {
		ctx    context.Context
		prompt []engine.Token
		max    int
		check  func(error)
	}{
		"no prompt":            {prompt: nil, check: func(err error) { require.ErrorIs(t, err, engine.ErrEmptyPrompt) }},
		"prompt fills context": {prompt: prompt(1, 500), check: func(err error) { require.ErrorAs(t, err, &long) }},
		"output does not fit": {prompt: prompt(1, 400), max: 101, check: func(err error) {
			require.ErrorAs(t, err, &long)
			require.Equal(t, engine.TooLongError{Prompt: 400, Max: 101, Limit: 500}, *long)
		}},
		"negative token": {prompt: []engine.Token{1, -1}, check: func(err error) {
			require.ErrorAs(t, err, &token)
			require.Equal(t, 1, token.Index)
		}},
		"unknown token":  {prompt: []engine.Token{1000}, check: func(err error) { require.ErrorAs(t, err, &token) }},
		"context is off": {ctx: done, prompt: prompt(1, 5), check: func(err error) { require.ErrorIs(t, err, gone) }},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := c.ctx
			if ctx == nil {
				ctx = context.Background()
			}
			s, err := r.NewSampler(engine.SamplerParams{})
			require.NoError(t, err)
			_, err = r.Submit(ctx, engine.Request{Prompt: c.prompt, MaxTokens: c.max, Sampler: s})
			require.Error(t, err)
			c.check(err)
			require.True(t, s.(*enginetest.Sampler).Closed())
		})
	}
	require.Zero(t, r.fake.Steps())
	out, res := r.run(engine.Request{Prompt: prompt(1, 400), MaxTokens: 100})
	require.Len(t, out, 100)
	require.Equal(t, engine.ReasonLength, res.Reason)
	out, _ = r.run(engine.Request{Prompt: prompt(1, 450)})
	require.Len(t, out, 50, "without a limit: all there is room for")
}

func TestQueueIsBounded(t *testing.T) {
	bubble(t, enginetest.Small, engine.Config{MaxRunning: 2, MaxQueue: 3}, func(t *testing.T, r *rig) {
		var streams []*engine.Stream
		for i := range 5 {
			streams = append(streams, r.submit(engine.Request{Prompt: prompt(i, 10), MaxTokens: 5}))
		}
		_, err := r.Submit(context.Background(), engine.Request{Prompt: prompt(9, 10), MaxTokens: 5})
		require.ErrorIs(t, err, engine.ErrQueueFull)
		time.Sleep(200 * time.Millisecond) // the others may have come while the first one's first step ran
		s := r.Stats()
		require.Equal(t, []int{2, 3}, []int{s.Running, s.Waiting})
		require.EqualValues(t, 1, s.Refused)
		streams[4].Cancel()
		_, err = collect(streams[4])
		require.ErrorIs(t, err, engine.ErrCancelled)
		streams = append(streams[:4], r.submit(engine.Request{Prompt: prompt(9, 10), MaxTokens: 5}))
		for _, s := range streams {
			out, err := collect(s)
			require.NoError(t, err)
			require.Len(t, out, 5)
		}
	}, slow)
}

func TestCancelFreesWithinOneStep(t *testing.T) {
	ctxErr := func(s *engine.Stream, cancel context.CancelFunc) { cancel() }
	byCall := func(s *engine.Stream, cancel context.CancelFunc) { s.Cancel(); s.Cancel() }
	for name, how := range map[string]func(*engine.Stream, context.CancelFunc){"by context": ctxErr, "by call": byCall} {
		for _, state := range []string{"running", "queued", "prefilling"} {
			t.Run(name+" "+state, func(t *testing.T) {
				bubble(t, enginetest.Small, engine.Config{MaxRunning: 2}, func(t *testing.T, r *rig) {
					other := r.submit(engine.Request{Prompt: prompt(1, 10), MaxTokens: 40})
					n := 10
					switch state {
					case "queued":
						defer func(s *engine.Stream) { _, _ = collect(s) }(
							r.submit(engine.Request{Prompt: prompt(2, 10), MaxTokens: 40}))
					case "prefilling":
						n = 2000
					}
					ctx, cancel := context.WithCancel(context.Background())
					defer cancel()
					s, err := r.Submit(ctx, engine.Request{Prompt: prompt(3, n), MaxTokens: 40, Logprobs: -1})
					require.NoError(t, err)
					time.Sleep(1050 * time.Millisecond)
					before := r.Stats()
					how(s, cancel)
					time.Sleep(700 * time.Millisecond) // one step with a chunk
					after := r.Stats()
					require.EqualValues(t, 1, after.Cancelled)
					res := s.Result()
					require.Equal(t, engine.ReasonCancelled, res.Reason)
					require.Equal(t, state == "running", res.OutputTokens > 0)
					if state == "queued" {
						require.Equal(t, before.Waiting-1, after.Waiting)
						require.Equal(t, before.Running, after.Running)
					} else {
						require.Equal(t, before.Running-1, after.Running)
					}
					for {
						if _, err = s.Recv(context.Background()); err != nil {
							break
						}
					}
					require.ErrorIs(t, err, engine.ErrCancelled)
					require.Equal(t, name == "by context", errors.Is(err, context.Canceled))
					out, err := collect(other)
					require.NoError(t, err)
					require.Equal(t, r.fake.Alone(prompt(1, 10), engine.SamplerParams{}, 40), out)
				}, slow)
			})
		}
	}
}

func TestCancelledPrefixStays(t *testing.T) {
	bubble(t, enginetest.Small, engine.Config{}, func(t *testing.T, r *rig) {
		s := r.submit(engine.Request{Prompt: prompt(1, 200), MaxTokens: 100})
		time.Sleep(2 * time.Second)
		s.Cancel()
		_, err := collect(s)
		require.ErrorIs(t, err, engine.ErrCancelled)
		_, res := r.run(engine.Request{Prompt: prompt(1, 300), MaxTokens: 1})
		require.Equal(t, 200, res.CachedTokens)
	}, slow)
}

func TestDeadline(t *testing.T) {
	bubble(t, enginetest.Small, engine.Config{MaxRunning: 1}, func(t *testing.T, r *rig) {
		at := time.Now().Add(time.Second)
		running := r.submit(engine.Request{Prompt: prompt(1, 10), MaxTokens: 100, Deadline: at})
		queued := r.submit(engine.Request{Prompt: prompt(2, 10), MaxTokens: 100, Deadline: at.Add(-500 * time.Millisecond)})
		ctx, cancel := context.WithDeadline(context.Background(), at.Add(-300*time.Millisecond))
		defer cancel()
		byContext, err := r.Submit(ctx, engine.Request{Prompt: prompt(3, 10), MaxTokens: 100})
		require.NoError(t, err)
		for _, s := range []*engine.Stream{queued, byContext, running} {
			out, err := collect(s)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.ErrorIs(t, err, engine.ErrDeadline)
			require.Equal(t, engine.ReasonDeadline, s.Result().Reason)
			require.Equal(t, s == running, len(out) > 0)
		}
		require.WithinDuration(t, at, time.Now(), 150*time.Millisecond)
		require.Zero(t, queued.Result().Prefill)
		require.Positive(t, queued.Result().Queue)
		expired := r.submit(engine.Request{Prompt: prompt(1, 10), MaxTokens: 1, Deadline: time.Now()})
		_, err = collect(expired)
		require.ErrorIs(t, err, engine.ErrDeadline)
	}, slow)
}

func TestDrain(t *testing.T) {
	t.Run("finishes", func(t *testing.T) {
		bubble(t, enginetest.Small, engine.Config{MaxRunning: 1}, func(t *testing.T, r *rig) {
			a := r.submit(engine.Request{Prompt: prompt(1, 10), MaxTokens: 5})
			b := r.submit(engine.Request{Prompt: prompt(2, 10), MaxTokens: 5})
			require.NoError(t, r.Drain(context.Background()))
			require.True(t, r.Stats().Draining)
			_, err := r.Submit(context.Background(), engine.Request{Prompt: prompt(1, 10)})
			require.ErrorIs(t, err, engine.ErrDraining)
			for _, s := range []*engine.Stream{a, b} {
				out, err := collect(s)
				require.NoError(t, err)
				require.Len(t, out, 5)
			}
			require.NoError(t, r.Drain(context.Background()), "again")
		}, slow)
	})
	t.Run("runs out of time", func(t *testing.T) {
		bubble(t, enginetest.Small, engine.Config{MaxRunning: 1}, func(t *testing.T, r *rig) {
			a := r.submit(engine.Request{Prompt: prompt(1, 10), MaxTokens: 500})
			b := r.submit(engine.Request{Prompt: prompt(2, 10), MaxTokens: 5})
			ctx, cancel := context.WithTimeout(context.Background(), 1050*time.Millisecond)
			defer cancel()
			require.ErrorIs(t, r.Drain(ctx), context.DeadlineExceeded)
			for _, s := range []*engine.Stream{a, b} {
				out, err := collect(s)
				require.ErrorIs(t, err, engine.ErrDraining)
				require.Equal(t, engine.ReasonCancelled, s.Result().Reason)
				require.Equal(t, s == a, len(out) > 0)
			}
			require.Zero(t, r.Stats().Running)
		}, slow)
	})
}

func TestClose(t *testing.T) {
	bubble(t, enginetest.Small, engine.Config{MaxRunning: 1}, func(t *testing.T, r *rig) {
		a := r.submit(engine.Request{Prompt: prompt(1, 10), MaxTokens: 500})
		b := r.submit(engine.Request{Prompt: prompt(2, 10), MaxTokens: 5})
		time.Sleep(1050 * time.Millisecond)
		start := time.Now()
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() { require.NoError(t, r.Close()) })
		}
		all.Wait()
		require.Zero(t, time.Since(start), "the step is aborted, not awaited")
		for _, s := range []*engine.Stream{a, b} {
			_, err := collect(s)
			require.ErrorIs(t, err, engine.ErrClosed)
		}
		_, err := r.Submit(context.Background(), engine.Request{Prompt: prompt(1, 10)})
		require.ErrorIs(t, err, engine.ErrClosed)
		_, err = r.NewSampler(engine.SamplerParams{})
		require.ErrorIs(t, err, engine.ErrClosed)
		require.NoError(t, r.Drain(context.Background()))
		r.FlushCache()
		a.Cancel()
	}, slow)
}

func TestSlowReaderGetsAllAtOnce(t *testing.T) {
	bubble(t, enginetest.Small, engine.Config{}, func(t *testing.T, r *rig) {
		s := r.submit(engine.Request{Prompt: prompt(1, 10), MaxTokens: 20, Logprobs: 3})
		quick := r.submit(engine.Request{Prompt: prompt(2, 10), MaxTokens: 20})
		out, err := collect(quick)
		require.NoError(t, err)
		require.Len(t, out, 20)
		time.Sleep(time.Minute)
		got, err := s.Recv(context.Background())
		require.NoError(t, err)
		require.Len(t, got, 20)
		for i, o := range got {
			require.Equal(t, r.fake.Alone(prompt(1, 10), engine.SamplerParams{}, 20)[i], o.Token)
			require.Len(t, o.Top, 3)
			require.Equal(t, o.Token+2, o.Top[2].Token, "alternatives of its own, not of a later step")
		}
		for range 3 {
			_, err = s.Recv(context.Background())
			require.Equal(t, io.EOF, err)
		}
	}, slow)
}

func TestRecvHonoursItsContext(t *testing.T) {
	bubble(t, enginetest.Small, engine.Config{}, func(t *testing.T, r *rig) {
		s := r.submit(engine.Request{Prompt: prompt(1, 10), MaxTokens: 5})
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
		defer cancel()
		_, err := s.Recv(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, engine.ReasonNone, s.Result().Reason)
		out, err := collect(s)
		require.NoError(t, err)
		require.Len(t, out, 5, "the request went on")
	}, slow)
}

func TestProgressAndTimings(t *testing.T) {
	bubble(t, enginetest.Small, engine.Config{MaxRunning: 1}, func(t *testing.T, r *rig) {
		first := r.submit(engine.Request{Prompt: prompt(1, 10), MaxTokens: 10})
		s := r.submit(engine.Request{Prompt: prompt(2, 1000), MaxTokens: 10})
		_, err := collect(first)
		require.NoError(t, err)
		time.Sleep(300 * time.Millisecond)
		done, total := s.Progress()
		require.Equal(t, 1000, total)
		require.Positive(t, done)
		require.Less(t, done, 1000)
		_, err = collect(s)
		require.NoError(t, err)
		done, _ = s.Progress()
		require.Equal(t, 1000, done)
		a, b := first.Result(), s.Result()
		require.Equal(t, a.Total, b.Queue)
		require.Equal(t, b.Queue+b.Prefill, b.TTFT)
		require.Equal(t, b.TTFT+b.Decode, b.Total)
		require.Equal(t, 9*101*time.Millisecond, b.Decode)
		st := r.Stats()
		require.EqualValues(t, 1010, st.PromptTokens)
		require.EqualValues(t, 20, st.GeneratedTokens)
		require.Equal(t, 101*time.Millisecond, st.DecodeStepTime.Round(time.Millisecond))
		require.Equal(t, 1010+18, st.CellsUsed)
		require.Equal(t, st.CellsUsed, st.CellsIdle)
		require.Equal(t, 4096, st.CellsTotal)
	}, slow)
}
