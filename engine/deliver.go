package engine

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

var errNoSequence = errors.New("engine: no sequence id is left")

// cancelError is ErrCancelled with what the caller's context says.
type cancelError struct{ cause error }

func (e *cancelError) Error() string   { return ErrCancelled.Error() + ": " + e.cause.Error() }
func (e *cancelError) Unwrap() []error { return []error{ErrCancelled, e.cause} }

// book takes over the outcome of a step that worked.
func (e *Engine) book(shares []share) {
	e.failures, e.rowCap, e.drafts.hold = 0, 0, false
	e.cache.worked()
	row := -1
	for _, sh := range shares {
		s, pending := e.running[sh.seq], e.pending[sh.seq]
		row += sh.rows
		if len(s.draft) > 0 {
			e.bookDraft(s, e.batch.Out[row:row+1+len(s.draft)])
			row += len(s.draft)
			continue
		}
		e.cache.grow(s.kv, s.tokens, sh.rows)
		if pending > 1 {
			e.cache.publish(s.kv)
			if !e.limits.Partial && s.computed() == s.mark() {
				e.cache.mark(s.kv)
			}
			s.stream.computed.Store(int64(min(s.computed(), s.prompt())))
		}
		if sh.rows == pending {
			e.coming.remove(&s.coming)
			e.sampled(s, &e.batch.Out[row])
		}
	}
	e.dropStopped()
}

// sampled takes over one token, and says whether the request goes on.
func (e *Engine) sampled(s *sequence, o *Output) bool {
	if o.Err != nil {
		e.end(s, ReasonError, o.Err)
		return false
	}
	s.tokens = append(s.tokens, o.Token)
	s.out++
	s.last = e.now
	e.stats.GeneratedTokens++
	s.charge(outputPrice)
	if s.out == 1 {
		s.first = e.now
		s.stream.update(func(r *Result) {
			r.TTFT = s.first.Sub(s.submitted)
			r.Prefill = s.first.Sub(s.started)
		})
	}
	eog := e.backend.IsEOG(o.Token)
	given := *o
	given.Top = slices.Clone(o.Top)
	s.stream.push(given, eog)
	if !eog && s.left() > 0 && s.request.Insert != nil {
		if err := e.insert(s, s.request.Insert(o.Token)); err != nil {
			e.end(s, ReasonError, err)
			return false
		}
	}
	switch {
	case eog:
		e.end(s, ReasonStop, nil)
	case s.left() == 0:
		e.end(s, ReasonLength, nil)
	default:
		return true
	}
	return false
}

// insert appends tokens that were not sampled. The next steps compute them like
// the rest of a prompt.
func (e *Engine) insert(s *sequence, tokens []Token) error {
	tokens = tokens[:min(len(tokens), s.left())]
	if len(tokens) == 0 {
		return nil
	}
	if err := s.request.Sampler.Accept(tokens); err != nil {
		return fmt.Errorf("engine: insert %d tokens: %w", len(tokens), err)
	}
	s.tokens = append(s.tokens, tokens...)
	s.out += len(tokens)
	e.stats.GeneratedTokens += uint64(len(tokens))
	s.charge(float64(len(tokens)) * promptPrice)
	for _, t := range tokens {
		s.stream.push(Output{Token: t}, false)
	}
	return nil
}

// end ends a request, once. What it computed stays as a prefix for later ones.
func (e *Engine) end(s *sequence, reason Reason, err error) {
	e.coming.remove(&s.coming)
	e.tiers.giveBack(&s.back)
	if s.kv != nil {
		e.cache.retain(s.kv)
		s.kv = nil
	}
	s.leave()
	s.unwatch()
	s.request.Sampler.Close()
	e.fair.leave(s)
	e.stats.Finished++
	switch reason {
	case ReasonCancelled, ReasonDeadline:
		e.stats.Cancelled++
	case ReasonError:
		e.stats.Failed++
	}
	e.mu.Lock()
	e.active--
	if e.draining && e.active == 0 {
		close(e.drained)
	}
	e.mu.Unlock()
	e.publish() // so that whoever sees the end of the stream sees it in Stats

	now := time.Now()
	s.stream.update(func(r *Result) {
		r.Reason, r.Err = reason, err
		r.Total = now.Sub(s.submitted)
		if s.out > 0 {
			r.Decode = s.last.Sub(s.first)
		}
		if s.started.IsZero() {
			r.Queue = r.Total
		}
	})
	s.stream.wake()
}

// dropStopped forgets running sequences that have ended or gone back to the queue.
func (e *Engine) dropStopped() {
	e.running = slices.DeleteFunc(e.running, func(s *sequence) bool { return s.kv == nil })
}

// giveWay frees cells at the cost of the newest sequence. The last one left has
// had all there is.
func (e *Engine) giveWay() {
	s := e.running[len(e.running)-1]
	if len(e.running) == 1 {
		e.end(s, ReasonError, ErrNoCells)
	} else {
		e.cache.retain(s.kv)
		e.requeue(s)
	}
	e.dropStopped()
}

// requeue puts a running sequence, whose KV is given up, back into the queue at
// its place by arrival. It keeps its tokens and its sampler.
func (e *Engine) requeue(s *sequence) {
	e.coming.remove(&s.coming)
	e.tiers.giveBack(&s.back)
	s.leave()
	s.kv, s.queued = nil, true
	e.stats.Preemptions++
	s.stream.update(func(r *Result) { r.Preemptions++ })
	at, _ := slices.BinarySearchFunc(e.waiting, s.arrival, func(w *sequence, a uint64) int { return int(w.arrival) - int(a) })
	e.waiting = slices.Insert(e.waiting, at, s)
}

// squeeze makes room after the backend found none where the ledger had: by a
// step without drafts, an idle prefix, the newest sequence, a smaller step.
func (e *Engine) squeeze() {
	rows := e.batch.N
	e.cache.refused(rows)
	switch {
	case e.drafts.rows > 0:
		e.drafts.hold = true
	case len(e.cache.idle) > 0:
		e.cache.evict(e.cache.idle[0])
	case len(e.running) > 1 || rows == 1:
		e.giveWay()
	default:
		e.rowCap = rows / 2
	}
}

// rollBack restores the sequences of an aborted step.
func (e *Engine) rollBack(shares []share) {
	for _, sh := range shares {
		s := e.running[sh.seq]
		if e.limits.Partial && e.cache.truncate(s.kv, s.computed()) {
			continue
		}
		e.cache.drop(s.kv)
		e.requeue(s)
	}
	e.dropStopped()
}

// failStep ends the requests of a step that failed. Their sequences are in an
// unknown state, so nothing of them is kept.
func (e *Engine) failStep(shares []share, err error) {
	e.failures++
	e.stats.FailedSteps++
	e.config.Logger.Error("step failed", "rows", e.batch.N, "sequences", len(shares), "in_a_row", e.failures, "err", err)
	for _, sh := range shares {
		s := e.running[sh.seq]
		e.cache.drop(s.kv)
		s.kv = nil
		e.end(s, ReasonError, fmt.Errorf("engine: step failed: %w", err))
	}
	e.dropStopped()
}
