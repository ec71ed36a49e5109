package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/gin-gonic/gin"

	"quern/server/keys"
)

// exchange is what is noted of one HTTP request for its log line. It belongs to
// the goroutine of the request.
type exchange struct {
	requestID  string
	responseID string
	owner      string       // of the API key; "" without keys
	key        *keys.Holder // nil without keys
	lease      *keys.Lease  // of the key, once the request has entered
	header     http.Header  // of the answer; on a socket, what the first event tells
	model      string
	stream     bool
	held       int64 // bytes of its body, taken out of the intake
	started    time.Time
	firstToken time.Time
	lastToken  time.Time
	usage      usage
	queued     time.Duration
	accepted   int    // output tokens that had been guessed ahead
	reason     string // how the generation ended
	err        error  // what was refused or failed
	malformed  string // why something that looked like a call was none
	prompt     string // logged only where the config asks for it
	answer     func() string
}

const exchangeKey = "quern.exchange"

// exchangeOf returns the notes of the request, which observe has put there.
func exchangeOf(c *gin.Context) *exchange { return c.MustGet(exchangeKey).(*exchange) }

// maxRequestID bounds a request id that a client gives.
const maxRequestID = 200

// observe surrounds every request: it gives it an id, turns a panic of a
// handler into a 500, and writes the one log line.
func (s *Server) observe(c *gin.Context) {
	ex := &exchange{requestID: requestID(c.Request), started: time.Now(), header: c.Writer.Header()}
	c.Set(exchangeKey, ex)
	c.Header("X-Request-Id", ex.requestID)
	defer func() {
		if p := recover(); p != nil {
			s.recovered(c, ex, p)
		}
		s.intake.give(ex.held)
		s.logLine(c, ex)
	}()
	c.Next()
}

// note says what the request has become. answer is called at the end, and only
// where contents are logged.
func (ex *exchange) note(responseID, model string, stream bool, prompt string, answer func() string) {
	ex.responseID, ex.model, ex.stream, ex.prompt, ex.answer = responseID, model, stream, prompt, answer
}

func requestID(r *http.Request) string {
	id := r.Header.Get("X-Request-Id")
	if id == "" || len(id) > maxRequestID {
		return newID(prefixRequest)
	}
	for _, b := range []byte(id) {
		if b < 0x20 || b > 0x7e {
			return newID(prefixRequest)
		}
	}
	return id
}

// recovered ends a request whose handler panicked. http.ErrAbortHandler is the
// way to drop a connection on purpose and goes on.
func (s *Server) recovered(c *gin.Context, ex *exchange, p any) {
	if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(p)
	}
	ex.err = fmt.Errorf("panic: %v", p)
	s.log.Error("a handler panicked", "request_id", ex.requestID, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	c.Abort()
	if !c.Writer.Written() {
		s.contract.writeError(c.Writer, internal("the request failed inside the node; it has been logged"))
	}
}

// refuse answers with an error and ends the handling of the request.
func (s *Server) refuse(c *gin.Context, e *requestError) {
	exchangeOf(c).err = e
	c.Abort()
	unread := c.Request.ContentLength != 0 && e.Status != http.StatusRequestTimeout && !expectsContinue(c.Request)
	control := http.NewResponseController(c.Writer)
	if unread {
		_ = control.EnableFullDuplex() // else the body is closed with the header
	}
	s.contract.writeError(c.Writer, e)
	if unread {
		_ = control.Flush()
		dropBody(control, c.Request.Body)
	}
}

// logLine writes what happened. Probes are logged at debug level: they come
// several times a second.
func (s *Server) logLine(c *gin.Context, ex *exchange) {
	level := slog.LevelInfo
	switch {
	case probes[c.FullPath()]:
		level = slog.LevelDebug
	case c.Writer.Status() >= http.StatusInternalServerError:
		level = slog.LevelWarn
	}
	s.logExchange(c.Request.Context(), ex, level, c.Request.Method, c.Request.URL.Path, c.Writer.Status())
}

// logExchange writes the log line of a request, or of a turn on a socket.
func (s *Server) logExchange(ctx context.Context, ex *exchange, level slog.Level, method, path string, status int) {
	if !s.log.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("request_id", ex.requestID),
		slog.String("method", method),
		slog.String("path", path),
		slog.Int("status", status),
		slog.Duration("duration", time.Since(ex.started)),
	}
	if ex.responseID != "" {
		attrs = append(attrs,
			slog.String("response_id", ex.responseID),
			slog.String("model", ex.model),
			slog.Bool("stream", ex.stream),
			slog.String("reason", ex.reason),
			slog.Int("input_tokens", ex.usage.Input),
			slog.Int("cached_tokens", ex.usage.Cached),
			slog.Int("output_tokens", ex.usage.Output),
			slog.Int("reasoning_tokens", ex.usage.Reasoning),
			slog.Int("accepted_tokens", ex.accepted),
			slog.Duration("queued", ex.queued))
		if !ex.firstToken.IsZero() {
			attrs = append(attrs, slog.Duration("ttft", ex.firstToken.Sub(ex.started)))
		}
	}
	if ex.malformed != "" {
		attrs = append(attrs, slog.String("malformed_call", ex.malformed))
	}
	if ex.owner != "" {
		attrs = append(attrs, slog.String("key", cmp.Or(ex.key.Name(), ex.owner)))
	}
	if ex.err != nil {
		attrs = append(attrs, slog.String("error", ex.err.Error()))
	}
	s.log.LogAttrs(ctx, level, "request", attrs...)
	if s.cfg.LogPrompts && ex.responseID != "" {
		s.log.DebugContext(ctx, "content", "request_id", ex.requestID, "prompt", ex.prompt, "answer", ex.answer())
	}
}
