package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"

	"quern/server/keys"
)

// maxWaitingCreates is how many messages of a socket wait behind the one that
// is answered. The next one stays with the client until there is room.
const maxWaitingCreates = 4

// socket is one WebSocket connection. Its reader runs on the goroutine of the
// upgraded request; a worker answers the messages in order and lives only as
// long as there are any, so that an idle socket costs one goroutine.
type socket struct {
	server *Server
	conn   *websocket.Conn
	key    *keys.Holder // nil without keys
	born   time.Time

	ctx    context.Context // ends with the connection
	cancel context.CancelFunc
	slots  chan struct{} // one for each message that is not answered yet
	worker sync.WaitGroup

	mu      sync.Mutex
	queue   []message
	busy    bool      // the worker runs
	leaving *farewell // to be said when all is answered
	expiry  *time.Timer

	latest *remembered // belongs to the worker
}

// message is what a client sent: a document, or why it is none.
type message struct {
	doc     []byte
	held    int64 // bytes taken out of the intake
	refused *requestError
}

// farewell is how a socket is closed from this side.
type farewell struct {
	code   websocket.StatusCode
	reason string        // at most 123 bytes
	err    *requestError // told before; nil without
}

// serve reads messages until the connection ends, and waits for the worker.
func (k *socket) serve() {
	defer k.worker.Wait()
	defer k.cancel()
	defer func() { _ = k.conn.CloseNow() }() // mostly closed already
	k.await()
	defer k.expiry.Stop()
	for {
		select {
		case k.slots <- struct{}{}:
		case <-k.ctx.Done():
			return
		}
		m, err := k.read()
		if err != nil {
			return
		}
		k.enqueue(m)
		if m.refused != nil && m.refused.Code == codeTooLarge {
			k.leave(farewell{code: websocket.StatusMessageTooBig, reason: "the message is too large"})
			<-k.ctx.Done()
			return
		}
	}
}

// read takes one message. A client that sends half of one holds the socket no
// longer than it may hold a request.
func (k *socket) read() (message, error) {
	kind, r, err := k.conn.Reader(k.ctx)
	if err != nil {
		return message{}, err
	}
	slow := time.AfterFunc(k.server.cfg.BodyTimeout, k.cancel)
	defer slow.Stop()
	limit := k.server.cfg.MaxBody
	in := &meter{r: io.LimitReader(r, limit+1), in: k.server.intake}
	doc, err := io.ReadAll(in)
	m := message{doc: doc, held: in.held}
	if errors.Is(err, errNoIntake) {
		m.doc, m.refused = nil, k.server.overloaded(http.StatusTooManyRequests, errNoIntake.Error())
		_, err = io.Copy(io.Discard, in.r)
	}
	switch {
	case err != nil:
		k.server.intake.give(m.held)
		return message{}, err
	case m.refused != nil:
	case int64(len(doc)) > limit:
		m.doc, m.refused = nil, k.server.tooLarge()
	case kind != websocket.MessageText:
		m.doc, m.refused = nil, invalid("", codeInvalidJSON, "a message must be JSON in a text frame, this one is binary")
	}
	return m, nil
}

func (k *socket) enqueue(m message) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.queue = append(k.queue, m)
	if !k.busy {
		k.busy = true
		k.expiry.Stop()
		k.worker.Go(k.work)
	}
}

// work answers messages until there are none.
func (k *socket) work() {
	for {
		m, bye := k.next()
		if bye != nil {
			k.close(*bye)
		}
		if m == nil {
			return
		}
		k.answer(*m)
		k.server.intake.give(m.held)
		<-k.slots
	}
}

// next takes a message off the queue. Without one the worker ends, and a
// farewell that waited for it is due.
func (k *socket) next() (*message, *farewell) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.queue) == 0 {
		k.queue, k.busy = nil, false
		k.awaitLocked()
		return nil, k.leaving
	}
	m := k.queue[0]
	k.queue = k.queue[1:]
	return &m, nil
}

// await sets the time at which the socket is closed unless something comes.
func (k *socket) await() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.awaitLocked()
}

func (k *socket) awaitLocked() {
	wait := k.server.cfg.SocketIdle
	bye := farewell{code: websocket.StatusNormalClosure, reason: "nothing was asked for a while"}
	if left := k.server.cfg.SocketLife - time.Since(k.born); left < wait {
		wait = max(0, left)
		bye = farewell{code: websocket.StatusGoingAway, reason: "the connection has reached its age", err: errSocketAge(k.server.cfg.SocketLife)}
	}
	k.expiry = time.AfterFunc(wait, func() { k.leave(bye) })
}

// leave closes the socket, after what is being answered. Any goroutine.
func (k *socket) leave(bye farewell) {
	k.mu.Lock()
	if k.busy {
		if k.leaving == nil {
			k.leaving = &bye
		}
		k.mu.Unlock()
		return
	}
	k.mu.Unlock()
	k.close(bye)
}

// close says farewell and ends the connection. A peer that does not answer the
// closing handshake is left after a few seconds.
func (k *socket) close(bye farewell) {
	if bye.err != nil {
		_ = k.sendError(bye.err, nil)
	}
	_ = k.conn.Close(bye.code, bye.reason) // the peer may be gone
	k.cancel()
}

func errSocketAge(life time.Duration) *requestError {
	return invalid("", "websocket_connection_limit_reached",
		"a connection lasts %s, and this one has: open a new one, and send the whole conversation as input", life)
}

// send writes each event as one message.
func (k *socket) send(lines []byte) error {
	ctx, cancel := context.WithTimeout(k.ctx, k.server.cfg.WriteTimeout)
	defer cancel()
	for len(lines) > 0 {
		event, rest := cutLine(lines)
		if err := k.conn.Write(ctx, websocket.MessageText, event); err != nil {
			return err
		}
		lines = rest
	}
	return nil
}

// pongTime is how long the answer to a ping is waited for. It may stay out: a
// client is free to read when it likes.
const pongTime = time.Second

// comment sends a ping, of which proxies take note.
func (k *socket) comment() error {
	ctx, cancel := context.WithTimeout(k.ctx, pongTime)
	defer cancel()
	if err := k.conn.Ping(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

var _ wire = (*socket)(nil)

// sendError tells a refusal, with the status and the headers that it would have
// over HTTP. No router reads them here, so that an overload has the status for
// which Codex tells its user so.
func (k *socket) sendError(e *requestError, headers http.Header) error {
	told := k.server.contract.present(e)
	if told.Code == codeOverloaded {
		told.Status = http.StatusServiceUnavailable
	}
	if told.RetryAfter > 0 {
		headers = headers.Clone()
		if headers == nil {
			headers = http.Header{}
		}
		headers.Set("Retry-After", told.retryAfter())
	}
	w := eventWriter{lines: true, headers: headers}
	w.error(told, told.Status)
	return k.send(w.buf)
}
