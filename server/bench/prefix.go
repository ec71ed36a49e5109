package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

// Repeated is a prompt that comes more than once. The same values make the same
// prompt.
type Repeated struct {
	Seed        uint64
	PromptWords int
	MaxTokens   int
	Temperature float64
	Timeout     time.Duration // of each request; 0: none
}

// Validate says what can't be run.
func (o Repeated) Validate() error {
	switch {
	case o.PromptWords < 1:
		return fmt.Errorf("a prompt of %d words, at least 1 is needed", o.PromptWords)
	case o.MaxTokens < 1:
		return fmt.Errorf("answers of %d tokens, at least 1 is needed", o.MaxTokens)
	}
	return nil
}

// Prefix sends the prompt twice: cold, then warm.
func Prefix(ctx context.Context, c *Client, o Repeated) (*Result, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	start := time.Now()
	r := &Result{}
	for _, name := range []string{"cold", "warm"} {
		if err := o.send(ctx, c, r, name); err != nil {
			return nil, err
		}
	}
	r.add("duration", time.Since(start).Seconds())
	return r, nil
}

// PrefixAgain sends the prompt once more, to a server that has been restarted
// since, and adds what came of it to the figures of Prefix.
func PrefixAgain(ctx context.Context, c *Client, o Repeated, r *Result) error {
	if err := o.send(ctx, c, r, "restored"); err != nil {
		return err
	}
	cold, _ := r.Value("cold_ttft_ms")
	restored, _ := r.Value("restored_ttft_ms")
	r.add("restored_share_of_cold", ratio(restored, cold))
	return nil
}

func (o Repeated) send(ctx context.Context, c *Client, r *Result, name string) error {
	if o.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.Timeout)
		defer cancel()
	}
	// By the length as well: a short one must not be the head of a long one.
	text := prose(rand.New(rand.NewPCG(o.Seed, uint64(o.PromptWords)<<1|1)), o.PromptWords)
	s := c.Send(ctx, []Message{user(text + "\nWrite a very long story about this.")}, o.MaxTokens, o.Temperature)
	if s.Err != nil {
		return s.Err
	}
	ttft := s.TTFT()
	r.add(name+"_ttft_ms", ms(ttft))
	r.add(name+"_input_tokens", float64(s.Input))
	r.add(name+"_cached_token_ratio", ratio(float64(s.Cached), float64(s.Input)))
	r.add(name+"_prefill_throughput", ratio(float64(s.Input-s.Cached), ttft.Seconds()))
	return nil
}
