package bench

import (
	"context"
	"sync"
)

// source hands out sessions: the one that waited longest first, so that
// conversations take turns. A finished or failed one is replaced by a new one.
// It stops after the bounded number of requests.
type source struct {
	data Dataset

	mu    sync.Mutex // guards what follows
	ready []*session
	next  uint64
	left  int // requests still to hand out; negative: no bound
	wake  chan struct{}
}

func newSource(l Load) *source {
	s := &source{data: l.Dataset, left: l.Requests, wake: make(chan struct{})}
	if l.Requests <= 0 {
		s.left = -1
	}
	n := l.Sessions
	if n <= 0 {
		n = max(l.Concurrency, 1)
	}
	for range n {
		s.ready = append(s.ready, s.fresh())
	}
	return s
}

func (s *source) fresh() *session {
	s.next++
	return &session{data: s.data, number: s.next}
}

// take waits for a session; nil when there are no more requests to send.
func (s *source) take(ctx context.Context) *session {
	for {
		s.mu.Lock()
		taken, more, wake := s.pop(), s.left != 0, s.wake
		s.mu.Unlock()
		if taken != nil || !more {
			return taken
		}
		select {
		case <-ctx.Done():
			return nil
		case <-wake:
		}
	}
}

// takeNow gives a new session where none waits.
func (s *source) takeNow() *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.ready) == 0 {
		s.ready = append(s.ready, s.fresh())
	}
	return s.pop()
}

func (s *source) pop() *session {
	if s.left == 0 || len(s.ready) == 0 {
		return nil
	}
	first := s.ready[0]
	s.ready = s.ready[1:]
	if s.left > 0 {
		s.left--
	}
	if s.left == 0 {
		s.signal() // whoever waits need not
	}
	return first
}

func (s *source) signal() {
	close(s.wake)
	s.wake = make(chan struct{})
}

func (s *source) putBack(one *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case one.done():
		s.ready = append(s.ready, s.fresh())
	case s.data.sticky():
		s.ready = append([]*session{one}, s.ready...)
	default:
		s.ready = append(s.ready, one)
	}
	s.signal()
}

// abandon replaces a session that failed.
func (s *source) abandon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ready = append(s.ready, s.fresh())
	s.signal()
}
