package soaktest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Options say what is done to which node.
type Options struct {
	URL      string // of the node under load, without /v1
	Alone    string // of the one that does one request at a time
	Duration time.Duration
	Workers  int // requests at once
	Seed     uint64

	HeadWords int // of the longest head that conversations share
	MaxTokens int // of an answer, about
	NoTools   bool
	Seeded    bool // half of the requests have a temperature and a seed
	// Judge explains an answer that differs, "" if nothing does. None: no
	// difference can be explained.
	Judge func(body []byte, got, alone *Answer) string
}

// Result is what came of it.
type Result struct {
	Answered  int // and compared
	Cancelled int
	Cached    int // tokens, of prompts that were answered
	Output    int // tokens
	Explained map[string]int
	Memory    Memory
}

type soak struct {
	Options
	heads  []string
	client *http.Client
	alone  sync.Mutex // held while the second node works

	cancelled atomic.Int64

	mu     sync.Mutex // guards what follows
	result Result
	err    error // the first
}

// Run returns when the time is over, or with the first fault.
func Run(ctx context.Context, o Options) (Result, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	transport := &http.Transport{MaxIdleConnsPerHost: o.Workers}
	defer transport.CloseIdleConnections()
	s := &soak{
		Options: o, client: &http.Client{Transport: transport},
		heads: heads(rand.New(rand.NewPCG(o.Seed, 0)), o.HeadWords), result: Result{Explained: map[string]int{}},
	}
	end := time.Now().Add(o.Duration)
	watched := make(chan Memory)
	go func() { watched <- watch(ctx, o.Duration) }()
	var wg sync.WaitGroup
	for i := range o.Workers {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(o.Seed, uint64(i)+1))
			for time.Now().Before(end) && ctx.Err() == nil {
				if err := s.converse(ctx, r, end); err != nil {
					s.fail(err)
					stop()
				}
			}
		})
	}
	wg.Wait()
	stop()
	s.result.Memory = <-watched
	s.result.Cancelled = int(s.cancelled.Load())
	return s.result, s.err
}

func (s *soak) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
}

// converse is one conversation; it ends where a request is cancelled for good.
func (s *soak) converse(ctx context.Context, r *rand.Rand, end time.Time) error {
	c := s.begin(r)
	for c.turns > 0 && time.Now().Before(end) && ctx.Err() == nil {
		body := c.body(r, &s.Options)
		if r.IntN(4) == 0 {
			s.breakOff(ctx, r, body)
			if r.IntN(2) == 0 {
				return nil // the client does not come back
			}
		}
		a, err := s.ask(ctx, s.URL, body, r.IntN(2) == 0)
		if ctx.Err() != nil {
			return nil // another one has failed
		}
		if err == nil {
			err = s.compare(ctx, body, a)
		}
		if err != nil {
			return fmt.Errorf("%w\nrequest: %s", err, body)
		}
		c.take(a)
	}
	return nil
}

// breakOff sends a request and hangs up: after a while, or after some bytes.
func (s *soak) breakOff(ctx context.Context, r *rand.Rand, body []byte) {
	s.cancelled.Add(1)
	ctx, cancel := context.WithTimeout(ctx, time.Duration(r.IntN(40))*time.Millisecond)
	defer cancel()
	bytes := r.IntN(6000)
	if r.IntN(2) == 0 {
		var late context.CancelFunc
		ctx, late = context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer late()
	}
	res, err := s.post(ctx, s.URL+"/v1/responses", streamed(body, r.IntN(3) > 0))
	if err != nil {
		return // that is what was wanted
	}
	defer res.Body.Close()
	_, _ = io.CopyN(io.Discard, res.Body, int64(bytes))
}

func streamed(body []byte, stream bool) string {
	if !stream {
		return string(body)
	}
	return `{"stream":true,` + string(body[1:])
}

func (s *soak) post(ctx context.Context, url, body string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	return s.client.Do(req)
}

func (s *soak) ask(ctx context.Context, url string, body []byte, stream bool) (*Answer, error) {
	res, err := s.post(ctx, url+"/v1/responses", streamed(body, stream))
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	out, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", res.Status, out)
	}
	return readAnswer(string(out), stream)
}

// compare asks the second node the same and counts the answer.
func (s *soak) compare(ctx context.Context, body []byte, got *Answer) error {
	alone, err := s.askAlone(ctx, body)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("alone: %w", err)
	}
	why := "same"
	if got.Said != alone.Said {
		why = ""
		if s.Judge != nil {
			why = s.Judge(body, got, alone)
		}
		if why == "" {
			return errors.New("the answer differs from that of a node of its own:\n" + got.Said + "\n" + alone.Said)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.result.Answered++
	s.result.Cached += got.Cached
	s.result.Output += got.Output
	s.result.Explained[why]++
	return nil
}

func (s *soak) askAlone(ctx context.Context, body []byte) (*Answer, error) {
	s.alone.Lock()
	defer s.alone.Unlock()
	res, err := s.post(ctx, s.Alone+"/flush_cache", "{}")
	if err != nil {
		return nil, err
	}
	res.Body.Close()
	return s.ask(ctx, s.Alone, body, false)
}
