package server

import (
	"context"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"quern/engine"
)

// createChat is POST /v1/chat/completions, the same way as createResponse with
// another reader in front and another writer behind.
func (s *Server) createChat(c *gin.Context) *requestError {
	return chatParams(s.chat(c))
}

func (s *Server) chat(c *gin.Context) *requestError {
	ex := exchangeOf(c)
	m, req, refused := s.readChat(c)
	if refused != nil {
		return refused
	}
	ctx, leave, refused := s.enter(c)
	if refused != nil {
		return refused
	}
	defer leave()

	j, refused := m.prepare(&req.task)
	if refused != nil {
		return refused
	}
	out := newChatOutput(m, req, time.Now())
	s.tellIgnored(c, req.ignored)
	ex.note(out.id, out.model, req.stream, j.text, out.said)
	stream, refused := s.submit(ctx, m, j, out.id, ex)
	if refused != nil {
		return refused
	}
	tr := newTranscript(m, j, out)
	if req.stream {
		s.streamChat(ctx, c, stream, tr, out)
		return nil
	}
	if end := s.generate(ctx, stream, tr, collected{}, ex); end.err != nil {
		return end.err
	}
	writeBody(c.Writer, c.Request, http.StatusOK, "application/json", append(out.completion(nil), '\n'))
	return nil
}

// readChat reads a request and finds its model.
func (s *Server) readChat(c *gin.Context) (*Model, *chatRequest, *requestError) {
	m, refused := s.ready()
	if refused != nil {
		return nil, nil, refused
	}
	body, refused := s.readBody(c)
	if refused != nil {
		return nil, nil, refused
	}
	req, refused := decodeChat(body, m.Defaults)
	if refused != nil {
		return nil, nil, refused
	}
	if !m.named(req.model) {
		return nil, nil, s.unknownModel(req.model)
	}
	return m, req, nil
}

func (s *Server) streamChat(ctx context.Context, c *gin.Context, stream *engine.Stream, tr *transcript, out *chatOutput) {
	sse := newSSEWriter(c.Writer, s.cfg.WriteTimeout)
	defer sse.close()
	d := &streamedChat{out: out, sse: sse}
	out.start()
	_ = d.flush() // of a client that is gone, generate will hear
	s.generate(ctx, stream, tr, d, exchangeOf(c))
	_ = d.flush() // a client that is gone needs no farewell
}

// streamedChat delivers the chunks of a completion.
type streamedChat struct {
	out *chatOutput
	sse *sseWriter
}

var _ delivery = (*streamedChat)(nil)

func (d *streamedChat) flush() error {
	buf := d.out.buf
	if len(buf) == 0 {
		return nil
	}
	d.out.buf = buf[:0]
	return d.sse.send(buf)
}

func (d *streamedChat) idle(time.Duration) error {
	d.out.buf = append(d.out.buf, ": waiting\n\n"...)
	return d.flush()
}

// chatParams gives a refusal the names that chat has for the same things.
func chatParams(e *requestError) *requestError {
	if e == nil {
		return nil
	}
	switch e.Param {
	case "input":
		e.Param = "messages"
	case "max_output_tokens":
		e.Param = "max_completion_tokens"
	}
	return e
}
