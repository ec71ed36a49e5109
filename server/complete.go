package server

import (
	"context"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"quern/engine"
)

// completion is the sink of an endpoint that answers with one object or with a
// stream of chunks.
type completion interface {
	sink
	// start opens the stream.
	start()
	// take returns the chunks that are not sent yet.
	take() []byte
	// whole appends the answer as one object, as far as it has come.
	whole(dst []byte) []byte
}

// complete generates the answer to a request of chat completions or of
// completions: the way of createResponse behind the reading, with another sink.
func (s *Server) complete(c *gin.Context, m *Model, out completion, w *chunkWriter, prepare func(context.Context) (*job, *requestError)) *requestError {
	ex := exchangeOf(c)
	ctx, leave, refused := s.enter(c)
	if refused != nil {
		return refused
	}
	defer leave()
	j, refused := prepare(ctx)
	if refused != nil {
		return refused
	}
	ex.note(w.id, w.model, w.on, j.text, func() string { return string(out.whole(nil)) })
	stream, refused := s.submit(ctx, m, j, w.id, ex)
	if refused != nil {
		return refused
	}
	tr := newTranscript(m, j, out)
	if w.on {
		s.streamCompletion(ctx, c, stream, tr, out)
		return nil
	}
	if end := s.generate(ctx, stream, tr, collected{}, ex); end.err != nil {
		return end.err
	}
	writeBody(c.Writer, c.Request, http.StatusOK, "application/json", append(out.whole(nil), '\n'))
	return nil
}

func (s *Server) streamCompletion(ctx context.Context, c *gin.Context, stream *engine.Stream, tr *transcript, out completion) {
	sse := newSSEWriter(c.Writer, s.cfg.WriteTimeout)
	defer sse.close()
	d := &streamedCompletion{out: out, sse: sse}
	out.start()
	_, _ = d.flush() // of a client that is gone, generate will hear
	s.generate(ctx, stream, tr, d, exchangeOf(c))
	_, _ = d.flush() // a client that is gone needs no farewell
}

// streamedCompletion delivers the chunks of a completion.
type streamedCompletion struct {
	out completion
	sse *sseWriter
}

var _ delivery = (*streamedCompletion)(nil)

func (d *streamedCompletion) flush() (sent bool, err error) {
	if buf := d.out.take(); len(buf) > 0 {
		return true, d.sse.send(buf)
	}
	return false, nil
}

func (d *streamedCompletion) idle(time.Duration, progress) error { return d.sse.comment() }
