package engine

import (
	"errors"
	"runtime"
	"time"
)

// run is the engine: it owns the backend until Close. Each turn lets requests
// join and leave, spends one budget of rows, makes one Step, and hands out what
// was sampled.
func (e *Engine) run() {
	runtime.LockOSThread()
	defer close(e.done)
	e.batch = e.backend.Batch()
	for e.receive() {
		if e.tiers != nil {
			e.tiers.budget = e.stateBudget()
		}
		e.admit()
		e.restore()
		shares := e.plan()
		e.stopAtMarks(shares)
		e.speculate(shares)
		e.publish()
		err := e.step(shares)
		e.deliver(shares, err)
	}
	if e.tiers != nil {
		e.tiers.close(e.cache, e.config.CloseTime, e.hear)
		e.cache.tiers = nil
	}
	e.cache.flush()
	e.alive.Lock()
	defer e.alive.Unlock()
	e.closed = true
	if e.drafter != nil {
		e.closeError = e.drafter.close()
	}
	e.closeError = errors.Join(e.closeError, e.backend.Close())
}

// plan decides on the rows of the next step. Where the cells don't suffice for
// it, the newest sequences go back to the queue.
func (e *Engine) plan() []share {
	for len(e.running) > 0 {
		e.pending = e.pending[:0]
		decoding := 0
		for _, s := range e.running {
			n := s.pending()
			if s.restoring() {
				n = 0
			}
			e.pending = append(e.pending, n)
			if n == 1 {
				decoding++
			}
		}
		b := e.budget(decoding)
		e.turns = e.fair.turns(e.turns[:0], e.running)
		e.shares = plan(e.shares[:0], e.pending, e.turns, b)
		rows := 0
		for _, sh := range e.shares {
			rows += sh.rows
		}
		if !starved(e.pending, b.cells) && e.cache.makeRoom(rows) {
			return e.shares
		}
		e.giveWay()
	}
	return nil
}

func (e *Engine) budget(decoding int) budget {
	b := budget{rows: e.limits.Batch, cells: e.limits.Batch, prefill: e.costs.chunk(decoding)}
	if e.rowCap > 0 {
		b.rows = min(b.rows, e.rowCap)
	}
	if !e.limits.Unified {
		return b
	}
	if len(e.running) == 1 {
		// It may have all there is, and only the backend knows how much that is.
		e.cache.ceiling = e.limits.Cells
	}
	b.cells = max(0, e.cache.ceiling-e.cellsRunning())
	return b
}

// step fills the batch and lets the backend compute it.
func (e *Engine) step(shares []share) error {
	if len(shares) == 0 {
		return nil
	}
	b := e.batch
	b.N = 0
	decode, prefill := 0, 0
	for _, sh := range shares {
		s := e.running[sh.seq]
		at := s.computed()
		if e.pending[sh.seq] == 1 {
			decode += 1 + len(s.draft)
		} else {
			prefill += sh.rows
		}
		for i := range sh.rows {
			b.add(s, s.tokens[at+i], at+i, -1)
		}
		if sh.rows == e.pending[sh.seq] {
			b.Want[b.N-1] = int32(s.request.Logprobs) + 1
		}
		for i, t := range s.draft {
			b.add(s, t, at+sh.rows+i, int32(s.request.Logprobs)+1)
		}
	}
	start := time.Now()
	err := e.backend.Step(b)
	e.now = time.Now()
	e.stats.Steps++
	took := e.now.Sub(start)
	e.stats.StepSum += took
	if err == nil {
		e.stats.SampleSum += b.SampleTime
		e.stats.DecodeRows += uint64(decode)
		e.stats.PrefillRows += uint64(prefill)
		e.costs.observe(decode, prefill, took)
		e.stepTime.add(took.Seconds(), 0.1)
	}
	return err
}

func (b *Batch) add(s *sequence, t Token, pos int, want int32) {
	b.Token[b.N], b.Pos[b.N], b.Seq[b.N], b.Want[b.N] = t, int32(pos), s.kv.id, want
	b.Sampler[b.N] = s.request.Sampler
	b.N++
}

// deliver books what a step has done. After an error other than that of a single
// row, nothing was sampled.
func (e *Engine) deliver(shares []share, err error) {
	if len(shares) == 0 {
		return
	}
	switch {
	case err == nil:
		e.book(shares)
	case errors.Is(err, ErrNoCells):
		e.squeeze()
	case errors.Is(err, ErrAborted):
		e.rollBack(shares)
	default:
		e.failStep(shares, err)
	}
}
