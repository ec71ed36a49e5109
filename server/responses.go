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
//	readCreate               bytes → task            handle.go, body.go, request.go, input.go, tools.go, params.go
//	prepare                  task → prompt, grammar  job.go, conversation.go, truncate.go
//	submit                   prompt → engine stream  submit.go
//	generate                 tokens → items, events  generate.go, transcript.go, output.go, events.go
//
// Streamed and collected responses share all of it. A collected one leaves the
// events out and sends the last state of the resource.
func (s *Server) createResponse(c *gin.Context) *requestError {
	ex := exchangeOf(c)
	m, req, refused := s.readCreate(c)
	if refused != nil {
		return refused
	}
	if refused := s.admit(m, ex, req.model, &req.task); refused != nil {
		return refused
	}
	if req.echo.Background {
		return s.createBackground(c, m, req, ex)
	}
	ctx, leave, refused := s.enter(c)
	if refused != nil {
		return refused
	}
	defer leave()

	s.tellIgnored(ex, req.ignored)
	t, refused := s.begin(ctx, m, req, ex)
	if refused != nil {
		return refused
	}
	if req.stream {
		sse := newSSEWriter(c.Writer, s.cfg.WriteTimeout)
		defer sse.close()
		s.run(ctx, t, sse, ex)
		return nil
	}
	end := s.generate(ctx, t.stream, t.tr, collected{}, ex)
	if end.err != nil {
		return end.err
	}
	writeBody(c.Writer, c.Request, http.StatusOK, "application/json", append(t.out.res.append(nil), '\n'))
	return nil
}

// readCreate reads a body with the fields of a create request.
func (s *Server) readCreate(c *gin.Context) (*Model, *createRequest, *requestError) {
	m, body, refused := s.receive(c)
	if refused != nil {
		return nil, nil, refused
	}
	ex := exchangeOf(c)
	req, refused := decodeCreate(s.contract, m, body, s.recallFor(ex), s.storedHistory(ex))
	return m, req, refused
}

// turn is a response on its way: where its tokens come from, and who makes items
// of them.
type turn struct {
	stream *engine.Stream
	tr     *transcript
	out    *responseOutput
}

// begin makes the prompt of a request and hands it to the engine.
func (s *Server) begin(ctx context.Context, m *Model, req *createRequest, ex *exchange) (*turn, *requestError) {
	j, refused := m.prepare(ctx, &req.task)
	if refused != nil {
		return nil, refused
	}
	out := s.newOutput(m, req, ex)
	out.events.obfuscate = req.obfuscate
	ex.note(out.res.ID, out.res.Model, req.stream, j.text, out.said)
	stream, refused := s.submit(ctx, m, j, out.res.ID, ex)
	if refused != nil {
		return nil, refused
	}
	var to sink = out
	if req.silent {
		to = warmUp{out}
	}
	return &turn{stream: stream, tr: newTranscript(m, j, to), out: out}, nil
}

// run sends the events of a response as they come. The header is out with the
// first of them, so that an error is an event from here on.
func (s *Server) run(ctx context.Context, t *turn, to wire, ex *exchange) outcome {
	d := &streamedResponse{out: t.out, wire: to, progress: s.cfg.Progress}
	t.out.events.on = true
	t.out.start()
	_, _ = d.flush() // of a client that is gone, generate will hear
	end := s.generate(ctx, t.stream, t.tr, d, ex)
	_, _ = d.flush() // a client that is gone needs no farewell
	return end
}

// newOutput makes the receiver of a response's items.
func (s *Server) newOutput(m *Model, req *createRequest, ex *exchange) *responseOutput {
	name := req.model
	if name == "" {
		name = m.ID
	}
	owner := ex.owner
	out := &responseOutput{
		res:      newResource(name, &req.echo, time.Now()),
		remember: func(id string, item []byte) { s.recent.put(owner, id, item) },
		now:      time.Now,
		cutEvent: s.contract.cutEvent,
	}
	if req.store && !req.echo.Background {
		out.keep = func() { s.keepResponse(req, out, ex) }
	}
	return out
}

// wire is how events reach a client.
type wire interface {
	// send sends whole frames.
	send(frames []byte) error
	// comment sends something that only proxies take note of.
	comment() error
}

var _ wire = (*sseWriter)(nil)

// streamedResponse delivers the events of a response.
type streamedResponse struct {
	out      *responseOutput
	wire     wire
	progress time.Duration
	repeated time.Duration // of silence, when in_progress was last repeated
}

var _ delivery = (*streamedResponse)(nil)

func (d *streamedResponse) flush() (sent bool, err error) {
	buf := d.out.events.buf
	if len(buf) == 0 {
		return false, nil
	}
	d.repeated = 0
	d.out.events.buf = buf[:0]
	return true, d.wire.send(buf)
}

// idle keeps the connection awake: comments for proxies, and from time to time
// an event, since some clients count nothing else.
func (d *streamedResponse) idle(silent time.Duration, p progress) error {
	if silent-d.repeated < d.progress {
		return d.wire.comment()
	}
	d.out.inProgress(p)
	_, err := d.flush()
	d.repeated = silent
	return err
}

// collected is the delivery of an answer that is sent as a whole.
type collected struct{}

var _ delivery = collected{}

func (collected) flush() (sent bool, err error)      { return false, nil }
func (collected) idle(time.Duration, progress) error { return nil }
