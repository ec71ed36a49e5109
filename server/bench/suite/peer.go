package suite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"syscall"
	"time"

	"quern/server/bench"
)

// Setup is what every server of a run gets.
type Setup struct {
	Model    string // path of the GGUF file
	Threads  int
	Slots    int    // requests at once
	Cells    int    // of the KV cache, for all of them together
	CacheDir string // keeps prefixes beyond the process, where a server can; "": nowhere
}

// Peer is a kind of server to measure.
type Peer struct {
	Name string
	// Guessing says that the peer is there for works that are about guessing
	// tokens ahead, and no others.
	Guessing bool
	// Start starts a server and returns when it answers.
	Start func(ctx context.Context, s Setup) (*Server, error)
}

// Server is one that runs.
type Server struct {
	URL string
	// Shared is one that was not started here and can't be stopped.
	Shared bool
	// Stop ends it and returns when it is gone.
	Stop func() error
}

// process is how to start a server as one.
type process struct {
	path  string
	args  []string
	env   []string // beyond our own
	ready string   // path that answers 200 once the server does
	log   io.Writer
}

const (
	loadTime = 3 * time.Minute
	stopTime = 30 * time.Second
)

// start waits until the server answers at addr.
func (p process) start(ctx context.Context, addr string) (*Server, error) {
	cmd := exec.Command(p.path, p.args...) //nolint:noctx // it is stopped by a signal, so that it can write what it has to keep
	cmd.Env = append(os.Environ(), p.env...)
	cmd.Stdout, cmd.Stderr = p.log, p.log
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	gone := make(chan error, 1)
	go func() { gone <- cmd.Wait() }()
	s := &Server{URL: "http://" + addr, Stop: func() error { return stop(cmd.Process, gone) }}
	if err := awaitReady(ctx, s.URL+p.ready, gone); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

func stop(p *os.Process, gone chan error) error {
	_ = p.Signal(syscall.SIGTERM) // one that is gone already needs none
	select {
	case <-gone: //nolint:errcheck // how it ended does not matter
		return nil
	case <-time.After(stopTime):
		err := p.Kill()
		<-gone //nolint:errcheck // as above
		return errors.Join(fmt.Errorf("process %d did not end within %s and was killed", p.Pid, stopTime), err)
	}
}

func awaitReady(ctx context.Context, url string, gone chan error) error {
	ctx, cancel := context.WithTimeout(ctx, loadTime)
	defer cancel()
	for {
		if answers(ctx, url) {
			return nil
		}
		select {
		case err := <-gone:
			gone <- err
			return fmt.Errorf("it ended before it answered: %w", ended(err))
		case <-ctx.Done():
			return fmt.Errorf("it gave no answer at %s: %w", url, ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// ended names an end without an error.
func ended(err error) error {
	if err == nil {
		return errors.New("exit status 0")
	}
	return err
}

func answers(ctx context.Context, url string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return false
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	res.Body.Close()
	return res.StatusCode == http.StatusOK
}

// freeAddr is an address where nothing listens.
func freeAddr(ctx context.Context) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// connect makes a client that has been served once: what a first request alone
// has to pay for, such as reading the weights, is no figure of any work.
func connect(ctx context.Context, s *Server) (*bench.Client, error) {
	c, err := bench.NewClient(s.URL, "", "")
	if err != nil {
		return nil, err
	}
	if err := c.FindModel(ctx); err != nil {
		return nil, err
	}
	hello := c.Send(ctx, []bench.Message{{Type: "message", Role: "user", Content: "Good morning."}}, 4, 0)
	if hello.Err != nil {
		return nil, hello.Err
	}
	return c, nil
}
