package server

import (
	"log/slog"
	"math"

	"quern/engine"
	"quern/models/toolcall"
	"quern/tokenizer"
)

// noThoughtLimit lets the model think as long as the answer may be.
const noThoughtLimit = -1

// thoughtLimit is how many tokens the model may think about the task. A limit of
// none is the same as thinking switched off.
func (m *Model) thoughtLimit(t *task) int {
	limit := noThoughtLimit
	switch {
	case t.thinking != nil && !*t.thinking:
		limit = 0
	case t.thoughtLimit != nil:
		limit = *t.thoughtLimit
	case m.ThoughtLimit != nil:
		limit = *m.ThoughtLimit
	}
	if limit == 0 {
		off := false
		t.thinking = &off
	}
	return max(limit, noThoughtLimit)
}

// unthinking ends the thoughts that a prompt opens although none are wanted, as
// the templates of models that only think do.
func (m *Model) unthinking(t *task, prompt string) string {
	if t.thinking == nil || *t.thinking || !m.Format.StartsInReasoning(prompt) {
		return ""
	}
	return m.Format.EndThoughts()
}

// limitThoughts returns what closes the model's thoughts at their limit: the
// tokens that the family ends them with, put into the output as if the model had
// sampled them. The grammar goes on behind them, the KV cache has all that was
// thought, and to the reader it is one output.
func (m *Model) limitThoughts(j *job) (func(engine.Token) []engine.Token, *requestError) {
	format := j.formatOf(m)
	end := format.EndThoughts()
	if j.thoughts < 0 || end == "" {
		return nil, nil
	}
	tokens, err := m.Tokenizer.EncodeText(end, tokenizer.TextOptions{ParseSpecial: true})
	if err != nil {
		return nil, internal("the end of the thoughts can't be encoded: " + err.Error())
	}
	w := &thoughtWatch{
		limit: j.thoughts, end: tokens,
		lexer: toolcall.NewLexer(format, j.lexer), decoder: m.Tokenizer.NewDecoder(),
	}
	return w.insert, nil
}

// thoughtWatch reads an output as the transcript does, on the engine's goroutine
// and ahead of it, to end the thoughts at the very token of their limit.
type thoughtWatch struct {
	limit   int
	end     []engine.Token
	lexer   *toolcall.Lexer
	decoder *tokenizer.Decoder
}

// insert takes a sampled token and returns what is to follow it. A character is
// not cut in two. A fault ends the watch and not the engine.
func (w *thoughtWatch) insert(sampled engine.Token) (tokens []engine.Token) {
	defer func() {
		if p := recover(); p != nil {
			slog.Error("the thoughts of a request can't be followed", "panic", p)
			w.limit, tokens = math.MaxInt, nil
		}
	}()
	w.push(sampled)
	if !w.lexer.InReasoning() || w.lexer.ReasoningTokens() < w.limit || w.decoder.Partial() {
		return nil
	}
	for _, t := range w.end {
		w.push(t)
	}
	if w.lexer.InReasoning() { // it did not help, and would not the next time
		w.limit = math.MaxInt
	}
	return w.end
}

func (w *thoughtWatch) push(t engine.Token) { w.lexer.Push(t, w.decoder.Push(t)) }
