package server

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
	"github.com/gin-gonic/gin"
)

// sockets are the open WebSocket connections. An upgraded connection is beyond
// the reach of http.Server, so that a drain has to look after it. Any goroutine.
type sockets struct {
	mu      sync.Mutex
	open    map[*socket]struct{}
	taken   int // those that are being opened included
	closing bool
	empty   chan struct{} // closed once closing and none is left
}

func newSockets() *sockets {
	return &sockets{open: map[*socket]struct{}{}, empty: make(chan struct{})}
}

// take reserves a place; release gives it back.
func (r *sockets) take(limit int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closing || r.taken >= limit {
		return false
	}
	r.taken++
	return true
}

func (r *sockets) release(k *socket) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.open, k)
	if r.taken--; r.taken == 0 && r.closing {
		close(r.empty)
	}
}

// add makes a socket known; false says that it must be closed at once.
func (r *sockets) add(k *socket) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open[k] = struct{}{}
	return !r.closing
}

var shutdownFarewell = farewell{code: websocket.StatusGoingAway, reason: "the node is shutting down"}

// close takes no more sockets, and closes each after what it is answering.
func (r *sockets) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closing {
		return
	}
	r.closing = true
	if r.taken == 0 {
		close(r.empty)
	}
	for k := range r.open {
		go k.leave(shutdownFarewell) // ends with the socket, which close's caller awaits
	}
}

// cut ends those that are left.
func (r *sockets) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for k := range r.open {
		k.cancel()
	}
}

// openSocket is GET /v1/responses: a WebSocket for a client that keeps one
// connection for all its turns. It returns when the connection has ended.
func (s *Server) openSocket(c *gin.Context) *requestError {
	if !strings.EqualFold(c.GetHeader("Upgrade"), "websocket") {
		c.Header("Allow", "POST")
		return methodNotAllowed(c.Request, "; POST a request, or open a WebSocket")
	}
	if s.contract.noSockets {
		c.Header("Allow", "POST")
		return methodNotAllowed(c.Request, ": the "+s.contract.name+" contract has no WebSocket; POST a request")
	}
	if c.Request.ContentLength != 0 {
		// The library takes the connection over, for which net/http first waits
		// for all of the body, however long that takes.
		return invalid("", "invalid_upgrade", "the WebSocket can't be opened: its request has a body")
	}
	if s.gate.isClosed() {
		return errDraining()
	}
	if !s.sockets.take(s.cfg.MaxSockets) {
		return unavailable("too_many_connections", "all WebSocket connections of this node are taken; POST works", retryQueue)
	}
	k := &socket{server: s, key: exchangeOf(c).key, born: time.Now(), slots: make(chan struct{}, maxWaitingCreates+1)}
	defer s.sockets.release(k)
	conn, refused := upgrade(c)
	if refused != nil {
		return refused
	}
	conn.SetReadLimit(-1) // read has its own limit, which it can explain
	k.conn = conn
	k.ctx, k.cancel = context.WithCancel(context.Background())
	if !s.sockets.add(k) {
		k.close(shutdownFarewell)
		return nil
	}
	k.serve()
	return nil
}

// upgrade makes the connection a WebSocket. No compression: what it would save
// on a stream of small events is not worth its memory.
func upgrade(c *gin.Context) (*websocket.Conn, *requestError) {
	w := &upgradeWriter{ResponseWriter: c.Writer}
	conn, err := websocket.Accept(w, c.Request, &websocket.AcceptOptions{CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		c.Header("Connection", "")
		c.Header("Upgrade", "")
		e := invalid("", "invalid_upgrade", "the WebSocket can't be opened: %s", strings.TrimSpace(w.said.String()))
		e.Status = w.status
		return nil, e
	}
	return conn, nil
}

// upgradeWriter keeps the plain refusals of the library back, so that they can
// be told as JSON.
type upgradeWriter struct {
	gin.ResponseWriter
	status int
	said   strings.Builder
}

func (w *upgradeWriter) WriteHeader(status int) {
	if w.status = status; status == http.StatusSwitchingProtocols {
		w.ResponseWriter.WriteHeader(status)
	}
}

func (w *upgradeWriter) Write(p []byte) (int, error) { return w.said.Write(p) }

// WriteString is what io.WriteString calls.
func (w *upgradeWriter) WriteString(s string) (int, error) { return w.said.WriteString(s) }
