package server

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"time"

	"github.com/coder/websocket"

	"quern/server/jsonvalue"
)

// maxRemembered bounds the conversation that a socket keeps for the next turn,
// in bytes of text.
const maxRemembered = 16 << 20

// remembered is the latest response of a socket, and all that led to it.
type remembered struct {
	id    string
	items []inputItem
}

// answer runs the turn that a message asks for. It never lets a fault out: the
// worker has nobody behind it who would catch it.
func (k *socket) answer(m message) {
	ex := &exchange{requestID: newID(prefixRequest), owner: k.key.Owner(), key: k.key, started: time.Now(), header: http.Header{}}
	status := http.StatusOK
	defer func() {
		if p := recover(); p != nil {
			ex.err = fmt.Errorf("panic: %v", p)
			status = http.StatusInternalServerError
			k.server.log.Error("a turn panicked", "request_id", ex.requestID, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			_ = k.sendError(internal("the request failed inside the node; it has been logged"), nil)
		}
		level := slog.LevelInfo
		if status >= http.StatusInternalServerError {
			level = slog.LevelWarn
		}
		k.server.logExchange(k.ctx, ex, level, "WEBSOCKET", "/v1/responses", status)
	}()
	refused := m.refused
	if refused == nil {
		refused = k.create(ex, m.doc)
	}
	if refused != nil {
		ex.err, status = refused, refused.Status
		_ = k.sendError(refused, ex.header) // a client that is gone needs no answer
		if refused.Status == http.StatusUnauthorized {
			k.leave(farewell{code: websocket.StatusPolicyViolation, reason: "the API key is not valid any more"})
		}
	}
}

// create is the way of createResponse, over a socket.
func (k *socket) create(ex *exchange, doc []byte) *requestError {
	s := k.server
	m, refused := s.ready()
	if refused != nil {
		return refused
	}
	body, err := jsonvalue.Parse(doc, s.cfg.Limits.Depth)
	if err != nil {
		return invalid("", codeInvalidJSON, "%s", err)
	}
	req, refused := k.decode(m, ex, body)
	if refused != nil {
		return k.forget(body, refused)
	}
	s.tellIgnored(ex, req.ignored)
	ctx, leave, refused := s.enterAs(k.ctx, ex)
	if refused != nil {
		return refused
	}
	defer leave()
	t, refused := s.begin(ctx, m, req, ex)
	if refused != nil {
		return k.forget(body, refused)
	}
	t.out.events.lines, t.out.events.headers = true, ex.header
	end := s.run(ctx, t, k, ex)
	if end.err != nil {
		_ = k.forget(body, end.err)
		return nil // told as response.failed
	}
	k.remember(s, ex, t, req)
	return nil
}

// decode reads a message of the client.
func (k *socket) decode(m *Model, ex *exchange, body jsonvalue.Value) (*createRequest, *requestError) {
	s, f := k.server, &fields{}
	if body.Kind() != jsonvalue.Object {
		return nil, invalid("", codeInvalidType, "a message must be a JSON object, got %s", body.Kind())
	}
	f.choice(body.Field("type"), "", "response.create")
	if body.Field("type").Empty() {
		f.missing(body, "type")
	}
	silent := !f.flag(body.Field("generate"), true)
	if f.err != nil {
		return nil, f.err
	}
	req, refused := decodeCreate(s.contract, m, body, s.recallFor(ex), k.earlier(ex))
	if refused != nil {
		return nil, refused
	}
	if refused := s.admit(m, ex, req.model, &req.task); refused != nil {
		return nil, refused
	}
	if req.echo.Background {
		return nil, invalid("background", codeUnsupported, "background is not supported over a WebSocket: send it as a POST")
	}
	req.stream = true
	if silent {
		req.beSilent()
	}
	return req, nil
}

// earlier finds the conversation that ended with a response: the socket's latest
// one, or one that is stored.
func (k *socket) earlier(ex *exchange) history {
	stored := k.server.storedHistory(ex)
	return func(id string) ([]inputItem, *requestError) {
		switch {
		case k.latest != nil && k.latest.id == id:
			return k.latest.items, nil
		case stored != nil:
			return stored(id)
		}
		return nil, nil
	}
}

// forget drops the latest response when its continuation fails: what the client
// would send to repair it can't be told from what failed.
func (k *socket) forget(body jsonvalue.Value, refused *requestError) *requestError {
	if !body.Field("previous_response_id").Empty() {
		k.latest = nil
	}
	return refused
}

// remember keeps a response for the next turn.
func (k *socket) remember(s *Server, ex *exchange, t *turn, req *createRequest) {
	k.latest = nil
	output, err := jsonvalue.Parse([]byte("["+string(t.out.res.Output)+"]"), maxDepth)
	if err != nil {
		s.log.Error("an output can't be remembered", "request_id", ex.requestID, "error", err)
		return
	}
	f := &fields{contract: contracts[0]}
	items := slices.Concat(req.items, f.items(output, s.recallFor(ex)))
	size := 0
	for i := range items {
		size += len(items[i].text) + len(items[i].arguments)
	}
	if f.err != nil || size > maxRemembered {
		s.log.Warn("a response is too large to be continued", "request_id", ex.requestID, "bytes", size)
		return
	}
	k.latest = &remembered{id: t.out.res.ID, items: items}
}

// cutLine splits off the first line.
func cutLine(lines []byte) (line, rest []byte) {
	line, rest, _ = bytes.Cut(lines, []byte{'\n'})
	return line, rest
}

// warmUp is the sink of a turn that only has the prompt read: it ends without
// an item.
type warmUp struct{ *responseOutput }

var _ sink = warmUp{}

func (w warmUp) finish(end outcome) {
	status := statusCompleted
	if end.err != nil {
		status = statusFailed
	}
	w.terminal(status, end)
}
