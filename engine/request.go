package engine

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Request is one prompt to be continued.
type Request struct {
	ID     string // for logs
	Prompt []Token
	// MaxTokens bounds the output; 0 = as much as the context has room for.
	MaxTokens int
	// Sampler is owned by the engine once Submit is called, even if Submit
	// fails. Nil = greedy.
	Sampler Sampler
	// Logprobs: -1 none, 0 those of the chosen tokens, n also n alternatives.
	Logprobs int
	// CacheSalt separates prefix caches: only requests with the same salt share.
	CacheSalt string
	// Tenant is who is charged for the request: while several have requests, who
	// was served least by Weight (0 = 1) goes first.
	Tenant string
	Weight float64
	// Insert is asked about each sampled token but the last. What it returns
	// follows that token as if it had been sampled, as far as MaxTokens has room,
	// and the sampler is told. It runs on the engine's goroutine, so it must be
	// quick and must not call the engine. Nil inserts nothing.
	Insert func(sampled Token) []Token
	// Pin asks to keep what it computes longer than that of others.
	Pin bool
	// Deadline ends the request, queued or running; zero = none.
	Deadline time.Time
}

// Reason says why a request ended.
type Reason string

// The reasons; ReasonNone means not ended yet.
const (
	ReasonNone      Reason = ""
	ReasonStop      Reason = "stop"      // the model ended its turn
	ReasonLength    Reason = "length"    // MaxTokens reached
	ReasonCancelled Reason = "cancelled" // by the caller, a drain or Close
	ReasonDeadline  Reason = "deadline"
	ReasonError     Reason = "error"
)

// Result is the account of a request. Before the end it shows the state so far.
type Result struct {
	Reason Reason
	Err    error // what Recv returns at the end; nil for stop and length
	Begun  bool  // it has left the queue, for the first time

	PromptTokens int
	// CachedTokens are the prompt tokens whose KV was reused instead of computed,
	// fixed when the request first starts; preemption doesn't change it.
	CachedTokens int
	// OutputTokens counts every sampled or inserted token, the end-of-turn token
	// included, which Recv doesn't deliver.
	OutputTokens int
	// DraftedTokens were guessed, AcceptedTokens of them were right.
	DraftedTokens, AcceptedTokens int
	Preemptions                   int

	Queue   time.Duration // Submit to first start
	Prefill time.Duration // first start to first token
	TTFT    time.Duration // Submit to first token
	Decode  time.Duration // first to last token
	Total   time.Duration // Submit to end
}

var (
	// ErrQueueFull refuses a request because too many are waiting.
	ErrQueueFull = errors.New("engine: queue is full")
	// ErrDraining refuses new work, or ends what a drain's time limit cut off.
	ErrDraining = errors.New("engine: draining")
	// ErrClosed refuses new work, or ends what Close cut off.
	ErrClosed = errors.New("engine: closed")
	// ErrCancelled ends a request whose caller gave up.
	ErrCancelled = errors.New("engine: request cancelled")
	// ErrDeadline ends a request that ran out of time.
	ErrDeadline = fmt.Errorf("engine: request deadline passed: %w", context.DeadlineExceeded)
	// ErrEmptyPrompt refuses a request without a single token.
	ErrEmptyPrompt = errors.New("engine: empty prompt")
)

// TooLongError refuses a request that could never fit.
type TooLongError struct{ Prompt, Max, Limit int }

func (e *TooLongError) Error() string {
	if e.Prompt >= e.Limit {
		return fmt.Sprintf("engine: prompt of %d tokens leaves no room in a context of %d", e.Prompt, e.Limit)
	}
	return fmt.Sprintf("engine: prompt of %d tokens and %d output tokens exceed the context of %d",
		e.Prompt, e.Max, e.Limit)
}

// TokenError refuses a prompt with a token id outside of the vocabulary.
type TokenError struct {
	Index int
	Token Token
}

func (e *TokenError) Error() string {
	return fmt.Sprintf("engine: token %d at position %d is not in the vocabulary", e.Token, e.Index)
}
