package server

import (
	"context"
	"errors"
	"sync"
	"time"
)

// errShutdown is the cause with which a drain's time limit ends requests.
var errShutdown = errors.New("the node is shutting down")

// lastWords is how long requests that a drain cut off may take to say so.
const lastWords = 2 * time.Second

// gate counts the requests that generate, and closes for a drain.
type gate struct {
	mu     sync.Mutex
	closed bool
	inside int
	empty  chan struct{} // closed once closed and nobody is inside

	ctx context.Context // ends what is inside
	cut context.CancelCauseFunc
}

func newGate() *gate {
	g := &gate{empty: make(chan struct{})}
	g.ctx, g.cut = context.WithCancelCause(context.Background())
	return g
}

// enter lets a request in, unless the gate is closed. The context ends with the
// request's own and at the end of a drain; leave must be called.
func (g *gate) enter(parent context.Context) (ctx context.Context, leave func(), ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, nil, false
	}
	g.inside++
	ctx, cancel := context.WithCancelCause(parent)
	detach := context.AfterFunc(g.ctx, func() { cancel(errShutdown) })
	return ctx, func() {
		detach()
		cancel(context.Canceled)
		g.leave()
	}, true
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.inside--; g.inside == 0 && g.closed {
		close(g.empty)
	}
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return
	}
	g.closed = true
	if g.inside == 0 {
		close(g.empty)
	}
}

func (g *gate) isClosed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.closed
}

// Drain refuses new work and waits for the requests that run. When ctx ends
// before they do, they are cut off: streams end with a terminal event.
func (s *Server) Drain(ctx context.Context) error {
	s.gate.close()
	s.sockets.close()
	defer s.endSockets()
	select {
	case <-s.gate.empty:
		return nil
	case <-ctx.Done():
	}
	s.gate.cut(errShutdown)
	select {
	case <-s.gate.empty:
	case <-time.After(lastWords):
	}
	return context.Cause(ctx)
}

// endSockets waits until all sockets are closed, and cuts those off whose
// clients don't take leave. Whatever a connection does, a drain ends.
func (s *Server) endSockets() {
	select {
	case <-s.sockets.empty:
		return
	case <-time.After(lastWords):
	}
	s.sockets.cut()
	select {
	case <-s.sockets.empty:
	case <-time.After(lastWords):
		s.log.Warn("some WebSocket connections could not be closed")
	}
}
