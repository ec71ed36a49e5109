package engine_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"quern/engine"
	"quern/engine/enginetest"
)

// tight has cells for two prompts of 400.
var tight = engine.Limits{Cells: 1000, Seqs: 8, Batch: 256, UBatch: 256, Unified: true, Partial: true}

// slots is the memory of so many blocks of the fake: a page each.
func slots(n int) int64 { return int64(n) << 12 }

func withRAM(blocks int) engine.Config {
	return engine.Config{CacheRAM: slots(blocks), BlockTokens: 64}
}

func TestEvictedPrefixComesBack(t *testing.T) {
	bubble(t, tight, withRAM(100), func(t *testing.T, r *rig) {
		for round := range 3 {
			for i := range 5 {
				p := prompt(i, 400)
				out, res := r.run(engine.Request{Prompt: p, MaxTokens: 5})
				require.Equal(t, r.fake.Alone(p, engine.SamplerParams{}, 5), out)
				if round > 0 {
					require.Equal(t, 399, res.CachedTokens)
				}
			}
		}
		s := r.Stats()
		require.EqualValues(t, 5, s.Misses[engine.MissNew])
		require.EqualValues(t, 10, s.Misses[engine.MissNone])
		require.Positive(t, s.RAM.HitTokens)
		require.Equal(t, s.RAM.Blocks*4096, int(s.RAM.Bytes))
		require.EqualValues(t, s.Steps, r.fake.Steps())
		r.FlushCache()
		require.Zero(t, r.Stats().RAM.Blocks)
		_, res := r.run(engine.Request{Prompt: prompt(1, 400), MaxTokens: 1})
		require.Zero(t, res.CachedTokens)
	}, slow)
}

func TestSavedPrefixIsUsedInPart(t *testing.T) {
	bubble(t, tight, withRAM(100), func(t *testing.T, r *rig) {
		p := prompt(1, 400)
		r.run(engine.Request{Prompt: p, MaxTokens: 5})
		for i := range 3 {
			r.run(engine.Request{Prompt: prompt(10+i, 500), MaxTokens: 1})
		}
		for _, n := range []int{150, 128, 390, 64} { // within a block, at its end, in the last one
			r.run(engine.Request{Prompt: prompt(20+n, 500), MaxTokens: 1}) // push it out
			r.run(engine.Request{Prompt: prompt(30+n, 500), MaxTokens: 1})
			q := join(p[:n], prompt(2, 30))
			out, res := r.run(engine.Request{Prompt: q, MaxTokens: 5})
			require.Equal(t, r.fake.Alone(q, engine.SamplerParams{}, 5), out)
			require.Equal(t, n, res.CachedTokens)
		}
		require.EqualValues(t, 4, r.Stats().Misses[engine.MissDiffers])
	}, slow)
}

// A shared head is saved once, and what is resident of a prefix is not restored.
func TestSharedHeadIsSavedOnce(t *testing.T) {
	bubble(t, tight, withRAM(100), func(t *testing.T, r *rig) {
		head := prompt(1, 256)
		for i := range 4 {
			r.run(engine.Request{Prompt: join(head, prompt(10+i, 64)), MaxTokens: 1})
		}
		r.run(engine.Request{Prompt: prompt(2, 900), MaxTokens: 1}) // all of them go
		time.Sleep(time.Minute)                                     // what is idle is saved
		require.Equal(t, 4+4+14, r.Stats().RAM.Blocks)
		for i := range 4 {
			_, res := r.run(engine.Request{Prompt: join(head, prompt(10+i, 64), prompt(3, 10)), MaxTokens: 1})
			require.Equal(t, 320, res.CachedTokens)
		}
		require.Equal(t, 256+4*64, r.fake.Restored())
		require.EqualValues(t, 4, r.Stats().Misses[engine.MissEnds])
	}, slow)
}

func TestSaltSeparatesTiers(t *testing.T) {
	bubble(t, tight, withRAM(100), func(t *testing.T, r *rig) {
		p := prompt(1, 400)
		r.run(engine.Request{Prompt: p, MaxTokens: 1, CacheSalt: "a"})
		for i := range 3 {
			r.run(engine.Request{Prompt: prompt(10+i, 500), MaxTokens: 1, CacheSalt: "a"})
		}
		for _, c := range []struct {
			salt   string
			cached int
		}{{"b", 0}, {"", 0}, {"a", 399}} {
			_, res := r.run(engine.Request{Prompt: p, MaxTokens: 1, CacheSalt: c.salt})
			require.Equal(t, c.cached, res.CachedTokens, "salt %q", c.salt)
		}
	}, slow)
}

// What was of use stays, whatever passes by once; and what is asked to be kept
// stays longer than what is not.
func TestOneOffsGoFirst(t *testing.T) {
	for name, pin := range map[string]bool{"used": false, "pinned": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, tight, withRAM(33), func(t *testing.T, r *rig) {
				p := prompt(1, 400)
				push := func(from int) {
					for i := range 3 {
						r.run(engine.Request{Prompt: prompt(from+i, 500), MaxTokens: 1})
					}
				}
				r.run(engine.Request{Prompt: p, MaxTokens: 1, Pin: pin})
				if !pin {
					push(10)
					_, res := r.run(engine.Request{Prompt: p, MaxTokens: 1})
					require.Equal(t, 399, res.CachedTokens)
				}
				push(20)
				push(30)
				_, res := r.run(engine.Request{Prompt: p, MaxTokens: 1})
				require.Equal(t, 399, res.CachedTokens)
				_, res = r.run(engine.Request{Prompt: prompt(20, 500), MaxTokens: 1})
				require.Zero(t, res.CachedTokens)
				require.Positive(t, r.Stats().Misses[engine.MissEvicted])
				for i := range 200 { // but not for ever
					r.run(engine.Request{Prompt: prompt(100+i, 500), MaxTokens: 1})
				}
				_, res = r.run(engine.Request{Prompt: p, MaxTokens: 1})
				require.Zero(t, res.CachedTokens)
			}, slow)
		})
	}
}

func TestRestoreThatDoesNotPayIsNotDone(t *testing.T) {
	bubble(t, tight, withRAM(100), func(t *testing.T, r *rig) {
		for range 3 {
			for i := range 4 {
				p := prompt(i, 400)
				out, _ := r.run(engine.Request{Prompt: p, MaxTokens: 5})
				require.Equal(t, r.fake.Alone(p, engine.SamplerParams{}, 5), out)
			}
		}
		require.Positive(t, r.Stats().Misses[engine.MissCost])
		require.Less(t, r.fake.Restored(), 900, "only to learn what it costs")
	}, slow, func(f *enginetest.Fake) {
		f.StateCost = func(n int) time.Duration { return time.Duration(n) * 50 * time.Millisecond }
	})
}

// Streams go on while much is saved and restored.
func TestStreamsGoOnDuringRestore(t *testing.T) {
	l := enginetest.Small
	bubble(t, l, engine.Config{CacheRAM: slots(1000), BlockTokens: 64}, func(t *testing.T, r *rig) {
		p := prompt(1, 3000)
		for i := range 3 {
			r.run(engine.Request{Prompt: prompt(1+i, 3000), MaxTokens: 1})
			time.Sleep(time.Minute) // it is saved meanwhile
		}
		s := r.submit(engine.Request{Prompt: prompt(4, 20), MaxTokens: 60})
		time.Sleep(time.Second)
		back := r.submit(engine.Request{Prompt: p, MaxTokens: 1})
		longest, last := time.Duration(0), time.Now()
		for {
			_, err := s.Recv(t.Context())
			if err != nil {
				break
			}
			longest, last = max(longest, time.Since(last)), time.Now()
		}
		_, err := collect(back)
		require.NoError(t, err)
		require.Equal(t, 2999, back.Result().CachedTokens)
		require.Less(t, longest, 900*time.Millisecond, "of steps that take 100 ms")
		require.Greater(t, back.Result().TTFT, 2*time.Second, "it took its time")
	}, slow, func(f *enginetest.Fake) {
		f.StateCost = func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	})
}

func TestPrefixesSurviveARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &enginetest.Store{Delay: func() time.Duration { return time.Millisecond }}
		c := withRAM(100)
		c.Store = store
		p := prompt(1, 400)
		r := newRig(t, tight, c)
		first, _ := r.run(engine.Request{Prompt: p, MaxTokens: 9, CacheSalt: "a"})
		r.close()

		r = newRig(t, tight, c)
		require.Equal(t, 7, r.Stats().Disk.Blocks)
		again, res := r.run(engine.Request{Prompt: p, MaxTokens: 9, CacheSalt: "a"})
		require.Equal(t, first, again)
		require.Equal(t, 399, res.CachedTokens)
		require.EqualValues(t, 399, r.Stats().Disk.HitTokens)
		_, res = r.run(engine.Request{Prompt: p, MaxTokens: 9})
		require.Zero(t, res.CachedTokens, "of another salt")
		r.FlushCache()
		time.Sleep(time.Second)
		require.Zero(t, r.Stats().Disk.Blocks)
		r.close()
	})
}

// The first request of a node has no measured cost to hold a slow store against:
// it waits while blocks come.
func TestFirstRequestWaitsForASlowStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &enginetest.Store{}
		c := withRAM(100)
		c.Store = store
		p := prompt(1, 400)
		r := newRig(t, tight, c, slow)
		r.run(engine.Request{Prompt: p, MaxTokens: 2})
		r.close()
		reads := 0
		store.Delay = func() time.Duration { reads++; return time.Duration(reads) * 600 * time.Millisecond }
		r = newRig(t, tight, c, slow)
		_, res := r.run(engine.Request{Prompt: p, MaxTokens: 2})
		require.Equal(t, 399, res.CachedTokens)
		r.close()
	})
}

// A store that loses, fails or sleeps costs what it should have saved, no more.
func TestStoreFaults(t *testing.T) {
	yes := func() bool { return true }
	for name, c := range map[string]struct {
		change func(*enginetest.Store)
		cached int
		why    engine.Miss
	}{
		"fine":          {func(*enginetest.Store) {}, 399, engine.MissNone},
		"fails to give": {func(s *enginetest.Store) { s.FailGet = yes }, 0, engine.MissStore},
		"sleeps":        {func(s *enginetest.Store) { s.Delay = func() time.Duration { return time.Hour } }, 0, engine.MissSlow},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &enginetest.Store{}
				cfg := withRAM(100)
				cfg.Store = store
				p := prompt(1, 400)
				r := newRig(t, tight, cfg, slow)
				r.run(engine.Request{Prompt: p, MaxTokens: 2})
				r.close()
				c.change(store)
				r = newRig(t, tight, cfg, slow)
				start := time.Now()
				out, res := r.run(engine.Request{Prompt: p, MaxTokens: 9})
				require.Equal(t, r.fake.Alone(p, engine.SamplerParams{}, 9), out)
				require.Equal(t, c.cached, res.CachedTokens)
				require.Positive(t, r.Stats().Misses[c.why])
				require.Equal(t, c.why == engine.MissStore, r.Stats().Disk.Lost > 0)
				require.Less(t, time.Since(start), time.Minute)
				r.close()
			})
		})
	}
}

func TestStoreThatFailsToWrite(t *testing.T) {
	store := &enginetest.Store{FailPut: func() bool { return true }}
	c := withRAM(100)
	c.Store = store
	bubble(t, tight, c, func(t *testing.T, r *rig) {
		for range 2 {
			for i := range 5 {
				r.run(engine.Request{Prompt: prompt(i, 400), MaxTokens: 1})
			}
		}
		require.Positive(t, r.Stats().RAM.HitTokens, "the memory goes on without it")
		require.Positive(t, r.Stats().Disk.NotSaved)
		require.Zero(t, r.Stats().Disk.Blocks)
	}, slow)
}

func TestCloseDoesNotWaitForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &enginetest.Store{Delay: func() time.Duration { return 700 * time.Millisecond }}
		c := withRAM(100)
		c.Store, c.CloseTime = store, 2*time.Second
		r := newRig(t, tight, c)
		for i := range 3 {
			r.run(engine.Request{Prompt: prompt(i, 900), MaxTokens: 1})
		}
		start := time.Now()
		r.close()
		require.Less(t, time.Since(start), 4*time.Second)
	})
}

// Where sequences can't be cut, tiers are off and all else works.
func TestNoTiersForWholeSequences(t *testing.T) {
	l := tight
	l.Partial = false
	store := &enginetest.Store{}
	c := withRAM(100)
	c.Store = store
	bubble(t, l, c, func(t *testing.T, r *rig) {
		p := prompt(1, 400)
		out, _ := r.run(engine.Request{Prompt: p, MaxTokens: 5})
		require.Equal(t, r.fake.Alone(p, engine.SamplerParams{}, 5), out)
		require.Zero(t, r.Stats().RAM.Capacity)
	}, slow)
}

func TestBrokenStatesAreDropped(t *testing.T) {
	broken := false
	bubble(t, tight, withRAM(100), func(t *testing.T, r *rig) {
		p := prompt(1, 400)
		push := func() {
			for i := range 3 {
				r.run(engine.Request{Prompt: prompt(10+i, 500), MaxTokens: 1})
			}
		}
		r.run(engine.Request{Prompt: p, MaxTokens: 1})
		push()
		broken = true
		out, res := r.run(engine.Request{Prompt: p, MaxTokens: 9})
		require.Equal(t, r.fake.Alone(p, engine.SamplerParams{}, 9), out)
		require.Equal(t, 128, res.CachedTokens)
		require.EqualValues(t, 1, r.Stats().Misses[engine.MissState])
		push()
		broken = false
		_, res = r.run(engine.Request{Prompt: p, MaxTokens: 1})
		require.Equal(t, 399, res.CachedTokens, "it was saved anew")
	}, slow, func(f *enginetest.Fake) {
		f.FailRestore = func(from, _ int) error {
			if broken && from == 128 {
				return errors.New("does not fit")
			}
			return nil
		}
	})
}
