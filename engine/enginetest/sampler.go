package enginetest

import (
	"sync/atomic"

	"quern/engine"
)

// Sampler is what the fake's NewSampler returns; it records its use.
type Sampler struct {
	Params   engine.SamplerParams
	Prompt   []engine.Token // as accepted
	Accepted []engine.Token // sampled or inserted, in order
	Inserted []int          // for each token of Accepted that was inserted, its index
	Rows     int            // rows computed for its request
	// PromptRows are those of the prompt that were computed before its first token.
	PromptRows int

	fake   *Fake
	closed atomic.Bool
}

var _ engine.Sampler = (*Sampler)(nil)

// AcceptPrompt implements engine.Sampler.
func (s *Sampler) AcceptPrompt(p []engine.Token) {
	if s.closed.Load() || s.Prompt != nil {
		_ = s.fake.misuse("AcceptPrompt on a sampler that is closed or has a prompt")
	}
	s.Prompt = append([]engine.Token{}, p...)
}

// Accept implements engine.Sampler.
func (s *Sampler) Accept(tokens []engine.Token) error {
	if s.closed.Load() || len(s.Accepted) == 0 {
		return s.fake.misuse("Accept on a sampler that is closed or has chosen nothing")
	}
	for _, t := range tokens {
		s.Inserted = append(s.Inserted, len(s.Accepted))
		s.Accepted = append(s.Accepted, t)
	}
	return nil
}

// Close implements engine.Sampler.
func (s *Sampler) Close() {
	if s.closed.Swap(true) {
		_ = s.fake.misuse("sampler closed twice")
		return
	}
	s.fake.samplers.Add(-1)
}

// Closed says whether Close was called.
func (s *Sampler) Closed() bool { return s.closed.Load() }
