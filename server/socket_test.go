package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"quern/server/servertest"
)

// line is a WebSocket of a test's client.
type line struct {
	t    testing.TB
	conn *websocket.Conn
}

// dial opens a socket on the node.
func (n *node) dial(headers ...string) *line {
	n.t.Helper()
	h := http.Header{}
	for i := 0; i+1 < len(headers); i += 2 {
		h.Set(headers[i], headers[i+1])
	}
	conn, res, err := websocket.Dial(n.t.Context(), n.http.URL+"/v1/responses", &websocket.DialOptions{HTTPHeader: h})
	require.NoError(n.t, err)
	if res.Body != nil {
		defer res.Body.Close()
	}
	conn.SetReadLimit(-1)
	n.t.Cleanup(func() { _ = conn.CloseNow() })
	return &line{n.t, conn}
}

func (l *line) send(doc string) {
	l.t.Helper()
	require.NoError(l.t, l.conn.Write(l.t.Context(), websocket.MessageText, []byte(doc)))
}

// next reads one event.
func (l *line) next() object {
	l.t.Helper()
	kind, doc, err := l.conn.Read(l.t.Context())
	require.NoError(l.t, err)
	require.Equal(l.t, websocket.MessageText, kind)
	var e object
	require.NoError(l.t, json.Unmarshal(doc, &e), string(doc))
	return e
}

// closed reads to the end and returns the status of the closing frame.
func (l *line) closed() websocket.StatusCode {
	l.t.Helper()
	for {
		if _, _, err := l.conn.Read(l.t.Context()); err != nil {
			return websocket.CloseStatus(err)
		}
	}
}

// turn sends a create and reads a valid stream of events.
func (l *line) turn(fields string) *servertest.Stream {
	l.t.Helper()
	s := l.read(fields)
	require.Empty(l.t, servertest.Check(s))
	return s
}

// read sends a create and reads to the terminal event.
func (l *line) read(fields string) *servertest.Stream {
	l.t.Helper()
	l.send(`{"type":"response.create",` + fields + `}`)
	s := &servertest.Stream{Done: true}
	for {
		e := l.next()
		s.Events = append(s.Events, e)
		switch kind := e["type"].(string); kind {
		case "error":
			require.Fail(l.t, "refused", "%v", e)
		case "response.completed", "response.incomplete", "response.failed":
			return s
		}
	}
}

// refused sends a document and wants an error event; it returns the error.
func (l *line) refused(status int, doc string) object {
	l.t.Helper()
	l.send(doc)
	e := l.next()
	require.Equal(l.t, "error", e["type"], "%v", e)
	require.EqualValues(l.t, status, e["status"], "%v", e)
	require.Equal(l.t, dig(e, "error", "message"), e["message"])
	return e["error"].(object)
}

func TestSocketTurns(t *testing.T) {
	n := newNode(t, "<think>\nso\n</think>\n\nHi."+call(`{"city": "Paris"}`))
	l := n.dial()
	one := n.create(`{"input":"hi",` + weatherTool + `}`)
	for range 3 {
		s := l.turn(`"input":"hi","stream":true,"store":false,` + weatherTool)
		require.Equal(t, scrub(one), scrub(s.Final()), "a socket tells what a POST does")
	}
	l.send(`{"type":"response.create","input":"one"}`)
	l.send(`{"type":"response.create","input":"two"}`)
	var ids []any
	for len(ids) < 2 {
		switch e := l.next(); e["type"] {
		case "response.created":
			require.Equal(t, len(ids), int(e["sequence_number"].(float64))+len(ids), "each turn counts from 0")
		case "response.completed":
			ids = append(ids, dig(e, "response", "id"))
		}
	}
	require.NotEqual(t, ids[0], ids[1])
	require.NoError(t, l.conn.Close(websocket.StatusNormalClosure, ""))
}

func TestSocketContinuation(t *testing.T) {
	n := newNode(t, "Four.")
	l := n.dial()
	first := l.turn(`"input":"Two and two?","store":false,"instructions":"Be brief."`).Final()
	require.Nil(t, first["previous_response_id"])
	n.Say("Five.")
	id := first["id"].(string)
	second := l.turn(`"input":[{"role":"user","content":"And one?"}],"previous_response_id":"` + id + `"`).Final()
	require.Equal(t, id, second["previous_response_id"])
	require.Equal(t, "<|im_start|>user\nTwo and two?<|im_end|>\n<|im_start|>assistant\nFour.<|im_end|>\n<|im_start|>user\nAnd one?<|im_end|>\n<|im_start|>assistant\n", n.LastPrompt())

	ask := func(id any, input string) string {
		return `{"type":"response.create","input":` + input + `,"previous_response_id":"` + id.(string) + `"}`
	}
	for _, unknown := range []any{id, "resp_ghost"} {
		e := l.refused(400, ask(unknown, `"x"`))
		require.Equal(t, "previous_response_not_found", e["code"])
		require.Equal(t, "previous_response_id", e["param"])
	}
	second = l.turn(`"input":"new chain"`).Final()
	e := l.refused(400, ask(second["id"], `[{"type":"function_call_output","call_id":"call_x","output":"1"}]`))
	require.Contains(t, e["message"], "call_x")
	e = l.refused(400, ask(second["id"], `"x"`))
	require.Equal(t, "previous_response_not_found", e["code"], "a failed continuation forgets what it continued")
	require.Equal(t, "completed", l.turn(`"input":"fresh"`).Final()["status"])

	third := l.turn(`"input":"fresh"`).Final()
	e = n.dial().refused(400, ask(third["id"], `"x"`))
	require.Equal(t, "previous_response_not_found", e["code"], "another socket knows nothing of it")
}

func TestSocketWarmUp(t *testing.T) {
	n := newNode(t, "Hello.")
	l := n.dial()
	s := l.read(`"input":[{"role":"developer","content":"long prompt"}],"generate":false`)
	require.Equal(t, []string{"response.created", "response.in_progress", "response.completed"}, s.Types())
	require.Empty(t, s.Final()["output"])
	require.EqualValues(t, 0, dig(s.Final(), "usage", "output_tokens"))
	require.Nil(t, s.Final()["max_output_tokens"])
	warm := s.Final()["id"].(string)
	s = l.turn(`"input":"hi","previous_response_id":"` + warm + `"`)
	require.Equal(t, "Hello.", s.Text())
	require.Contains(t, n.LastPrompt(), "long prompt")
	require.Positive(t, dig(s.Final(), "usage", "input_tokens_details", "cached_tokens"))
}

func TestSocketRefusals(t *testing.T) {
	n := newNode(t, "hi", nodeOptions{config: Config{MaxBody: 4096}})
	l := n.dial()
	for _, row := range []struct {
		doc, code, param string
		status           int
	}{
		{`{"type":`, codeInvalidJSON, "", 400},
		{`[]`, codeInvalidType, "", 400},
		{`{"input":"hi"}`, codeMissing, "type", 400},
		{`{"type":"response.cancel"}`, codeInvalidValue, "type", 400},
		{`{"type":"response.create","input":"hi","generate":1}`, codeInvalidType, "generate", 400},
		{`{"type":"response.create","input":5}`, codeInvalidType, "input", 400},
		{`{"type":"response.create","input":"hi","model":"other"}`, codeModelNotFound, "model", 404},
		{`{"type":"response.create","input":"` + strings.Repeat("a", 3000) + `"}`, codeContextLength, "input", 400},
	} {
		e := l.refused(row.status, row.doc)
		require.Equal(t, row.code, e["code"], row.doc)
		if row.param != "" {
			require.Equal(t, row.param, e["param"], row.doc)
		}
	}
	require.NoError(t, l.conn.Write(t.Context(), websocket.MessageBinary, []byte(`{}`)))
	require.Equal(t, "error", l.next()["type"])
	require.Equal(t, "hi", l.turn(`"input":"hi"`).Text(), "a refusal leaves the socket open")

	require.Equal(t, codeTooLarge, l.refused(413, `{"type":"response.create","input":"`+strings.Repeat("a", 100000)+`"}`)["code"])
	require.Equal(t, websocket.StatusMessageTooBig, l.closed())
}

func TestSocketUpgrades(t *testing.T) {
	n := newNode(t, "hi", nodeOptions{config: Config{APIKeys: []string{"one"}, MaxSockets: 1}})
	upgrade := []string{"Authorization", "Bearer one", "Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA=="}
	for _, row := range []struct {
		headers []string
		status  int
	}{
		{upgrade[:2], 405},
		{append([]string{}, upgrade[2:]...), 401},
		{append([]string{}, upgrade[:6]...), 400},
		{append([]string{"Origin", "http://elsewhere.example"}, upgrade...), 403},
	} {
		res, body := n.do("GET", "/v1/responses", "", row.headers...)
		require.Equal(t, row.status, res.StatusCode, body)
		errorOf(t, body)
	}
	l := n.dial("Authorization", "Bearer one")
	res, body := n.do("GET", "/v1/responses", "", upgrade...)
	require.Equal(t, 503, res.StatusCode)
	require.Equal(t, "too_many_connections", errorOf(t, body)["code"])
	require.NoError(t, l.conn.Close(websocket.StatusNormalClosure, ""))
	require.Eventually(t, func() bool {
		conn, res, err := websocket.Dial(t.Context(), n.http.URL+"/v1/responses", &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer one"}}})
		if err != nil {
			_ = res.Body.Close()
			return false
		}
		return conn.CloseNow() == nil
	}, 5*time.Second, time.Millisecond, "the place is free again")
}

func TestSocketEnds(t *testing.T) {
	t.Run("idle", func(t *testing.T) {
		n := newNode(t, "hi", nodeOptions{config: Config{SocketIdle: 30 * time.Millisecond}})
		require.Equal(t, websocket.StatusNormalClosure, n.dial().closed())
	})
	t.Run("age", func(t *testing.T) {
		n := newNode(t, strings.Repeat("word ", 20), nodeOptions{cost: 15 * time.Millisecond, config: Config{SocketLife: time.Second}})
		l := n.dial()
		l.turn(`"input":"what runs is finished"`)
		require.Equal(t, "websocket_connection_limit_reached", dig(l.next(), "error", "code"))
		require.Equal(t, websocket.StatusGoingAway, l.closed())
	})
	t.Run("drain", func(t *testing.T) {
		n := newNode(t, strings.Repeat("word ", 20), nodeOptions{cost: time.Millisecond})
		busy, idle := n.dial(), n.dial()
		busy.send(`{"type":"response.create","input":"hi"}`)
		require.Equal(t, "response.created", busy.next()["type"])
		done := make(chan error, 1)
		go func() { done <- n.server.Drain(context.Background()) }()
		require.Equal(t, websocket.StatusGoingAway, idle.closed())
		last := object{}
		for last["type"] != "response.completed" {
			last = busy.next()
		}
		require.Equal(t, websocket.StatusGoingAway, busy.closed())
		require.NoError(t, <-done)
	})
	t.Run("half a message", func(t *testing.T) {
		n := newNode(t, "hi", nodeOptions{config: Config{BodyTimeout: 30 * time.Millisecond}})
		l := n.dial()
		w, err := l.conn.Writer(t.Context(), websocket.MessageText)
		require.NoError(t, err)
		_, err = w.Write(bytes.Repeat([]byte(" "), 10_000)) // more than the client holds back
		require.NoError(t, err)
		require.Equal(t, websocket.StatusCode(-1), l.closed(), "the connection is cut")
		require.Eventually(t, func() bool { return n.server.intake.bytes.Load() == intakeBodies*defaultMaxBody }, 5*time.Second, time.Millisecond)
	})
	t.Run("client gone", func(t *testing.T) {
		n := newNode(t, strings.Repeat("word ", 300), nodeOptions{cost: 2 * time.Millisecond})
		l := n.dial()
		l.send(`{"type":"response.create","input":"hi"}`)
		l.next()
		require.NoError(t, l.conn.CloseNow())
		require.Eventually(t, func() bool { return n.model.Engine.Stats().Running == 0 }, 5*time.Second, time.Millisecond)
	})
}

func TestSocketFailureIsOneEvent(t *testing.T) {
	n := newNode(t, strings.Repeat("word ", 300), nodeOptions{cost: 5 * time.Millisecond, config: Config{
		RequestTimeout: 40 * time.Millisecond, Heartbeat: 10 * time.Millisecond,
	}})
	l := n.dial()
	s := l.turn(`"input":"hi"`)
	require.Equal(t, codeTimeout, dig(s.Final(), "error", "code"))
	require.Empty(t, s.Of("error"), "the next turn must not begin with what is left of this one")
}

var upgradeHeaders = []string{
	"Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA==",
}

// TestUpgradeWithABody: net/http would wait for the body before it hands the
// connection over, with a place taken that no drain could free.
func TestUpgradeWithABody(t *testing.T) {
	n := newNode(t, "hi")
	for _, announced := range []string{"Content-Length: 5", "Transfer-Encoding: chunked"} {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", n.http.Listener.Addr().String())
		require.NoError(t, err)
		head := "GET /v1/responses HTTP/1.1\r\nHost: x\r\n" + announced + "\r\n"
		for i := 0; i < len(upgradeHeaders); i += 2 {
			head += upgradeHeaders[i] + ": " + upgradeHeaders[i+1] + "\r\n"
		}
		_, err = conn.Write([]byte(head + "\r\n"))
		require.NoError(t, err)
		answer, err := bufio.NewReader(conn).ReadString('\n')
		require.NoError(t, err)
		require.Contains(t, answer, "400")
		require.NoError(t, conn.Close())
	}
	require.NoError(t, n.server.Drain(t.Context()))
}

func TestSocketPanicEndsTheTurnAlone(t *testing.T) {
	var log lockedBuffer
	n := newNode(t, "hi", nodeOptions{config: Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}})
	l := n.dial()
	m := n.server.model.Swap(&Model{ID: "broken"})
	e := l.refused(500, `{"type":"response.create","input":"hi"}`)
	require.Equal(t, codeServerError, e["code"])
	n.server.model.Store(m)
	require.Equal(t, "hi", l.turn(`"input":"hi"`).Text())
	require.NoError(t, l.conn.Close(websocket.StatusNormalClosure, ""))
	require.Eventually(t, func() bool { return strings.Contains(log.String(), "status=101") }, 5*time.Second, time.Millisecond)
	require.Contains(t, log.String(), "a turn panicked")
	require.Contains(t, log.String(), "method=WEBSOCKET")
}

// lockedBuffer is a log that is read while it is written.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// TestIdleSocketsAreCheap holds what connections cost that wait for their user,
// both ends counted.
func TestIdleSocketsAreCheap(t *testing.T) {
	n := newNode(t, "hi")
	memory := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapInuse + m.StackInuse)
	}
	before := memory()
	for range 200 {
		n.dial()
	}
	used := memory() - before
	t.Logf("200 connections: %d KiB", used>>10)
	require.Less(t, used, int64(20<<20))
}
