package server

import (
	"context"
	"encoding/json"

	"github.com/gin-gonic/gin"

	"quern/server/jsonvalue"
)

// handle makes a gin handler of one that returns its refusal. A refusal after
// the answer has begun is only logged.
func (s *Server) handle(f func(*gin.Context) *requestError) gin.HandlerFunc {
	return func(c *gin.Context) {
		refused := f(c)
		switch {
		case refused == nil:
		case c.Writer.Written():
			exchangeOf(c).err = refused
		default:
			s.refuse(c, refused)
		}
	}
}

// enter lets a request through the gate and past the limits of its key; the
// context ends with the request, and when a drain runs out of time.
func (s *Server) enter(c *gin.Context) (context.Context, func(), *requestError) {
	return s.enterAs(c.Request.Context(), exchangeOf(c))
}

// enterAs is enter for a request that is not alone on its connection.
func (s *Server) enterAs(parent context.Context, ex *exchange) (context.Context, func(), *requestError) {
	ctx, leave, ok := s.gate.enter(parent)
	if !ok {
		return nil, nil, errDraining()
	}
	returned, refused := s.enterKey(ex)
	if refused != nil {
		leave()
		return nil, nil, refused
	}
	return ctx, func() { returned(); leave() }, nil
}

// recallFor finds recent items of the same key, and opens what the node sealed.
func (s *Server) recallFor(ex *exchange) recall {
	return recall{
		item: func(id string) json.RawMessage { return s.recent.get(ex.owner, id) },
		open: func(sealed string) (string, error) { return s.seal.open(ex.owner, sealed) },
	}
}

// receive finds the model and reads the body, as every endpoint begins.
func (s *Server) receive(c *gin.Context) (*Model, jsonvalue.Value, *requestError) {
	m, refused := s.ready()
	if refused != nil {
		return nil, jsonvalue.Value{}, refused
	}
	body, refused := s.readBody(c)
	return m, body, refused
}
