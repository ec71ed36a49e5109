package engine_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"quern/engine"
	"quern/engine/enginetest"
)

// forever is a set of limits in which many streams can run for long.
var forever = engine.Limits{Cells: 1 << 20, Seqs: 64, Batch: 512, UBatch: 512, Unified: true, Partial: true}

// A token costs no allocation on its way from the backend to the reader, be it
// guessed or not.
func TestNoAllocationPerToken(t *testing.T) {
	for name, c := range map[string]struct{ draft, habit int }{"plain": {0, 0}, "drafts": {15, 20}} {
		t.Run(name, func(t *testing.T) { noAllocationPerToken(t, c.draft, c.habit) })
	}
}

func noAllocationPerToken(t *testing.T, draft, habit int) {
	steps := make(chan struct{})
	r := newRig(t, forever, engine.Config{MaxRunning: 8, MaxDraft: draft}, func(f *enginetest.Fake) {
		f.OnStep = func(*engine.Batch) { <-steps }
		f.Habit = habit
	})
	var streams []*engine.Stream
	for i := range 8 {
		streams = append(streams, r.submit(engine.Request{
			Prompt: prompt(i, 50), MaxTokens: 100_000, Deadline: time.Now().Add(time.Hour),
		}))
	}
	// Let all of them get to decoding.
	for r.Stats().GeneratedTokens < 8*100 {
		steps <- struct{}{}
	}
	ctx := context.Background()
	for _, s := range streams {
		_, err := s.Recv(ctx)
		require.NoError(t, err)
	}
	allocs := testing.AllocsPerRun(3000, func() {
		steps <- struct{}{}
		for _, s := range streams {
			_, err := s.Recv(ctx)
			if err != nil {
				t.Error(err)
			}
		}
	})
	close(steps)
	require.Zero(t, allocs)
	require.Equal(t, draft > 0, r.Stats().AcceptedTokens > 0)
	for _, s := range streams {
		s.Cancel()
		_, err := collect(s)
		require.ErrorIs(t, err, engine.ErrCancelled)
	}
}

// One iteration is one step of the loop with so many streams, each with a reader;
// the fake's own work, about 20 ns a row, is part of it.
func BenchmarkStep(b *testing.B) {
	for _, streams := range []int{1, 8, 32} {
		b.Run(fmt.Sprint(streams), func(b *testing.B) {
			const length = 2000
			f := enginetest.New(b, forever)
			e := engine.New(f, engine.Config{MaxRunning: streams, MaxIdle: -1})
			b.ReportAllocs()
			b.ResetTimer()
			tokens := 0
			for left := b.N; left > 0; left -= length {
				done := make(chan int)
				for i := range streams {
					s, err := e.Submit(context.Background(), engine.Request{
						Prompt: prompt(i, 8), MaxTokens: min(left, length), Logprobs: -1,
					})
					require.NoError(b, err)
					go func() { done <- count(s) }()
				}
				for range streams {
					tokens += <-done
				}
			}
			b.StopTimer()
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(tokens), "ns/token")
			require.NoError(b, e.Close())
		})
	}
}

func count(s *engine.Stream) int {
	n := 0
	for {
		out, err := s.Recv(context.Background())
		n += len(out)
		if errors.Is(err, io.EOF) {
			return n
		}
	}
}

// The cost of finding a long prompt among many resident ones.
func BenchmarkAdmitCached(b *testing.B) {
	f := enginetest.New(b, forever)
	e := engine.New(f, engine.Config{})
	head := prompt(1, 4000)
	for i := range 40 {
		s, err := e.Submit(context.Background(), engine.Request{Prompt: join(head, prompt(i+2, 400)), MaxTokens: 1, Logprobs: -1})
		require.NoError(b, err)
		count(s)
	}
	p := join(head, prompt(20, 400))
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		s, err := e.Submit(context.Background(), engine.Request{Prompt: p, MaxTokens: 1, Logprobs: -1})
		require.NoError(b, err)
		count(s)
	}
	b.StopTimer()
	require.NoError(b, e.Close())
}
