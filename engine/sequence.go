package engine

import "time"

// sequence is one request inside the loop: plain data, owned by the engine
// goroutine once it has been taken from the inbox.
type sequence struct {
	stream  *Stream
	request Request
	arrival uint64
	tenant  *tenant
	queued  bool
	tokens  []Token   // the prompt, then what was sampled or inserted
	kv      *resident // nil while it waits
	maxOut  int
	out     int         // tokens sampled or inserted
	unwatch func() bool // stops watching the context of Submit

	// What the step at hand guesses to follow its tokens, and what that is made
	// from; nil where drafts are off, and before the first one.
	draft    []Token
	mayDraft int // tokens
	guess    *guess
	slot     *slot // of the draft model

	// Its prompt is in Engine.coming while it computes it.
	coming entry[*sequence]
	// It waits until leader, which computes the same head, has got to shared.
	leader *sequence
	shared int

	// back is what the tiers have for it, until it is restored. miss says why it
	// is not more, if that is known.
	back    comeback
	miss    Miss
	counted bool // its cached tokens are fixed

	submitted, started, first, last time.Time
}

// prompt is how many of its tokens are the prompt.
func (s *sequence) prompt() int { return len(s.tokens) - s.out }

// computed is how many of its tokens are in the KV cache.
func (s *sequence) computed() int {
	if s.kv == nil {
		return 0
	}
	return s.kv.length
}

// pending is how many tokens are still to be computed before one is sampled.
func (s *sequence) pending() int { return len(s.tokens) - s.computed() }

// left is how many more tokens it may sample.
func (s *sequence) left() int { return s.maxOut - s.out }
