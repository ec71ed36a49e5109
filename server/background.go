package server

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"

	"github.com/gin-gonic/gin"

	"quern/server/store"
)

// createBackground is the way of createResponse for a response that goes on
// without its client: it is answered at once, or streamed as long as the client
// stays, and stored at its end. The engine takes it before the answer, so that
// what is refused is refused here.
func (s *Server) createBackground(c *gin.Context, m *Model, req *createRequest, ex *exchange) *requestError {
	own := &exchange{requestID: ex.requestID, owner: ex.owner, key: ex.key, header: ex.header, started: ex.started}
	ctx, leave, refused := s.enterAs(context.WithoutCancel(c.Request.Context()), own)
	if refused != nil {
		return refused
	}
	ctx, cancel := context.WithCancelCause(ctx)
	end := func() { cancel(nil); leave() }
	s.tellIgnored(ex, req.ignored)
	t, refused := s.begin(ctx, m, req, own)
	if refused != nil {
		end()
		return refused
	}
	if refused := s.keepPlace(req, t.out, own); refused != nil {
		t.stream.Cancel()
		end()
		return refused
	}
	own.header = nil // the answer's, which is not this goroutine's for long
	j := newJob(t.out.res, req.stream, cancel)
	s.jobs.add(own.owner, t.out.res.ID, j)
	queued := j.resource()
	go func() {
		defer end()
		s.runBackground(ctx, req, t, j, own)
	}()
	if req.stream {
		return s.relay(c, j, -1)
	}
	writeJSON(c, queued)
	return nil
}

// keepPlace stores what is true of the response if the node ends before it does.
func (s *Server) keepPlace(req *createRequest, out *responseOutput, ex *exchange) *requestError {
	out.res.Status, out.res.Error = statusFailed, internal("the node ended before the response did")
	err := s.cfg.Store.Put(s.recordOf(req, out, ex))
	out.res.Status, out.res.Error = statusQueued, nil
	if err != nil {
		s.log.Error("a response could not be stored", "request_id", ex.requestID, "error", err)
		return internal("the response can't be stored, so that it could not be fetched later")
	}
	return nil
}

// runBackground makes the response. Nobody stands behind it who would catch a
// fault.
func (s *Server) runBackground(ctx context.Context, req *createRequest, t *turn, j *backgroundJob, ex *exchange) {
	status := http.StatusOK
	defer func() {
		if p := recover(); p != nil {
			t.stream.Cancel()
			ex.err, status = fmt.Errorf("panic: %v", p), http.StatusInternalServerError
			s.log.Error("a background response panicked", "request_id", ex.requestID, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		}
		s.jobs.remove(ex.owner, t.out.res.ID)
		j.finish()
		level := slog.LevelInfo
		if status >= http.StatusInternalServerError {
			level = slog.LevelWarn
		}
		s.logExchange(ctx, ex, level, "BACKGROUND", "/v1/responses", status)
	}()
	t.out.res.Status = statusInProgress
	j.update(t.out.res)
	if end := s.run(ctx, t, j, ex); end.err != nil {
		status = end.err.Status
	}
	r := s.recordOf(req, t.out, ex)
	r.Events = j.stored()
	if err := s.cfg.Store.Put(r); err != nil {
		s.log.Error("a response could not be stored", "request_id", ex.requestID, "response_id", r.ID, "error", err)
	}
	j.update(t.out.res)
}

// cancelResponse is POST /v1/responses/{id}/cancel, which answers with the
// response as it has ended. One that had ended before is as it was.
func (s *Server) cancelResponse(c *gin.Context) *requestError {
	id, ex := c.Param("id"), exchangeOf(c)
	if j := s.jobs.find(ex.owner, id); j != nil {
		j.giveUp(c.Request.Context())
		writeJSON(c, j.resource())
		return nil
	}
	r, refused := s.fetch(ex.owner, id)
	if refused != nil {
		return refused
	}
	if !inBackground(&r) {
		return invalid("response_id", codeInvalidValue, "response %q can't be cancelled: it was not created with background", clip(id))
	}
	writeJSON(c, r.Response)
	return nil
}

// resume is GET /v1/responses/{id}?stream=true: the events of a background
// response past a sequence number, those to come included.
func (s *Server) resume(c *gin.Context, id string, ex *exchange) *requestError {
	after, refused := countQuery(c, "starting_after", -1, 0, anyCount)
	if refused != nil {
		return refused
	}
	if j := s.jobs.find(ex.owner, id); j != nil {
		if !j.streamed {
			return notStreamed(id)
		}
		return s.relay(c, j, after)
	}
	r, refused := s.fetch(ex.owner, id)
	if refused != nil {
		return refused
	}
	if len(r.Events) == 0 {
		return notStreamed(id)
	}
	sse := newSSEWriter(c.Writer, s.cfg.WriteTimeout)
	defer sse.close()
	_ = sse.send(framesAfter(r.Events, after)) // a client that is gone needs no answer
	return nil
}

func notStreamed(id string) *requestError {
	return invalid("stream", codeInvalidValue,
		"response %q has no events to stream: only one that is created with background and stream does. Fetch it without stream", clip(id))
}

func inBackground(r *store.Record) bool {
	v, ok := parseStored(r.Response).Field("background").Truth()
	return ok && v
}
