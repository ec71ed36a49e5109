package server

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
)

// errGivenUp is the cause with which a client ends a background response.
var errGivenUp = errors.New("the response was cancelled")

// jobs are the background responses that are being made. Any goroutine.
type jobs struct {
	mu  sync.Mutex
	all map[string]*backgroundJob
}

func newJobs() *jobs { return &jobs{all: map[string]*backgroundJob{}} }

func (r *jobs) add(owner, id string, j *backgroundJob) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all[recentKey(owner, id)] = j
}

func (r *jobs) remove(owner, id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.all, recentKey(owner, id))
}

// find returns the job of a response, or nil if it is not being made.
func (r *jobs) find(owner, id string) *backgroundJob {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all[recentKey(owner, id)]
}

// backgroundJob is what others see of a response that is being made. Its
// goroutine writes, and any may read.
type backgroundJob struct {
	streamed bool // events are kept, for those who follow
	cancel   context.CancelCauseFunc
	ended    chan struct{} // closed by finish

	mu     sync.Mutex
	told   []byte        // the resource, as it was told last
	events []byte        // frames so far
	grown  chan struct{} // closed when there are more
}

func newJob(r *resource, streamed bool, cancel context.CancelCauseFunc) *backgroundJob {
	return &backgroundJob{
		streamed: streamed, cancel: cancel, ended: make(chan struct{}), told: r.append(nil), grown: make(chan struct{}),
	}
}

var _ wire = (*backgroundJob)(nil)

// send takes frames for those who follow.
func (j *backgroundJob) send(frames []byte) error {
	if !j.streamed {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.events = append(j.events, frames...)
	close(j.grown)
	j.grown = make(chan struct{})
	return nil
}

// comment keeps nobody awake: those who follow see to that themselves.
func (j *backgroundJob) comment() error { return nil }

func (j *backgroundJob) update(r *resource) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.told = r.append(nil)
}

func (j *backgroundJob) resource() []byte {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.told
}

// stored are the events to keep; nil where none are.
func (j *backgroundJob) stored() []byte {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.events
}

// finish says that nothing more comes.
func (j *backgroundJob) finish() { close(j.ended) }

// giveUp cancels the response and waits for its end, or for that of ctx.
func (j *backgroundJob) giveUp(ctx context.Context) {
	j.cancel(errGivenUp)
	select {
	case <-j.ended:
	case <-ctx.Done():
	}
}

// since returns what has come past an offset, and a channel that tells of more.
func (j *backgroundJob) since(from int) (frames []byte, more <-chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.events[from:len(j.events):len(j.events)], j.grown
}

// relay streams the events of a job past a sequence number until it ends or the
// client leaves, which the job does not mind.
func (s *Server) relay(c *gin.Context, j *backgroundJob, after int) *requestError {
	sse := newSSEWriter(c.Writer, s.cfg.WriteTimeout)
	defer sse.close()
	beat := time.NewTicker(s.cfg.Heartbeat)
	defer beat.Stop()
	from, skip := 0, after+1
	for {
		ended := isClosed(j.ended) // before the look, so that nothing comes between
		frames, more := j.since(from)
		from += len(frames)
		if len(frames) > 0 {
			frames, skip = skipFrames(frames, skip)
			if sse.send(frames) != nil {
				return nil
			}
			beat.Reset(s.cfg.Heartbeat)
		}
		if ended {
			return nil
		}
		select {
		case <-more:
		case <-j.ended:
		case <-beat.C:
			if sse.comment() != nil {
				return nil
			}
		case <-c.Request.Context().Done():
			return nil
		}
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// framesAfter are the events of a whole stream past a sequence number. Events
// are numbered from 0 without a gap, so that they need only be counted.
func framesAfter(events []byte, after int) []byte {
	rest, _ := skipFrames(events, after+1)
	return rest
}

// skipFrames leaves out so many events, but never the frame that ends the
// stream, and says how many are still to be left out.
func skipFrames(frames []byte, n int) (rest []byte, left int) {
	for n > 0 && bytes.HasPrefix(frames, []byte("event: ")) {
		_, after, found := bytes.Cut(frames, []byte("\n\n"))
		if !found {
			break
		}
		frames = after
		n--
	}
	return frames, n
}
