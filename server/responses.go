package server

import (
	"context"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"quern/engine"
)

// createResponse is POST /v1/responses. It reads as the way of one request:
//
//	readBody, decodeCreate   bytes → task            body.go, request.go, input.go, tools.go, params.go
//	prepare                  task → prompt, grammar  job.go, conversation.go, truncate.go
//	submit                   prompt → engine stream  submit.go
//	generate                 tokens → items, events  generate.go, transcript.go, output.go, events.go
//
// Streamed and collected responses share all of it. A collected one leaves the
// events out and sends the last state of the resource.
func (s *Server) createResponse(c *gin.Context) *requestError {
	ex := exchangeOf(c)
	m, refused := s.ready()
	if refused != nil {
		return refused
	}
	body, refused := s.readBody(c)
	if refused != nil {
		return refused
	}
	req, refused := decodeCreate(s.contract, body, m.Defaults, s.recallFor(ex))
	if refused != nil {
		return refused
	}
	if refused := s.admit(m, ex, req.model, &req.task); refused != nil {
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
	out := s.newOutput(m, req, ex)
	s.tellIgnored(c, req.ignored)
	ex.note(out.res.ID, out.res.Model, req.stream, j.text, out.said)
	stream, refused := s.submit(ctx, m, j, out.res.ID, ex)
	if refused != nil {
		return refused
	}
	tr := newTranscript(m, j, out)
	if req.stream {
		out.events.obfuscate = req.obfuscate
		s.streamResponse(ctx, c, stream, tr, out)
		return nil
	}
	end := s.generate(ctx, stream, tr, collected{}, ex)
	if end.err != nil {
		return end.err
	}
	writeBody(c.Writer, c.Request, http.StatusOK, "application/json", append(out.res.append(nil), '\n'))
	return nil
}

// streamResponse sends the events as they come. The header is out with the
// first of them, so that an error is an event from here on.
func (s *Server) streamResponse(ctx context.Context, c *gin.Context, stream *engine.Stream, tr *transcript, out *responseOutput) {
	sse := newSSEWriter(c.Writer, s.cfg.WriteTimeout)
	defer sse.close()
	d := &streamedResponse{out: out, sse: sse, progress: s.cfg.Progress}
	out.events.on = true
	out.start()
	_ = d.flush() // of a client that is gone, generate will hear
	s.generate(ctx, stream, tr, d, exchangeOf(c))
	_ = d.flush() // a client that is gone needs no farewell
}

// newOutput makes the receiver of a response's items.
func (s *Server) newOutput(m *Model, req *createRequest, ex *exchange) *responseOutput {
	name := req.model
	if name == "" {
		name = m.ID
	}
	owner := ex.owner
	return &responseOutput{
		res:      newResource(name, &req.echo, time.Now()),
		remember: func(id string, item []byte) { s.recent.put(owner, id, item) },
		now:      time.Now,
		cutEvent: s.contract.cutEvent,
	}
}

// streamedResponse delivers the events of a response.
type streamedResponse struct {
	out      *responseOutput
	sse      *sseWriter
	progress time.Duration
	repeated time.Duration // of silence, when in_progress was last repeated
}

var _ delivery = (*streamedResponse)(nil)

func (d *streamedResponse) flush() error {
	d.repeated = 0
	return d.send()
}

func (d *streamedResponse) send() error {
	buf := d.out.events.buf
	if len(buf) == 0 {
		return nil
	}
	d.out.events.buf = buf[:0]
	return d.sse.send(buf)
}

// idle keeps the connection awake: comments for proxies, and from time to time
// an event, since some clients count nothing else.
func (d *streamedResponse) idle(silent time.Duration) error {
	if silent-d.repeated >= d.progress {
		d.repeated = silent
		d.out.inProgress()
	} else {
		d.out.events.comment()
	}
	return d.send()
}

// collected is the delivery of an answer that is sent as a whole.
type collected struct{}

var _ delivery = collected{}

func (collected) flush() error             { return nil }
func (collected) idle(time.Duration) error { return nil }
