package server

import (
	"context"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
)

// createChat is POST /v1/chat/completions, the same way as createResponse with
// another reader in front and another writer behind.
func (s *Server) createChat(c *gin.Context) *requestError {
	m, req, refused := s.readChat(c)
	if refused != nil {
		return chatParams(refused)
	}
	s.tellIgnored(exchangeOf(c), req.ignored)
	out := newChatOutput(m, req, time.Now())
	return chatParams(s.complete(c, m, out, &out.chunkWriter, func(ctx context.Context) (*job, *requestError) { return m.prepare(ctx, &req.task) }))
}

// readChat reads a request and finds its model.
func (s *Server) readChat(c *gin.Context) (*Model, *chatRequest, *requestError) {
	m, body, refused := s.receive(c)
	if refused != nil {
		return nil, nil, refused
	}
	req, refused := decodeChat(s.older, m, body)
	if refused != nil {
		return nil, nil, refused
	}
	if refused := s.admit(m, exchangeOf(c), req.model, &req.task); refused != nil {
		return nil, nil, refused
	}
	return m, req, nil
}

// chatParams gives a refusal the names that chat has for the same things.
func chatParams(e *requestError) *requestError {
	return e.inTermsOf("messages", "max_completion_tokens")
}

// inTermsOf gives a refusal the names that an older API has for the input and
// for the limit of the output. Nil stays nil.
func (e *requestError) inTermsOf(input, limit string) *requestError {
	if e == nil {
		return nil
	}
	switch e.Param {
	case "input":
		e.Param = input
	case "max_output_tokens":
		e.rename(limit)
	}
	return e
}

// rename gives the field at fault another name.
func (e *requestError) rename(name string) {
	e.Message = strings.ReplaceAll(e.Message, e.Param, name)
	e.Param = name
}
