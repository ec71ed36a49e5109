package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"quern/engine"
)

// statusClientGone is the status of a request whose client left, for the log. A
// client that closes only its sending side reads it: net/http can't tell that
// from leaving, and a node that waited to find out would compute for nobody.
const statusClientGone = 499

// submit hands a job to the engine.
func (s *Server) submit(ctx context.Context, m *Model, j *job, id string, ex *exchange) (*engine.Stream, *requestError) {
	s.tellRelaxed(j, ex)
	limit := s.outputLimit(m, j)
	if refused := s.reserve(m, j, limit, ex); refused != nil {
		return nil, refused
	}
	insert, refused := m.limitThoughts(j)
	if refused != nil {
		return nil, refused
	}
	sampler, err := m.Engine.NewSampler(j.params)
	if err != nil {
		return nil, j.badSampler(err)
	}
	r := engine.Request{
		ID: id, Prompt: j.tokens, MaxTokens: limit, Sampler: sampler, Insert: insert,
		Logprobs: j.task.logprobs, CacheSalt: j.task.cacheSalt, Pin: j.task.pinned,
		Tenant: ex.owner, Weight: ex.key.Weight(),
	}
	if s.cfg.CacheIsolation {
		r.CacheSalt = ex.owner + "\x00" + r.CacheSalt
	}
	if s.cfg.RequestTimeout > 0 {
		r.Deadline = ex.started.Add(s.cfg.RequestTimeout)
	}
	stream, err := m.Engine.Submit(ctx, r)
	if err != nil {
		return nil, s.refusalOf(err)
	}
	return stream, nil
}

// outputLimit is what the request asks for, else what the config sets as far as
// the window has room, else 0: all the room there is.
func (s *Server) outputLimit(m *Model, j *job) int {
	if j.task.maxOutput > 0 || s.cfg.MaxOutputTokens == 0 {
		return j.task.maxOutput
	}
	return max(1, min(s.cfg.MaxOutputTokens, m.Engine.MaxLength()-len(j.tokens)))
}

// refusalOf maps the errors of the engine to what a client sees. It is the only
// place that knows both.
func (s *Server) refusalOf(err error) *requestError {
	var tooLong *engine.TooLongError
	switch {
	case errors.As(err, &tooLong):
		return tooLongRefusal(tooLong)
	case errors.Is(err, engine.ErrQueueFull):
		return s.overloaded(http.StatusTooManyRequests, "the queue of this node is full")
	case errors.Is(err, errNeverBegan):
		return s.overloaded(http.StatusServiceUnavailable,
			fmt.Sprintf("the request waited for a place for all of its %s, so busy is this node", s.cfg.RequestTimeout))
	case errors.Is(err, errGivenUp), errors.Is(err, errShutdown):
		return gone(err)
	case errors.Is(err, engine.ErrDraining), errors.Is(err, engine.ErrClosed):
		return errDraining()
	case errors.Is(err, engine.ErrDeadline):
		return &requestError{
			Status: http.StatusGatewayTimeout, Type: typeServer, Code: codeTimeout,
			Message: fmt.Sprintf("the request took longer than %s", s.cfg.RequestTimeout),
		}
	case errors.Is(err, context.Canceled), errors.Is(err, engine.ErrCancelled):
		return gone(err)
	case errors.Is(err, engine.ErrEmptyPrompt):
		return invalid("input", codeInvalidValue, "the request gives the model nothing to read")
	}
	return internal("the model failed on this request: " + err.Error())
}

// gone is the end of a request whose context has ended with a cause.
func gone(cause error) *requestError {
	switch {
	case errors.Is(cause, errGivenUp):
		return &requestError{Status: statusClientGone, Type: typeInvalid, Code: codeCancelled, Message: "the response was cancelled"}
	case errors.Is(cause, errShutdown):
		return unavailable(codeDraining, "the node is shutting down and has ended this response", retryDraining)
	}
	return &requestError{Status: statusClientGone, Type: typeInvalid, Code: "client_gone", Message: "the client has closed its side of the connection, so that its request was ended"}
}

// errNeverBegan says that the time of a request ran out while it was queued.
var errNeverBegan = errors.New("the request never left the queue")

// overloaded refuses a request for want of a place, with the status of the open
// contract unless the profile has one of its own. Routers send it elsewhere;
// Codex gives up over a 503 of this code, and waits over a 429.
func (s *Server) overloaded(status int, why string) *requestError {
	wait := s.queueWait()
	e := &requestError{
		Status: cmp.Or(s.contract.overload, status), Type: typeTooMany, RetryAfter: wait,
		Code:    cmp.Or(s.contract.overloadCode, codeOverloaded),
		Message: fmt.Sprintf("%s, try again in %ds", why, int(wait.Seconds())),
	}
	if e.Status != http.StatusTooManyRequests {
		e.Type = typeUnavailable
	}
	return e
}

// tooLongRefusal names the numbers, so that a client can tell how much to leave out.
func tooLongRefusal(e *engine.TooLongError) *requestError {
	if e.Prompt >= e.Limit {
		return invalid("input", codeContextLength,
			"the input of at least %d tokens does not fit into the context window of %d tokens", e.Prompt, e.Limit)
	}
	return invalid("max_output_tokens", codeContextLength,
		"the input of %d tokens and max_output_tokens of %d exceed the context window of %d tokens", e.Prompt, e.Max, e.Limit)
}

// queueWait guesses when a place in the queue will be free: one mean request.
func (s *Server) queueWait() time.Duration {
	return min(max(s.metrics.endToEnd.mean().Round(time.Second), retryQueue), 30*time.Second)
}
