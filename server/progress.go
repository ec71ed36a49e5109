package server

import (
	"time"

	"quern/engine"
)

// silence is how long a client has heard nothing. Tokens that are held back, as
// those of a call that is not whole yet, don't end it.
type silence struct {
	told   time.Time // when something was last told of the answer
	beaten time.Time // when anything was last sent, heartbeats too
}

// end sends a heartbeat if nothing was sent for as long as limit.
func (q *silence) end(now time.Time, limit time.Duration, d delivery, stream *engine.Stream) error {
	if now.Sub(q.beaten) < limit {
		return nil
	}
	q.beaten = now
	return d.idle(now.Sub(q.told), progressOf(stream))
}

// progress is how far a response has come.
type progress struct {
	phase            string // "queued", "prompt" or "output"
	computed, prompt int    // tokens of the prompt, read and in all
	output           int    // tokens
}

func progressOf(stream *engine.Stream) progress {
	r := stream.Result()
	p := progress{phase: "prompt", output: r.OutputTokens}
	p.computed, p.prompt = stream.Progress()
	switch {
	case p.output > 0:
		p.phase = "output"
	case !r.Begun:
		p.phase = "queued"
	}
	return p
}

func (p progress) append(dst []byte) []byte {
	dst = append(dst, `{"phase":"`...)
	dst = append(dst, p.phase...)
	dst = append(dst, `","prompt_tokens":`...)
	dst = appendInt(dst, p.prompt)
	dst = append(dst, `,"computed_tokens":`...)
	dst = appendInt(dst, p.computed)
	dst = append(dst, `,"output_tokens":`...)
	return append(appendInt(dst, p.output), '}')
}
