package engine

import (
	"context"
	"errors"
	"log/slog"
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
		if len(e.running)+len(e.waiting) > 0 {
			return true
		}
		e.publish()
		<-e.wake
	}
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
	if n < m.n+e.config.MinWait {
		return m, true
	}
	if l := at.first().owner; l.computed() < n {
		s.leader, s.shared = l, n
	}
	return m, s.leader == nil
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
	cached := s.computed()
	s.stream.computed.Store(int64(min(cached, s.prompt())))
	e.logMiss(s)
	if !s.started.IsZero() {
		return true
	}
	s.started = e.now
	s.charge(float64(s.pending()) * promptPrice)
	e.stats.PromptTokens += uint64(len(s.tokens))
	e.stats.PrefixQueries += uint64(len(s.tokens))
	e.stats.CachedTokens += uint64(cached)
	e.stats.PrefixHits += uint64(cached)
	s.stream.update(func(r *Result) {
		r.Begun, r.CachedTokens = true, cached
		r.Queue = s.started.Sub(s.submitted)
	})
	return true
}

// logMiss says where a prompt departs from all that is resident.
func (e *Engine) logMiss(s *sequence) {
	log := e.config.Logger
	if s.pending() <= 1 || !log.Enabled(context.Background(), slog.LevelDebug) {
		return
	}
	log.Debug("prefix ends before the prompt", "request", s.request.ID,
		"prompt", len(s.tokens), "first_differing", s.computed())
}
