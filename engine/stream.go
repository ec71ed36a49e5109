package engine

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
)

// Stream is the output of one request, for one reader. The loop never waits for
// it: tokens that aren't fetched in time are handed over together.
type Stream struct {
	engine *Engine
	signal chan struct{} // holds one: something new, or the end

	cause    atomic.Pointer[error] // why it was cancelled
	computed atomic.Int64
	total    atomic.Int64

	mu     sync.Mutex
	ready  []Output
	spare  []Output // what the last Recv returned
	result Result
}

// Recv waits for tokens and returns all that have come since the last call. At
// the end it returns io.EOF after stop or length, otherwise the error in Result.
// The slice is valid until the next call. Only ctx ends the wait early; it does
// not cancel the request.
func (s *Stream) Recv(ctx context.Context) ([]Output, error) {
	for {
		out, ended, err := s.take()
		if len(out) > 0 {
			return out, nil
		}
		if ended {
			return nil, err
		}
		select {
		case <-s.signal:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (s *Stream) take() (out []Output, ended bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.ready) > 0 {
		out = s.ready
		s.ready, s.spare = s.spare[:0], out
		return out, false, nil
	}
	if s.result.Reason == ReasonNone {
		return nil, false, nil
	}
	if s.result.Err != nil {
		return nil, true, s.result.Err
	}
	return nil, true, io.EOF
}

// Result is the account so far, or the final one once Reason is set. It is final
// before Recv returns the end.
func (s *Stream) Result() Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.result
}

// Progress says how many of the prompt's tokens are in the KV cache.
func (s *Stream) Progress() (computed, total int) {
	return int(s.computed.Load()), int(s.total.Load())
}

// Cancel ends the request within one step; any goroutine may call it, any number
// of times.
func (s *Stream) Cancel() { s.cancel(ErrCancelled) }

func (s *Stream) cancel(cause error) {
	if s.cause.CompareAndSwap(nil, &cause) {
		s.engine.nudge()
	}
}

// push hands over one token; end-of-turn tokens are only counted.
func (s *Stream) push(o Output, silent bool) {
	s.mu.Lock()
	s.result.OutputTokens++
	if !silent {
		s.ready = append(s.ready, o)
	}
	s.mu.Unlock()
	if !silent {
		s.wake()
	}
}

// update changes the account; setting Reason ends the stream.
func (s *Stream) update(f func(*Result)) {
	s.mu.Lock()
	f(&s.result)
	s.mu.Unlock()
}

func (s *Stream) wake() {
	select {
	case s.signal <- struct{}{}:
	default:
	}
}
