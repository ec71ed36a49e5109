package server

import (
	"net/http"
	"time"
)

// sseWriter sends events to one client, on the goroutine of its request. A
// client that takes nothing for the length of the timeout loses its stream;
// until then its pace is nobody else's concern, since the engine never waits
// for a reader.
type sseWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration
	armed   time.Time // when the deadline was last set
}

// renewAfter is how old a write deadline may be: setting it costs more than an
// event does.
const renewAfter = 5 * time.Second

// newSSEWriter sends the header, after which errors can only be events.
func newSSEWriter(w http.ResponseWriter, timeout time.Duration) *sseWriter {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no") // nginx would collect the events
	w.WriteHeader(http.StatusOK)
	return &sseWriter{w: w, control: http.NewResponseController(w), timeout: timeout}
}

// send writes whole frames at once, so that no frame is split over two reads of
// a client without need.
func (s *sseWriter) send(frames []byte) error {
	if now := time.Now(); now.Sub(s.armed) > renewAfter {
		_ = s.control.SetWriteDeadline(now.Add(s.timeout + renewAfter)) // not every writer has deadlines
		s.armed = now
	}
	if _, err := s.w.Write(frames); err != nil {
		return err
	}
	return s.control.Flush()
}

// comment sends a line that keeps proxies awake and that clients skip.
func (s *sseWriter) comment() error { return s.send(waitingComment) }

var waitingComment = []byte(": waiting\n\n")

// close takes the deadline off, for the next request on the connection.
func (s *sseWriter) close() { _ = s.control.SetWriteDeadline(time.Time{}) }
