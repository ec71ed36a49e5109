package engine

import (
	"context"
	"errors"
	"slices"
	"time"
)

// receive takes what request goroutines have left and ends what shall not go on.
// It sleeps while there is nothing to do, and returns false to end the loop.
func (e *Engine) receive() bool {
	for {
		e.mu.Lock()
		for _, s := range e.inbox {
			e.fair.join(s)
		}
		e.waiting = append(e.waiting, e.inbox...)
		clear(e.inbox)
		e.inbox = e.inbox[:0]
		calls := e.calls
		e.calls = nil
		endAll, closing := e.endAll, e.closing
		e.mu.Unlock()

		e.now = time.Now()
		for _, call := range calls {
			call()
		}
		e.endStale(endAll)
		if closing {
			return false
		}
		if len(e.running) > 0 || len(e.waiting) > 0 && !e.stalled {
			return true
		}
		if len(e.waiting) == 0 && e.tiers.saveIdle(e.cache) {
			continue
		}
		e.publish()
		slept := time.Now()
		e.sleep()
		e.stats.IdleSum += time.Since(slept)
	}
}

// sleep waits for something to do, or for what the tiers load.
func (e *Engine) sleep() {
	if !e.stalled {
		<-e.wake
		return
	}
	e.stalled = false
	timer := time.NewTimer(50 * time.Millisecond) // deadlines, and giving up
	defer timer.Stop()
	select {
	case <-e.wake:
	case <-timer.C:
	}
}

// hear runs what other goroutines have posted, waiting for it until a deadline,
// and says whether that is still ahead.
func (e *Engine) hear(deadline time.Time) bool {
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case <-e.wake:
	case <-timer.C:
	}
	e.mu.Lock()
	calls := e.calls
	e.calls = nil
	e.mu.Unlock()
	for _, call := range calls {
		call()
	}
	return time.Now().Before(deadline)
}

// endStale ends the requests that were cancelled or have run out of time, or all
// of them if there is a cause to.
func (e *Engine) endStale(all error) {
	for _, list := range []*[]*sequence{&e.running, &e.waiting} {
		*list = slices.DeleteFunc(*list, func(s *sequence) bool {
			cause := all
			if c := s.stream.cause.Load(); c != nil {
				cause = *c
			}
			switch {
			case cause == nil && (s.request.Deadline.IsZero() || e.now.Before(s.request.Deadline)):
				return false
			case cause == nil, errors.Is(cause, context.DeadlineExceeded):
				e.end(s, ReasonDeadline, ErrDeadline)
			case errors.Is(cause, ErrCancelled), errors.Is(cause, ErrDraining), errors.Is(cause, ErrClosed):
				e.end(s, ReasonCancelled, cause)
			default:
				e.end(s, ReasonCancelled, &cancelError{cause})
			}
			return true
		})
	}
}

// admit starts waiting requests in fair order, which is that of arrival for those
// of one tenant. Only those that wait for another one to compute the head they
// share are passed.
func (e *Engine) admit() {
	if len(e.waiting) == 0 {
		return
	}
	e.fair.rewind()
	for len(e.running) < e.config.MaxRunning {
		s := e.fair.next(e.waiting)
		if s == nil {
			break
		}
		m, ready := e.match(s)
		if !ready {
			continue
		}
		if !e.fits(s, m) || !e.start(s, m) {
			break
		}
		s.queued = false
	}
	e.waiting = slices.DeleteFunc(e.waiting, func(s *sequence) bool { return !s.queued })
	e.stalled = len(e.running) == 0 && len(e.waiting) > 0
}

// match looks for a prefix to reuse. It is not ready while a running sequence is
// about to compute a longer one.
func (e *Engine) match(s *sequence) (m match, ready bool) {
	if l := s.leader; l != nil {
		if l.coming.at != nil && l.computed() < s.shared {
			return m, false
		}
		s.leader = nil
	}
	m = e.cache.lookup(s.request.CacheSalt, s.tokens)
	if !e.limits.Partial {
		return m, true
	}
	n, at := e.coming.lookup(s.request.CacheSalt, s.tokens[:len(s.tokens)-1])
	if n >= m.n+e.config.MinWait {
		if l := at.first().owner; l.computed() < n {
			s.leader, s.shared = l, n
			return m, false
		}
	}
	return m, e.seek(s, m.n)
}

// fits says whether the cells suffice for one more sequence, with some room for
// the output of each. A sequence alone always fits, or Submit had refused it.
func (e *Engine) fits(s *sequence, m match) bool {
	if len(e.running) == 0 || !e.limits.Unified {
		return true
	}
	l := &e.cache.ledger
	l.begin()
	need := len(s.tokens) - m.n + min(s.left(), e.config.Headroom)
	for _, r := range e.running {
		need += l.count(r.kv.tail) + r.pending() + min(r.left(), e.config.Headroom)
	}
	if m.n > 0 {
		need += l.countPrefix(m.from.tail, m.n)
	}
	return need <= e.cache.ceiling
}

// start gives a sequence its place in the KV cache and makes it run.
func (e *Engine) start(s *sequence, m match) bool {
	resident := m.n
	if s.restoring() {
		var why Miss
		if m.n, why = e.tiers.begin(&s.back, m.n); why != MissNone {
			s.miss = why
		}
		if m.n == 0 {
			m = match{}
		}
	}
	why := e.missOf(s, max(resident, s.back.n))
	s.kv = e.cache.acquire(s.request.CacheSalt, m)
	if s.kv == nil {
		if len(e.running) > 0 {
			return false
		}
		e.end(s, ReasonError, errNoSequence)
		return true
	}
	at, _ := slices.BinarySearchFunc(e.running, s.arrival, func(r *sequence, a uint64) int { return int(r.arrival) - int(a) })
	e.running = slices.Insert(e.running, at, s)
	if s.pending() > 1 {
		e.coming.insert(&s.coming, s.tokens)
	}
	if s.started.IsZero() {
		s.started = e.now
		s.stream.update(func(r *Result) { r.Queue = s.started.Sub(s.submitted) })
	}
	s.kv.pinned = s.kv.pinned || s.request.Pin
	s.miss = why
	if s.restoring() && s.kv.length != s.back.blocks[0].start {
		e.tiers.giveBack(&s.back)
	}
	if !s.restoring() {
		e.cached(s)
	}
	return true
}

// cached takes account of a sequence that is about to compute: what it holds now
// was not computed for it.
func (e *Engine) cached(s *sequence) {
	n := s.computed()
	s.stream.computed.Store(int64(min(n, s.prompt())))
	e.logMiss(s, s.miss)
	s.miss = MissNone
	if s.counted {
		return
	}
	s.counted = true
	s.charge(float64(s.pending()) * promptPrice)
	e.stats.PromptTokens += uint64(len(s.tokens))
	e.stats.PrefixQueries += uint64(len(s.tokens))
	e.stats.CachedTokens += uint64(n)
	e.stats.PrefixHits += uint64(n)
	s.stream.update(func(r *Result) { r.Begun, r.CachedTokens = true, n })
}
