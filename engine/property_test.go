package engine_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"quern/engine"
	"quern/engine/enginetest"
)

// A world is an engine under random load. All of it follows from one seed, up to
// the order in which goroutines run.
type world struct {
	*rig
	limits engine.Limits
	fault  string

	store *enginetest.Store

	mu       sync.Mutex
	ended    int
	finished int
	reused   int
	accepted int
	wrong    int // tokens drafted in vain
}

var (
	// worldCount is how many random loads are tried.
	worldCount = 150

	errStep = errors.New("scripted failure of a step")
	errRow  = errors.New("scripted failure of a row")

	errState = errors.New("scripted failure of a state")
)

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// withTiers gives a world tiers, some of which hardly hold anything and fail.
func (w *world) withTiers(seed uint64, c *engine.Config, f *enginetest.Fake) {
	r := rand.New(rand.NewPCG(seed, 5))
	c.BlockTokens = pick(r, 8, 16, 32, 128)
	c.CacheRAM = int64(pick(r, 1, 3, 10, 1000)) << 12
	if r.IntN(2) == 0 {
		calls := rand.New(rand.NewPCG(seed, 6))
		w.store = &enginetest.Store{Most: pick(r, 1, 5, 1000)}
		slow := pick(r, 0, 20, 3000)
		w.store.Delay = func() time.Duration { return time.Duration(calls.IntN(slow+1)) * time.Millisecond }
		if r.IntN(2) == 0 {
			w.store.FailPut = func() bool { return calls.IntN(10) == 0 }
			w.store.FailGet = func() bool { return calls.IntN(10) == 0 }
		}
		c.Store = w.store
	}
	states := rand.New(rand.NewPCG(seed, 7))
	cost := pick(r, 0, 1, 5)
	f.StateCost = func(n int) time.Duration { return time.Duration(cost*n) * 100 * time.Microsecond }
	if r.IntN(2) == 0 {
		fail := func(int, int) error {
			switch states.IntN(30) {
			case 0:
				return errState
			case 1:
				return engine.ErrNoCells
			}
			return nil
		}
		f.FailSave, f.FailRestore = fail, fail
	}
}

func newWorld(t *testing.T, seed uint64, tiers bool) *world {
	r := rand.New(rand.NewPCG(seed, 1))
	w := &world{fault: pick(r, "", "", "cells", "step", "abort", "row", "all")}
	w.limits = engine.Limits{
		Seqs: pick(r, 1, 2, 3, 5, 12, 40), Batch: pick(r, 1, 3, 8, 32, 128),
		Unified: r.IntN(4) > 0, Partial: r.IntN(4) > 0, Vocab: 1000,
	}
	w.limits.Cells = pick(r, 40, 80, 150, 400, 2000)
	if !w.limits.Unified {
		w.limits.Cells *= w.limits.Seqs
	}
	w.limits.UBatch = w.limits.Batch
	if testing.Verbose() {
		t.Logf("%+v fault %q", w.limits, w.fault)
	}
	config := engine.Config{
		MaxRunning: pick(r, 1, 2, 4, 8), MaxQueue: pick(r, 3, 10, 100),
		MaxIdle: pick(r, 0, 0, 0, 1, 3, -1), Headroom: pick(r, 0, 1, 8),
		MinWait: pick(r, 1, 8, 32), MinChunk: pick(r, 1, 4, 16),
		MaxDraft: pick(r, 0, 1, 4, 32),
	}
	habit := pick(r, 0, 3, 10, 100)
	if w.limits.Partial && r.IntN(3) == 0 {
		config.Drafter = newDraftModel(t, w.limits, r)
	}
	faults := rand.New(rand.NewPCG(seed, 2))
	rowFaults := rand.New(rand.NewPCG(seed, 3))
	w.rig = newRigOf(t, w.limits, &config, func(f *enginetest.Fake) {
		if tiers {
			w.withTiers(seed, &config, f)
		}
		f.EOG, f.EOGEvery, f.Habit = 7, pick(r, 5, 40), habit
		f.Cost = func(b *engine.Batch) time.Duration {
			return 10*time.Millisecond + time.Duration(b.N)*time.Millisecond
		}
		f.Fail = func(step int, _ *engine.Batch) error {
			hit := faults.IntN(8) == 0
			if !w.limits.Partial && step > 60 && w.fault == "abort" {
				return nil // each one costs all that was computed
			}
			switch {
			case hit && (w.fault == "cells" || w.fault == "all"):
				return engine.ErrNoCells
			case hit && w.fault == "step", w.fault == "all" && faults.IntN(20) == 0:
				return errStep
			case hit && w.fault == "abort", w.fault == "all" && faults.IntN(20) == 1:
				return engine.ErrAborted
			}
			return nil
		}
		if w.fault == "row" || w.fault == "all" {
			f.RowError = func([]engine.Token, *enginetest.Sampler) error {
				if rowFaults.IntN(40) == 0 {
					return errRow
				}
				return nil
			}
		}
	})
	return w
}

// newDraftModel is right but for one in a few tokens, short of cells, and fails
// at times.
func newDraftModel(t *testing.T, l engine.Limits, r *rand.Rand) *enginetest.Fake {
	l.Seqs, l.Batch = pick(r, 1, 2, 8), pick(r, 2, 8, 64)
	l.Cells = pick(r, 50, 200, 1000) * l.Seqs
	d := enginetest.New(t, l)
	d.Habit = pick(r, 0, 3, 10, 100)
	d.Cost = func(b *engine.Batch) time.Duration { return time.Millisecond + time.Duration(b.N)*50*time.Microsecond }
	often := pick(r, 5, 50, 1000)
	d.Fail = func(step int, _ *engine.Batch) error {
		if step%often == 0 {
			return pick(r, errStep, engine.ErrNoCells, engine.ErrAborted)
		}
		return nil
	}
	t.Cleanup(func() {
		require.Zero(t, d.OpenSamplers())
		require.Zero(t, d.CellsUsed())
	})
	return d
}

// client submits a few requests one after the other: new prompts with a common
// head, or further turns of what it got.
func (w *world) client(seed uint64) {
	r := rand.New(rand.NewPCG(seed, 4))
	var history []engine.Token
	for range 1 + r.IntN(4) {
		time.Sleep(time.Duration(r.IntN(400)) * time.Millisecond)
		limit := w.MaxLength()
		if len(history) == 0 || r.IntN(3) == 0 {
			history = join(prompt(r.IntN(2), r.IntN(limit/2+1)), prompt(int(seed)*100+r.IntN(100), 1+r.IntN(8)))
		} else {
			history = join(history, prompt(r.IntN(1000), 1+r.IntN(20)))
		}
		out := w.one(r, history, 1+r.IntN(30))
		history = join(history, out)
	}
}

// someTokens follow about every fifth token that is sampled.
func someTokens(sampled engine.Token) []engine.Token {
	if sampled%5 != 0 {
		return nil
	}
	return []engine.Token{501, 502, 503}[:1+sampled%3]
}

func (w *world) one(r *rand.Rand, p []engine.Token, maxTokens int) []engine.Token {
	params := engine.SamplerParams{Seed: uint64(r.IntN(2))}
	sampler, err := w.NewSampler(params)
	w.isError(err, nil)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	req := engine.Request{
		Prompt: p, MaxTokens: maxTokens, Sampler: sampler, Logprobs: pick(r, -1, -1, 0, 2), CacheSalt: pick(r, "", "", "a"),
	}
	if req.Logprobs <= 0 && r.IntN(3) == 0 {
		req.Insert = someTokens
	}
	quits := r.IntN(4) == 0
	if r.IntN(8) == 0 {
		req.Deadline = time.Now().Add(time.Duration(r.IntN(500)) * time.Millisecond)
	}
	stream, err := w.Submit(ctx, req)
	if err != nil {
		if _, long := errors.AsType[*engine.TooLongError](err); long {
			assert.Greater(w.t, len(p)+maxTokens, w.MaxLength())
		} else {
			w.isError(err, engine.ErrQueueFull)
		}
		assert.True(w.t, sampler.(*enginetest.Sampler).Closed())
		return nil
	}
	var watch sync.WaitGroup
	if quits {
		after, how := time.Duration(r.IntN(300))*time.Millisecond, r.IntN(2)
		watch.Go(func() {
			time.Sleep(after)
			if how == 0 {
				cancel()
			} else {
				stream.Cancel()
			}
		})
	}
	var out []engine.Token
	for {
		if r.IntN(5) == 0 {
			time.Sleep(time.Duration(r.IntN(100)) * time.Millisecond)
		}
		got, err := stream.Recv(context.Background())
		if r.IntN(5) == 0 { // what was given stays as it is meanwhile
			time.Sleep(time.Duration(r.IntN(100)) * time.Millisecond)
		}
		for _, o := range got {
			out = append(out, o.Token)
			w.checkLogprobs(o, req.Logprobs)
		}
		if err != nil {
			w.check(req, params, sampler.(*enginetest.Sampler), stream.Result(), out, err)
			break
		}
	}
	watch.Wait()
	return out
}

// isError is for goroutines, where require is out of place.
func (w *world) isError(err, want error) {
	if !errors.Is(err, want) {
		w.t.Errorf("error is %v, want %v", err, want)
	}
}

func (w *world) checkLogprobs(o engine.Output, want int) {
	assert.Len(w.t, o.Top, max(0, want))
	for k, top := range o.Top {
		assert.Equal(w.t, o.Token+engine.Token(k), top.Token)
	}
	if want < 0 {
		assert.Zero(w.t, o.Logprob)
	}
}

func (w *world) check(req engine.Request, p engine.SamplerParams, s *enginetest.Sampler, res engine.Result, out []engine.Token, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.t
	w.ended++
	w.reused += res.CachedTokens
	w.accepted += res.AcceptedTokens
	w.wrong += res.DraftedTokens - res.AcceptedTokens
	alone := w.fake.AloneWith(req.Prompt, p, req.MaxTokens, req.Insert)
	full := alone
	if len(full) > 0 && full[len(full)-1] == w.fake.EOG {
		full = full[:len(full)-1]
	}
	assert.True(t, s.Closed())
	assert.Equal(t, len(req.Prompt), res.PromptTokens)
	assert.LessOrEqual(t, res.CachedTokens, max(0, len(req.Prompt)-1))
	assert.Len(t, s.Accepted, res.OutputTokens, "tokens sampled for it")
	switch res.Reason {
	case engine.ReasonStop, engine.ReasonLength:
		w.finished++
		assert.Equal(t, io.EOF, err)
		w.isError(res.Err, nil)
		assert.Equal(t, full, append([]engine.Token{}, out...))
		assert.Equal(t, len(alone), res.OutputTokens)
		assert.Equal(t, res.Reason == engine.ReasonStop, len(full) < len(alone))
	default:
		assert.Equal(t, res.Err, err)
		assert.LessOrEqual(t, len(out), len(full))
		assert.Equal(t, full[:min(len(out), len(full))], append([]engine.Token{}, out...))
		switch res.Reason {
		case engine.ReasonCancelled:
			w.isError(err, engine.ErrCancelled)
		case engine.ReasonDeadline:
			w.isError(err, context.DeadlineExceeded)
			assert.False(t, req.Deadline.IsZero())
		default:
			assert.Equal(t, engine.ReasonError, res.Reason)
			assert.NotEmpty(t, w.fault, "failed without a fault: %v", err)
		}
	}
	if res.Preemptions == 0 && res.OutputTokens > 0 && w.fault != "abort" && w.fault != "all" {
		assert.Equal(t, res.PromptTokens, res.CachedTokens+s.PromptRows, "cached + computed = prompt")
	}
}

func (w *world) audit() {
	w.Inspect(func(cells, sequences int, err error) {
		w.isError(err, nil)
		assert.Equal(w.t, w.fake.CellsUsed(), cells, "cells in the backend and in the ledger")
		assert.Equal(w.t, w.fake.Sequences(), sequences)
	})
}

func TestRandomLoad(t *testing.T) {
	s := randomLoads(t, false)
	require.Zero(t, s.RAM.HitTokens)
}

// With tiers below the KV cache, all that holds without them does.
func TestRandomLoadWithTiers(t *testing.T) {
	s := randomLoads(t, true)
	require.Positive(t, s.RAM.HitTokens)
	require.Positive(t, s.RAM.Evicted)
	require.Positive(t, s.RAM.NotSaved)
	require.Positive(t, s.Disk.HitTokens)
	require.Positive(t, s.Disk.NotSaved)
	for kind, n := range s.Misses {
		if k := engine.Miss(kind); k != engine.MissGone && k != engine.MissSlow && k != engine.MissStore {
			require.Positive(t, n, "misses of kind %v", k)
		}
	}
}

func randomLoads(t *testing.T, tiers bool) (sum engine.Stats) {
	worlds := worldCount
	if testing.Short() {
		worlds = 30
	}
	finished, reused, accepted, wrong, preempted, evicted := 0, 0, 0, 0, uint64(0), uint64(0)
	for seed := range worlds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, uint64(seed), tiers)
				var clients sync.WaitGroup
				for c := range 12 {
					clients.Go(func() { w.client(uint64(seed*1000 + c)) })
				}
				stop := make(chan struct{})
				var auditor sync.WaitGroup
				auditor.Go(func() {
					for {
						select {
						case <-stop:
							return
						case <-time.After(7 * time.Millisecond):
							w.audit()
						}
					}
				})
				clients.Wait()
				close(stop)
				auditor.Wait()
				s := w.Stats()
				require.Zero(t, s.Running)
				require.Zero(t, s.Waiting)
				require.EqualValues(t, w.ended, s.Finished)
				require.EqualValues(t, w.ended, s.Submitted)
				require.Zero(t, w.fake.OpenSamplers())
				w.FlushCache()
				w.Inspect(func(cells, sequences int, err error) {
					require.NoError(t, err)
					require.Zero(t, cells)
					require.Zero(t, sequences)
				})
				require.Less(t, w.fake.Steps(), 20000)
				for kind, n := range s.Misses {
					sum.Misses[kind] += n
				}
				sum.RAM = sumOf(sum.RAM, s.RAM)
				sum.Disk = sumOf(sum.Disk, s.Disk)
				finished, reused = finished+w.finished, reused+w.reused
				accepted, wrong = accepted+w.accepted, wrong+w.wrong
				preempted, evicted = preempted+s.Preemptions, evicted+s.Evictions
				w.close()
			})
		})
	}
	t.Logf("finished %d, reused %d tokens, preempted %d, evicted %d, drafts right %d, wrong %d",
		finished, reused, preempted, evicted, accepted, wrong)
	t.Logf("RAM %+v disk %+v misses %v", sum.RAM, sum.Disk, sum.Misses)
	require.Positive(t, finished)
	require.Positive(t, accepted)
	require.Positive(t, wrong)
	require.Positive(t, reused)
	require.Positive(t, preempted)
	require.Positive(t, evicted)
	return sum
}

func sumOf(a, b engine.TierStats) engine.TierStats {
	a.HitTokens += b.HitTokens
	a.Saved += b.Saved
	a.NotSaved += b.NotSaved
	a.Evicted += b.Evicted
	return a
}
