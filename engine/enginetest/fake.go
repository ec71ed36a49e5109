package enginetest

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"quern/engine"
)

// Fake is an engine.Backend. Set its hooks before it is given to an engine.
type Fake struct {
	// Next gives the token after a history; by default a hash of it decides,
	// within [0,Vocab), and EOG comes once in about EOGEvery tokens.
	Next     func(history []engine.Token, s *Sampler) engine.Token
	EOG      engine.Token // default -1: the model never ends its turn
	EOGEvery int
	Vocab    int // default 1000
	// Habit makes the model repeat itself: but for about one in Habit tokens, the
	// one before it and the seed alone decide, among a few.
	Habit int

	// Cost is how long a step takes, StateCost to save or restore n positions.
	Cost      func(b *engine.Batch) time.Duration
	StateCost func(n int) time.Duration
	// Fail makes a step return an error. It has the effects that Backend.Step
	// allows for that error.
	Fail func(step int, b *engine.Batch) error
	// RowError makes a row's sampling fail.
	RowError func(history []engine.Token, s *Sampler) error
	// FailSampler makes NewSampler fail.
	FailSampler func(p engine.SamplerParams) error
	// FailSave and FailRestore make a stretch not be saved or restored.
	FailSave, FailRestore func(from, to int) error
	// OnStep sees every batch before it is computed.
	OnStep func(b *engine.Batch)

	tb       testing.TB
	limits   engine.Limits
	batch    engine.Batch
	kv       *kv
	tops     [][]engine.TokenLogprob
	history  []engine.Token
	next     []int // by sequence: the position that Step expects
	steps    int
	copied   int
	restored int
	rows     int
	samplers atomic.Int64
	inside   atomic.Int64
	aborted  chan struct{}
	closed   atomic.Bool
}

var _ engine.StateBackend = (*Fake)(nil)

// Small is a set of limits for tests: unified, with room for a few prompts.
var Small = engine.Limits{Cells: 4096, Seqs: 16, Batch: 256, UBatch: 256, Unified: true, Partial: true}

// New returns a fake with these limits that reports misuse to tb.
func New(tb testing.TB, l engine.Limits) *Fake {
	n := l.Batch
	return &Fake{
		EOG: -1, EOGEvery: 50, Vocab: 1000,
		tb: tb, limits: l, kv: newKV(l), next: make([]int, l.Seqs), aborted: make(chan struct{}, 1),
		tops: make([][]engine.TokenLogprob, n),
		batch: engine.Batch{
			Token: make([]engine.Token, n), Pos: make([]int32, n), Seq: make([]engine.SeqID, n),
			Want: make([]int32, n), Sampler: make([]engine.Sampler, n), Out: make([]engine.Output, n),
		},
	}
}

func (f *Fake) misuse(format string, args ...any) error {
	err := fmt.Errorf("misuse of the backend: "+format, args...)
	f.tb.Error(err)
	return err
}

// enter guards what only one goroutine at a time may call.
func (f *Fake) enter(call string) {
	if f.inside.Add(1) != 1 {
		_ = f.misuse("%s while another call is running", call)
	}
	if f.closed.Load() {
		_ = f.misuse("%s after Close", call)
	}
}

func (f *Fake) leave() { f.inside.Add(-1) }

// Limits implements engine.Backend.
func (f *Fake) Limits() engine.Limits { return f.limits }

// Batch implements engine.Backend.
func (f *Fake) Batch() *engine.Batch { return &f.batch }

// IsEOG implements engine.Backend.
func (f *Fake) IsEOG(t engine.Token) bool { return t == f.EOG }

// NewSampler implements engine.Backend.
func (f *Fake) NewSampler(p engine.SamplerParams) (engine.Sampler, error) {
	if f.FailSampler != nil {
		if err := f.FailSampler(p); err != nil {
			return nil, err
		}
	}
	f.samplers.Add(1)
	return &Sampler{Params: p, fake: f}, nil
}

// SeqCopy implements engine.Backend.
func (f *Fake) SeqCopy(src, dst engine.SeqID, n int) error {
	f.enter("SeqCopy")
	defer f.leave()
	switch {
	case !f.valid(src) || !f.valid(dst) || src == dst:
		return f.misuse("SeqCopy from %d to %d of %d sequences", src, dst, f.limits.Seqs)
	case n < 1 || n > len(f.kv.seqs[src]):
		return f.misuse("SeqCopy of %d positions from a sequence of %d", n, len(f.kv.seqs[src]))
	case len(f.kv.seqs[dst]) > 0:
		return f.misuse("SeqCopy into sequence %d, which holds %d positions", dst, len(f.kv.seqs[dst]))
	case !f.limits.Unified && n > f.limits.Cells/f.limits.Seqs:
		return f.misuse("SeqCopy of %d positions into a stream of %d", n, f.limits.Cells/f.limits.Seqs)
	case !f.limits.Partial && n != len(f.kv.seqs[src]):
		return f.misuse("SeqCopy of a part, %d of %d, where only all works", n, len(f.kv.seqs[src]))
	}
	f.kv.copy(src, dst, n)
	f.copied += n
	return nil
}

// SeqRemove implements engine.Backend.
func (f *Fake) SeqRemove(seq engine.SeqID, from int) error {
	f.enter("SeqRemove")
	defer f.leave()
	switch {
	case !f.valid(seq):
		return f.misuse("SeqRemove of sequence %d of %d", seq, f.limits.Seqs)
	case from < 0 || from > len(f.kv.seqs[seq]):
		return f.misuse("SeqRemove from %d of a sequence of %d", from, len(f.kv.seqs[seq]))
	case !f.limits.Partial && from > 0:
		return f.misuse("SeqRemove of a part where only all works")
	}
	f.kv.remove(seq, from)
	return nil
}

// Abort implements engine.Backend.
func (f *Fake) Abort() {
	if f.closed.Load() {
		_ = f.misuse("Abort after Close")
	}
	select {
	case f.aborted <- struct{}{}:
	default:
	}
}

// Close implements engine.Backend.
func (f *Fake) Close() error {
	f.enter("Close")
	defer f.leave()
	f.closed.Store(true)
	return nil
}

func (f *Fake) valid(id engine.SeqID) bool { return id >= 0 && int(id) < f.limits.Seqs }
