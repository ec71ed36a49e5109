package server

import (
	"context"
	"errors"
	"io"
	"time"

	"quern/engine"
)

// delivery sends what a sink has made of the tokens so far.
type delivery interface {
	// flush is called once for each delivery of the engine. It says whether there
	// was anything to send: text may be held back until it shows what it is.
	flush() (sent bool, err error)
	// idle is called when the client has got nothing for a while; silent says how
	// long it is since something was told of the answer.
	idle(silent time.Duration, p progress) error
}

// generate reads the engine's stream to its end and tells the sink, whose
// output the delivery sends. It runs on the goroutine of the request. What it
// returns is how the generation ended, as finish has told the sink.
func (s *Server) generate(ctx context.Context, stream *engine.Stream, tr *transcript, d delivery, ex *exchange) outcome {
	err := s.follow(ctx, stream, tr, d, ex)
	end := outcome{}
	result := stream.Result()
	end.usage = usage{
		Input: result.PromptTokens, Cached: result.CachedTokens,
		Output: tr.tokens, Reasoning: tr.lexer.ReasoningTokens(),
	}
	if result.Reason == engine.ReasonStop && !tr.stopped && !tr.task.silent {
		end.usage.Output = result.OutputTokens // counts the end token, which is not delivered
	}
	if result.OutputTokens == 0 { // what was not read is not paid
		end.usage.Input, _ = stream.Progress()
		end.usage.Cached = min(end.usage.Cached, end.usage.Input)
	}
	switch {
	case errors.Is(err, engine.ErrDeadline) && !result.Begun:
		end.err = s.refusalOf(errNeverBegan)
	case err != nil:
		end.err = s.refusalOf(err)
	case !tr.stopped:
		end.cut = result.Reason == engine.ReasonLength || tr.task.silent
	}
	s.settle(ex, end.usage) // before the end is told: what a client has seen is paid
	tr.finish(end)
	ex.malformed = tr.malformed
	s.account(ex, result, end)
	return end
}

// follow reads until the stream ends, or until the transcript has all it wants.
func (s *Server) follow(ctx context.Context, stream *engine.Stream, tr *transcript, d delivery, ex *exchange) error {
	p := newPatience(ctx, s.cfg.Heartbeat)
	defer p.end()
	last := time.Now()
	quiet := silence{told: last, beaten: last}
	for !tr.stopped {
		tokens, err := stream.Recv(p.wait)
		now := time.Now()
		if p.ranOut(err) {
			p.renew()
			if err := quiet.end(now, p.spell/2, d, stream); err != nil {
				return abandon(stream, clientGone(err))
			}
			continue
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return abandon(stream, causeOf(ctx, err))
		}
		s.observeTokens(ex, len(tokens), now, last)
		last, ex.lastToken = now, now
		for i := 0; i < len(tokens) && !tr.stopped; i++ {
			tr.push(&tokens[i])
		}
		sent, err := d.flush()
		if sent {
			quiet = silence{told: now, beaten: now}
		} else if err == nil {
			err = quiet.end(now, p.spell, d, stream)
		}
		if err != nil {
			return abandon(stream, clientGone(err))
		}
	}
	stream.Cancel()
	return nil
}

func abandon(stream *engine.Stream, err error) error {
	stream.Cancel()
	return err
}

// patience is a context that ends after each spell of waiting, so that a reader
// of the engine can say in between that it is still there.
type patience struct {
	ctx    context.Context
	spell  time.Duration
	wait   context.Context
	cancel context.CancelFunc
}

func newPatience(ctx context.Context, spell time.Duration) *patience {
	p := &patience{ctx: ctx, spell: spell, cancel: func() {}}
	p.renew()
	return p
}

func (p *patience) renew() {
	p.cancel()
	p.wait, p.cancel = context.WithTimeout(p.ctx, p.spell)
}

func (p *patience) end() { p.cancel() }

// ranOut says whether err is only the end of the spell. The end of a request's
// own time is a DeadlineExceeded as well.
func (p *patience) ranOut(err error) bool {
	return err != nil && errors.Is(err, p.wait.Err()) && !errors.Is(err, engine.ErrDeadline) && p.ctx.Err() == nil
}

// causeOf prefers the reason why a context ended to the mere fact.
func causeOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// clientGone marks a failed write: there is nobody left to tell.
func clientGone(err error) error { return errors.Join(context.Canceled, err) }

// observeTokens notes when tokens came.
func (s *Server) observeTokens(ex *exchange, n int, now, last time.Time) {
	if ex.firstToken.IsZero() {
		ex.firstToken = now
		s.metrics.ttft.observe(now.Sub(ex.started))
		return
	}
	s.metrics.interToken.observeMany(now.Sub(last)/time.Duration(n), n)
}

// account notes the end of a generation for the log and the metrics.
func (s *Server) account(ex *exchange, result engine.Result, end outcome) {
	ex.usage, ex.queued, ex.accepted = end.usage, result.Queue, result.AcceptedTokens
	switch {
	case end.err == nil && end.cut:
		ex.reason = "length"
	case end.err == nil:
		ex.reason = "stop"
	case end.err.Status == statusClientGone:
		ex.reason = "abort"
	default:
		ex.reason = "error"
	}
	if end.err != nil {
		ex.err = end.err
	}
	s.metrics.ended(ex, result, time.Now())
}
