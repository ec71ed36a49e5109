package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"

	"github.com/gin-gonic/gin"
)

// intake bounds what requests hold before the engine has a say in them: the bytes
// of their bodies, on all connections together, and the work of those that only
// want tokens. Any goroutine.
type intake struct {
	bytes  atomic.Int64 // of bodies that may still be taken in
	places chan struct{}
	turns  atomic.Int64 // of those that have a place or wait for one
}

// Bounds of an intake.
const (
	intakeBodies = 8   // of the largest size
	intakeTurns  = 128 // that have a place or wait for one
)

func newIntake(maxBody int64, places int) *intake {
	in := &intake{places: make(chan struct{}, places)}
	in.bytes.Store(intakeBodies * maxBody)
	return in
}

// take reserves room for so many bytes more.
func (in *intake) take(n int64) bool {
	if in.bytes.Add(-n) >= 0 {
		return true
	}
	in.bytes.Add(n)
	return false
}

func (in *intake) give(n int64) { in.bytes.Add(n) }

// errNoIntake says that bodies fill the intake.
var errNoIntake = errors.New("the requests that this node has taken in are as large together as it takes")

// meter takes what is read through it out of an intake; held is to be given back.
type meter struct {
	r    io.Reader
	in   *intake
	held int64
}

func (m *meter) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	if n > 0 && !m.in.take(int64(n)) {
		return 0, errNoIntake
	}
	m.held += int64(n)
	return n, err
}

// aside gives a request that asks nothing of the engine its turn at the
// processor; leave must be called.
func (s *Server) aside(c *gin.Context) (leave func(), refused *requestError) {
	in := s.intake
	if in.turns.Add(1) > intakeTurns {
		in.turns.Add(-1)
		return nil, s.overloaded(http.StatusTooManyRequests, "too many requests for prompts and tokens wait on this node")
	}
	ctx := c.Request.Context()
	select {
	case in.places <- struct{}{}:
		return func() { <-in.places; in.turns.Add(-1) }, nil
	case <-ctx.Done():
		in.turns.Add(-1)
		return nil, s.refusalOf(context.Cause(ctx))
	}
}
