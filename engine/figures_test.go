package engine_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"quern/engine"
	"quern/engine/enginetest"
)

// The scheduler's part in the figures that the project holds itself to, on a
// model of a two-core machine with a model of half a billion parameters: 29 ms a
// step for reading the weights and 11 ms a row. Time is synctest's.

const perStep, perRow = 29 * time.Millisecond, 11 * time.Millisecond

var twoCores = engine.Limits{Cells: 16384, Seqs: 64, Batch: 2048, UBatch: 512, Unified: true, Partial: true}

func cost(rows int) time.Duration { return perStep + time.Duration(rows)*perRow }

func onTwoCores(t *testing.T, f func(t *testing.T, r *rig)) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, twoCores, engine.Config{}, func(f *enginetest.Fake) {
			f.Cost = func(b *engine.Batch) time.Duration { return cost(b.N) }
		})
		f(t, r)
		r.close()
	})
}

// gaps reads a stream and returns the times between its tokens.
func gaps(t *testing.T, s *engine.Stream) []time.Duration {
	var out []time.Duration
	var last time.Time
	for {
		_, err := s.Recv(context.Background())
		if err != nil {
			require.NoError(t, s.Result().Err)
			return out
		}
		if !last.IsZero() {
			out = append(out, time.Since(last))
		}
		last = time.Now()
	}
}

func TestLongPromptBesideAStream(t *testing.T) {
	onTwoCores(t, func(t *testing.T, r *rig) {
		_, alone := r.run(engine.Request{Prompt: prompt(1, 1450), MaxTokens: 1})
		s := r.submit(engine.Request{Prompt: prompt(2, 20), MaxTokens: 150})
		var longest time.Duration
		var stream sync.WaitGroup
		stream.Go(func() {
			for _, g := range gaps(t, s) {
				longest = max(longest, g)
			}
		})
		time.Sleep(1500 * time.Millisecond)
		_, beside := r.run(engine.Request{Prompt: prompt(3, 1450), MaxTokens: 1})
		stream.Wait()
		idle := cost(1)
		t.Logf("longest gap %v = %.1f x idle; prompt alone %v, beside a stream %v = %.2f x",
			longest, float64(longest)/float64(idle), alone.TTFT, beside.TTFT, float64(beside.TTFT)/float64(alone.TTFT))
		require.LessOrEqual(t, longest, 7*idle)
		require.LessOrEqual(t, float64(beside.TTFT), 1.3*float64(alone.TTFT))
	})
}

func TestLongPromptBesideSevenStreams(t *testing.T) {
	onTwoCores(t, func(t *testing.T, r *rig) {
		_, alone := r.run(engine.Request{Prompt: prompt(1, 1450), MaxTokens: 1})
		var longest [7]time.Duration
		var streams sync.WaitGroup
		for i := range longest {
			s := r.submit(engine.Request{Prompt: prompt(10+i, 20), MaxTokens: 100})
			streams.Go(func() {
				for _, g := range gaps(t, s)[10:] {
					longest[i] = max(longest[i], g)
				}
			})
		}
		time.Sleep(5 * time.Second)
		_, beside := r.run(engine.Request{Prompt: prompt(3, 1450), MaxTokens: 1})
		streams.Wait()
		t.Logf("longest gap %v, a step %v; prompt %.2f x", longest[0], cost(7), float64(beside.TTFT)/float64(alone.TTFT))
		for _, l := range longest {
			require.LessOrEqual(t, l, 7*cost(7))
		}
		require.LessOrEqual(t, float64(beside.TTFT), 1.5*float64(alone.TTFT))
	})
}

func TestFirstTokenOfACachedPrompt(t *testing.T) {
	onTwoCores(t, func(t *testing.T, r *rig) {
		_, cold := r.run(engine.Request{Prompt: prompt(1, 733), MaxTokens: 64})
		_, warm := r.run(engine.Request{Prompt: prompt(1, 733), MaxTokens: 64})
		t.Logf("cold %v, warm %v", cold.TTFT, warm.TTFT)
		require.Equal(t, 732, warm.CachedTokens)
		require.Equal(t, cost(1), warm.TTFT)
	})
}

func TestEightPromptsWithOneHead(t *testing.T) {
	onTwoCores(t, func(t *testing.T, r *rig) {
		head := prompt(1, 650)
		start := time.Now()
		var all sync.WaitGroup
		cached := 0
		var mu sync.Mutex
		for i := range 8 {
			all.Go(func() {
				_, res := r.run(engine.Request{Prompt: join(head, prompt(10+i, 15)), MaxTokens: 16})
				mu.Lock()
				defer mu.Unlock()
				cached += res.CachedTokens
			})
		}
		all.Wait()
		took := time.Since(start)
		each := 8*cost(665) + 15*cost(8)
		t.Logf("took %v; with eight prefills %v: %.2f x", took, each, float64(took)/float64(each))
		require.Equal(t, 7*650, cached)
		require.Equal(t, 650+8*15+8*15, r.fake.Rows())
		require.Less(t, float64(took), 0.25*float64(each))
	})
}

func TestChatSessionsInTurn(t *testing.T) {
	for name, c := range map[string]struct {
		atOnce, first, output int
		reused                float64 // of what was there before
	}{
		"one at a time":         {1, 1090, 16, 1},
		"one at a time, full":   {1, 1040, 64, 1},
		"eight at a time":       {8, 350, 64, 1},
		"eight at a time, full": {8, 1040, 64, 1},
		"more than fits":        {8, 1350, 64, 0.75}, // 20,000 tokens in 16,384 cells
	} {
		t.Run(name, func(t *testing.T) {
			onTwoCores(t, func(t *testing.T, r *rig) {
				k := chat{rig: r, history: make([][]engine.Token, 12), first: c.first, output: c.output}
				for turn := range 3 {
					for s := 0; s < len(k.history); s += c.atOnce {
						k.turns(turn, s, min(s+c.atOnce, len(k.history)))
					}
				}
				t.Logf("cached %.3f of the prompts, %.3f of what could be; cells %d",
					float64(k.cached)/float64(k.total), float64(k.cached)/float64(k.known), r.Stats().CellsUsed)
				require.GreaterOrEqual(t, float64(k.cached)/float64(k.known), c.reused)
			})
		})
	}
}

type chat struct {
	*rig
	history       [][]engine.Token
	first, output int

	mu sync.Mutex
	// Tokens of the later turns' prompts: all, reused, computed in the turn before.
	total, cached, known int
}

// turns lets some sessions have a turn at once.
func (k *chat) turns(turn, from, to int) {
	var all sync.WaitGroup
	defer all.Wait()
	for s := from; s < to; s++ {
		all.Go(func() {
			user := prompt(100+10*s+turn, 62)
			if turn == 0 {
				user = join(prompt(1, 25), prompt(100+10*s, k.first))
			}
			k.history[s] = join(k.history[s], user)
			out, res := k.run(engine.Request{Prompt: k.history[s], MaxTokens: k.output})
			k.history[s] = join(k.history[s], out)
			k.mu.Lock()
			defer k.mu.Unlock()
			if turn > 0 {
				k.total += res.PromptTokens
				k.cached += res.CachedTokens
				k.known += res.PromptTokens - len(user) - 1
			}
		})
	}
}
