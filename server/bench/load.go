package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// Load says how prompts are sent.
type Load struct {
	Dataset     Dataset       `json:"dataset"`
	Concurrency int           `json:"concurrency"` // closed loop: requests at a time
	Rate        float64       `json:"rate"`        // open loop if above 0: mean requests a second, at random times
	Sessions    int           `json:"sessions"`    // conversations under way; 0: as many as requests at a time
	Requests    int           `json:"requests"`    // stop after as many; 0: no bound
	Duration    time.Duration `json:"duration_ns"` // start none later; 0: no bound
	Warmup      int           `json:"warmup"`      // requests sent before, and not counted
	MaxTokens   int           `json:"max_tokens"`
	Temperature float64       `json:"temperature"`
	Timeout     time.Duration `json:"timeout_ns"` // of one request; 0: none
}

// Validate says what can't be run.
func (l Load) Validate() error {
	if err := l.Dataset.Validate(); err != nil {
		return err
	}
	switch {
	case l.Requests <= 0 && l.Duration <= 0:
		return errors.New("neither the number of requests nor the duration is bounded")
	case l.Rate < 0:
		return fmt.Errorf("a rate of %g requests a second", l.Rate)
	case l.Rate == 0 && l.Concurrency < 1:
		return fmt.Errorf("%d requests at a time, at least 1 is needed", l.Concurrency)
	case l.MaxTokens < 1:
		return fmt.Errorf("answers of %d tokens, at least 1 is needed", l.MaxTokens)
	case l.Rate == 0 && l.Sessions > 0 && l.Sessions < l.Concurrency:
		return fmt.Errorf("%d sessions can't keep %d requests under way", l.Sessions, l.Concurrency)
	}
	return nil
}

// Run sends the load and returns what came back. When ctx ends it returns what
// it has, requests under way counted as interrupted.
func Run(ctx context.Context, c *Client, l Load) (*Result, error) {
	if err := l.Validate(); err != nil {
		return nil, err
	}
	if l.Warmup > 0 {
		if err := warmUp(ctx, c, l); err != nil {
			return nil, err
		}
	}
	r := &runner{client: c, load: l, source: newSource(l)}
	start := time.Now()
	if l.Rate > 0 {
		r.open(ctx)
	} else {
		r.closed(ctx)
	}
	return newResult(r.samples, time.Since(start), l.Dataset.turns() > 1), nil
}

func warmUp(ctx context.Context, c *Client, l Load) error {
	l.Dataset.Seed ^= 1 << 63 // a warm-up must not warm what is measured
	l.Requests, l.Duration, l.Rate = l.Warmup, 0, 0
	l.Concurrency, l.Sessions = min(max(l.Concurrency, 1), l.Warmup), 0
	r := &runner{client: c, load: l, source: newSource(l)}
	r.closed(ctx)
	for _, s := range r.samples {
		if s.Err == nil {
			return nil
		}
	}
	if len(r.samples) == 0 {
		return ctx.Err()
	}
	return fmt.Errorf("no request of the warm-up succeeded: %w", r.samples[0].Err)
}

type runner struct {
	client *Client
	load   Load
	source *source

	mu      sync.Mutex // guards samples
	samples []Sample
}

// closed keeps Concurrency requests under way.
func (r *runner) closed(ctx context.Context) {
	stop := r.deadline()
	var wg sync.WaitGroup
	for range r.load.Concurrency {
		wg.Go(func() {
			for ctx.Err() == nil && time.Now().Before(stop) {
				s := r.source.take(ctx)
				if s == nil {
					return
				}
				r.send(ctx, s)
			}
		})
	}
	wg.Wait()
}

// open starts requests at random times, whether or not earlier ones are done.
func (r *runner) open(ctx context.Context) {
	stop := r.deadline()
	rng := rand.New(rand.NewPCG(r.load.Dataset.Seed, ^uint64(0)))
	var wg sync.WaitGroup
	defer wg.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for next := time.Now(); ; {
		timer.Reset(time.Until(next))
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		if !next.Before(stop) {
			return
		}
		s := r.source.takeNow()
		if s == nil {
			return
		}
		wg.Go(func() { r.send(ctx, s) })
		next = next.Add(time.Duration(rng.ExpFloat64() / r.load.Rate * float64(time.Second)))
	}
}

func (r *runner) deadline() time.Time {
	if r.load.Duration > 0 {
		return time.Now().Add(r.load.Duration)
	}
	return time.Now().Add(100 * 365 * 24 * time.Hour)
}

func (r *runner) send(ctx context.Context, s *session) {
	if r.load.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.load.Timeout)
		defer cancel()
	}
	input := s.input()
	sample := r.client.Send(ctx, input, r.load.MaxTokens, r.load.Temperature)
	sample.Turn = s.turn
	r.mu.Lock()
	r.samples = append(r.samples, sample)
	r.mu.Unlock()
	if sample.Err != nil {
		r.source.abandon()
		return
	}
	s.answered(input, sample.Text)
	r.source.putBack(s)
}
