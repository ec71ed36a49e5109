package engine

import (
	"context"
	"sync"
	"time"
)

// Engine runs requests on one Backend. See the package comment for ownership.
type Engine struct {
	backend Backend
	limits  Limits
	config  Config

	// What request goroutines and the loop share.
	mu         sync.Mutex
	inbox      []*sequence // submitted
	calls      []func()    // to be run by the loop
	active     int         // requests that have not ended
	arrivals   uint64
	submitted  uint64
	refused    uint64
	draining   bool
	drained    chan struct{} // closed when draining and active is 0
	endAll     error         // end every request with this
	closing    bool
	wake       chan struct{} // holds one
	done       chan struct{} // closed when the loop has ended
	closeError error

	// alive is held for reading around calls to the backend that come from other
	// goroutines, so that they can't meet its Close.
	alive  sync.RWMutex
	closed bool

	statsMu   sync.Mutex
	published Stats

	// The rest belongs to the loop.
	batch    *Batch
	cache    *cache
	tiers    *tiers // nil: there are none
	costs    *costs
	coming   index[*sequence] // prompts being computed
	waiting  []*sequence      // in order of arrival
	running  []*sequence      // in order of arrival
	pending  []int
	shares   []share
	fair     fairness
	turns    []int
	rowCap   int  // rows of a step after the backend found no room; 0 = no cap
	failures int  // failed steps in a row
	stalled  bool // all that wait do so for the tiers
	drafts   drafts
	drafter  *drafter // nil = none
	stepTime average
	stats    Stats
	began    time.Time
	now      time.Time
}

// New starts an engine on a backend, which it owns from here on.
func New(b Backend, c Config) *Engine {
	l := b.Limits()
	c = c.withDefaults(l)
	e := &Engine{
		backend: b, limits: l, config: c,
		drained: make(chan struct{}), wake: make(chan struct{}, 1), done: make(chan struct{}),
		cache: newCache(b, c), costs: newCosts(c, l), coming: index[*sequence]{},
		drafts: drafts{odds: firstOdds}, began: time.Now(),
	}
	var err error
	if e.tiers, err = newTiers(b, c, e.post); err != nil {
		c.Logger.Warn("prefixes that leave the KV cache are not kept", "err", err)
	}
	e.cache.tiers = e.tiers
	if c.Drafter != nil {
		if e.drafter, err = newDrafter(b, c); err != nil {
			c.Logger.Error("the draft model does not work", "err", err)
		}
	}
	e.publish()
	go e.run()
	return e
}

// Limits returns the backend's limits.
func (e *Engine) Limits() Limits { return e.limits }

// MaxLength is the most tokens, prompt and output, that one request may have.
func (e *Engine) MaxLength() int { return e.config.MaxLength }

// NewSampler makes a sampler for a request. An error means bad parameters, or is
// ErrClosed.
func (e *Engine) NewSampler(p SamplerParams) (Sampler, error) {
	e.alive.RLock()
	defer e.alive.RUnlock()
	if e.closed {
		return nil, ErrClosed
	}
	return e.backend.NewSampler(p)
}

// Submit queues a request. The end of ctx cancels it. It fails with
// *TooLongError, *TokenError, ErrEmptyPrompt, ErrQueueFull, ErrDraining or
// ErrClosed, or with the cause of ctx.
func (e *Engine) Submit(ctx context.Context, r Request) (*Stream, error) {
	s, err := e.newSequence(r)
	if err == nil {
		if err = context.Cause(ctx); err == nil {
			s.request.Sampler.AcceptPrompt(r.Prompt)
			err = e.enqueue(ctx, s)
		}
	}
	if err != nil {
		if r.Sampler != nil {
			r.Sampler.Close()
		} else if s != nil {
			s.request.Sampler.Close()
		}
		return nil, err
	}
	return s.stream, nil
}

func (e *Engine) newSequence(r Request) (*sequence, error) {
	limit := e.config.MaxLength
	switch {
	case len(r.Prompt) == 0:
		return nil, ErrEmptyPrompt
	case len(r.Prompt) >= limit || r.MaxTokens > limit-len(r.Prompt):
		return nil, &TooLongError{Prompt: len(r.Prompt), Max: max(1, r.MaxTokens), Limit: limit}
	}
	if r.MaxTokens <= 0 {
		r.MaxTokens = limit - len(r.Prompt)
	}
	for i, t := range r.Prompt {
		if t < 0 || e.limits.Vocab > 0 && int(t) >= e.limits.Vocab {
			return nil, &TokenError{Index: i, Token: t}
		}
	}
	if r.Sampler == nil {
		var err error
		if r.Sampler, err = e.NewSampler(SamplerParams{}); err != nil {
			return nil, err
		}
	}
	s := &sequence{request: r, queued: true, maxOut: r.MaxTokens, submitted: time.Now()}
	s.tokens = append(make([]Token, 0, len(r.Prompt)+min(r.MaxTokens, 1024)), r.Prompt...)
	s.request.Prompt = nil
	s.stream = &Stream{engine: e, signal: make(chan struct{}, 1)}
	s.stream.result.PromptTokens = len(r.Prompt)
	s.stream.total.Store(int64(len(r.Prompt)))
	s.coming = entry[*sequence]{owner: s, salt: r.CacheSalt}
	return s, nil
}

func (e *Engine) enqueue(ctx context.Context, s *sequence) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.closing:
		return ErrClosed
	case e.draining:
		e.refused++
		return ErrDraining
	case e.active >= e.config.MaxRunning+e.config.MaxQueue:
		e.refused++
		return ErrQueueFull
	}
	e.active++
	e.submitted++
	e.arrivals++
	s.arrival = e.arrivals
	s.unwatch = context.AfterFunc(ctx, func() { s.stream.cancel(context.Cause(ctx)) })
	e.inbox = append(e.inbox, s)
	e.nudge()
	return nil
}

// nudge makes the loop look at what has changed.
func (e *Engine) nudge() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// post has the loop run f between two steps. Once the loop has ended, nothing
// happens.
func (e *Engine) post(f func()) {
	e.mu.Lock()
	e.calls = append(e.calls, f)
	e.mu.Unlock()
	e.nudge()
}

// FlushCache drops all idle prefixes, and those in the tiers.
func (e *Engine) FlushCache() {
	flushed := make(chan struct{})
	e.post(func() {
		e.cache.flush()
		if e.tiers != nil {
			e.tiers.flush()
		}
		e.publish()
		close(flushed)
	})
	select {
	case <-flushed:
	case <-e.done:
	}
}

// Drain refuses new requests and waits for the accepted ones. When ctx ends
// first, these are cancelled with ErrDraining and the cause of ctx is returned.
func (e *Engine) Drain(ctx context.Context) error {
	e.mu.Lock()
	if !e.draining {
		e.draining = true
		if e.active == 0 {
			close(e.drained)
		}
	}
	e.mu.Unlock()
	select {
	case <-e.drained:
		return nil
	case <-e.done:
		return nil
	case <-ctx.Done():
	}
	e.stop(ErrDraining, false)
	select {
	case <-e.drained:
	case <-e.done:
	}
	return context.Cause(ctx)
}

// Close cancels what is still there with ErrClosed, ends the loop and closes the
// backend.
func (e *Engine) Close() error {
	e.stop(ErrClosed, true)
	<-e.done
	return e.closeError
}

func (e *Engine) stop(cause error, closing bool) {
	e.mu.Lock()
	if e.endAll == nil {
		e.endAll = cause
	}
	e.closing = e.closing || closing
	e.mu.Unlock()
	e.alive.RLock()
	if !e.closed {
		e.backend.Abort()
		if e.drafter != nil {
			e.drafter.backend.Abort()
		}
	}
	e.alive.RUnlock()
	e.nudge()
}
