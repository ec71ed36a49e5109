package llama

import (
	"errors"
	"math"

	"quern/cgo"
	"quern/engine"
)

// Backend is a loaded model and its context. See engine.Backend for which
// goroutine may call what.
type Backend struct {
	model   *cgo.Model
	context *cgo.Context
	rows    *cgo.Batch
	batch   engine.Batch
	limits  engine.Limits
	spare   engine.SeqID // an id that the engine doesn't know, for parts of sequences
}

var _ engine.StateBackend = (*Backend)(nil)

func newBackend(m *cgo.Model, c *cgo.Context) *Backend {
	info, p, rows := m.Info(), c.Params(), c.Batch()
	return &Backend{
		model: m, context: c, rows: rows, spare: engine.SeqID(p.SeqMax - 1),
		batch: engine.Batch{
			Token: rows.Token, Pos: rows.Pos, Seq: rows.Seq, Want: rows.Want,
			Sampler: make([]engine.Sampler, rows.Cap()),
			Out:     make([]engine.Output, rows.Cap()),
		},
		limits: engine.Limits{
			Cells: p.Ctx, Seqs: p.SeqMax - 1, Batch: rows.Cap(), UBatch: p.UBatch, Vocab: m.Vocab().Size(),
			Unified: p.Unified, Partial: !info.Recurrent && !info.Hybrid,
		},
	}
}

// Limits implements engine.Backend.
func (b *Backend) Limits() engine.Limits { return b.limits }

// Batch implements engine.Backend.
func (b *Backend) Batch() *engine.Batch { return &b.batch }

// IsEOG implements engine.Backend.
func (b *Backend) IsEOG(t engine.Token) bool { return b.model.Vocab().IsEOG(t) }

// Abort implements engine.Backend.
func (b *Backend) Abort() { b.context.Abort() }

// Step implements engine.Backend.
func (b *Backend) Step(batch *engine.Batch) error {
	b.rows.N = batch.N
	for i := range batch.N {
		b.rows.Sampler[i] = nil
		if batch.Want[i] >= 0 {
			b.rows.Sampler[i], _ = batch.Sampler[i].(*cgo.Sampler)
		}
	}
	if err := b.context.Step(); err != nil {
		return translate(err)
	}
	batch.SampleTime = b.rows.SampleTime()
	for i := range batch.N {
		if batch.Want[i] >= 0 {
			convert(&batch.Out[i], &b.rows.Out[i])
		}
	}
	return nil
}

func convert(to *engine.Output, from *cgo.Out) {
	to.Token, to.Logprob, to.Err, to.Skipped, to.Top = from.Token, from.Logprob, from.Err, from.Skipped, to.Top[:0]
	for _, t := range from.Top {
		to.Top = append(to.Top, engine.TokenLogprob{Token: t.Token, Logprob: t.Logprob})
	}
}

func translate(err error) error {
	switch {
	case errors.Is(err, cgo.ErrNoCells):
		return engine.ErrNoCells
	case errors.Is(err, cgo.ErrAborted):
		return engine.ErrAborted
	}
	return err
}

// NewSampler implements engine.Backend.
func (b *Backend) NewSampler(p engine.SamplerParams) (engine.Sampler, error) {
	s, err := cgo.NewSampler(b.model, cgo.SamplerParams{
		Temperature: p.Temperature, TopP: p.TopP, MinP: p.MinP, TopK: p.TopK, Seed: p.Seed,
		Presence: p.Presence, Frequency: p.Frequency, Repeat: p.Repeat, RepeatLastN: p.RepeatLastN,
		Grammar: p.Grammar, LazyTokens: p.LazyTokens, LazyPatterns: p.LazyPatterns,
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// SeqCopy implements engine.Backend.
func (b *Backend) SeqCopy(src, dst engine.SeqID, n int) error {
	return b.context.SeqCopy(src, dst, 0, n)
}

// SeqRemove implements engine.Backend.
func (b *Backend) SeqRemove(seq engine.SeqID, from int) error {
	return b.context.SeqRemove(seq, from, math.MaxInt32)
}

// Close implements engine.Backend.
func (b *Backend) Close() error {
	b.context.Close()
	b.model.Close()
	return nil
}
