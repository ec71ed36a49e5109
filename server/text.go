package server

import (
	"context"
	"time"

	"github.com/gin-gonic/gin"
)

// createText is POST /v1/completions, which editors use to fill gaps: the same
// way as createChat, but for the template and the reading of the answer.
func (s *Server) createText(c *gin.Context) *requestError {
	m, body, refused := s.receive(c)
	if refused != nil {
		return refused
	}
	req, refused := decodeText(body, m.Defaults, m.Tokenizer.Vocab().Size())
	if refused != nil {
		return refused
	}
	if refused := s.admit(m, exchangeOf(c), req.model, &req.task); refused != nil {
		return refused
	}
	s.tellIgnored(exchangeOf(c), req.ignored)
	out := newTextOutput(m, req, time.Now())
	prepare := func(ctx context.Context) (*job, *requestError) {
		j, refused := m.prepareText(ctx, req)
		if refused == nil && req.echo {
			out.content = append(out.content, j.text...)
		}
		return j, refused
	}
	return textParams(s.complete(c, m, out, &out.chunkWriter, prepare))
}

// textParams gives a refusal the names that completions have for the same things.
func textParams(e *requestError) *requestError { return e.inTermsOf("prompt", "max_tokens") }
