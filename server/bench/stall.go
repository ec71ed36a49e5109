package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// Stalled says how a running stream is disturbed.
type Stalled struct {
	Seed        uint64
	PromptWords int           // of the prompt that arrives
	MaxTokens   int           // of the running stream; it must outlast the prompt
	After       time.Duration // from the stream's first output to the arrival
	Temperature float64
	Timeout     time.Duration // of each request; 0: none
}

// Validate says what can't be run.
func (s Stalled) Validate() error {
	switch {
	case s.PromptWords < 1:
		return fmt.Errorf("a prompt of %d words, at least 1 is needed", s.PromptWords)
	case s.MaxTokens < 3:
		return fmt.Errorf("a stream of %d tokens, at least 3 are needed", s.MaxTokens)
	case s.After <= 0:
		return errors.New("the stream needs some time alone before the prompt arrives")
	}
	return nil
}

// Stall measures the gaps of a stream alone and while a long prompt is worked
// on, and what that costs the prompt. The prompt alone is measured first, by
// one of the same length.
func Stall(ctx context.Context, c *Client, o Stalled) (*Result, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.Timeout)
		defer cancel()
	}
	start := time.Now()
	rng := rand.New(rand.NewPCG(o.Seed, 0))
	long := func() []Message { return []Message{user(prose(rng, o.PromptWords))} }
	alone := c.Send(ctx, long(), 1, o.Temperature)

	// Small models end a story when they like; counting has no end.
	story := []Message{user(fmt.Sprintf("Write the numbers from %d to 100000 in words, one to a line.", 100+rng.IntN(9000)))}
	arrival := long()
	var running Sample
	first, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		running = c.send(ctx, story, o.MaxTokens, o.Temperature, sync.OnceFunc(func() { close(first) }))
	}()
	defer func() { <-done }()
	select {
	case <-first:
	case <-done:
		return stallResult(alone, running, Sample{}, time.Since(start))
	}
	select {
	case <-time.After(o.After):
	case <-done:
	}
	disturbing := c.Send(ctx, arrival, 1, o.Temperature)
	<-done
	return stallResult(alone, running, disturbing, time.Since(start))
}

func stallResult(alone, running, disturbing Sample, took time.Duration) (*Result, error) {
	samples := []Sample{alone, running, disturbing}
	for i := range samples {
		if samples[i].Err != nil {
			return nil, samples[i].Err
		}
	}
	var idle, during []time.Time
	for _, at := range running.Deltas {
		switch {
		case at.Before(disturbing.Start):
			idle = append(idle, at)
		case at.Before(disturbing.End):
			during = append(during, at)
		case len(during) == 0 || during[len(during)-1].Before(disturbing.End):
			during = append(during, at) // the first after it ends the last gap
		}
	}
	if len(idle) < 3 {
		return nil, fmt.Errorf("the stream gave %d pieces before the prompt arrived: too few to compare with", len(idle))
	}
	if running.End.Before(disturbing.End) {
		return nil, errors.New("the stream ended before the prompt was worked off: give it more tokens")
	}
	during = append([]time.Time{idle[len(idle)-1]}, during...)
	calm, stalled := gaps(idle), gaps(during)
	r := &Result{}
	r.add("duration", took.Seconds())
	r.add("prompt_input_tokens", float64(disturbing.Input))
	r.add("prompt_alone_ms", ms(alone.End.Sub(alone.Start)))
	r.add("prompt_ms", ms(disturbing.End.Sub(disturbing.Start)))
	r.add("prompt_slowdown", ratio(ms(disturbing.End.Sub(disturbing.Start)), ms(alone.End.Sub(alone.Start))))
	r.add("idle_median_itl_ms", percentile(calm, 0.5))
	r.add("stalled_median_itl_ms", percentile(stalled, 0.5))
	r.add("stalled_p99_itl_ms", percentile(stalled, 0.99))
	r.add("stalled_max_itl_ms", percentile(stalled, 1))
	r.add("stall_factor", ratio(percentile(stalled, 1), percentile(calm, 0.5)))
	r.add("stalled_output_pieces", float64(len(during)-1))
	return r, nil
}
