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
		if t.thoughtLimit == nil && m.Format.Messages != nil {
			break // such a model has to think, its template makes it think little
		}
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
	w := &thoughtWatch{limit: j.thoughts, lexer: toolcall.NewLexer(format, j.lexer), decoder: m.Tokenizer.NewDecoder()}
	again := format.BeginAnswer()
	if j.lexer.Constrained {
		again = end // the grammar decides on what comes
	}
	for i, text := range []string{end, again} {
		tokens, err := m.Tokenizer.EncodeText(text, tokenizer.TextOptions{ParseSpecial: true})
		if err != nil {
			return nil, internal("the end of the thoughts can't be encoded: " + err.Error())
		}
		w.ends[i] = tokens
	}
	return w.insert, nil
}

// maxEndings is how often thoughts are ended that a model comes back to.
const maxEndings = 8

// thoughtWatch reads an output as the transcript does, on the engine's goroutine
// and ahead of it, to end the thoughts at the very token of their limit.
type thoughtWatch struct {
	limit   int
	ended   int               // how often
	ends    [2][]engine.Token // what ends them at first, and again
	lexer   *toolcall.Lexer
	decoder *tokenizer.Decoder
}

// insert takes a sampled token and returns what is to follow it. Neither a
// character nor what may be a marker is cut in two. A fault ends the watch and not
// the engine.
func (w *thoughtWatch) insert(sampled engine.Token) (tokens []engine.Token) {
	defer func() {
		if p := recover(); p != nil {
			slog.Error("the thoughts of a request can't be followed", "panic", p)
			w.limit, tokens = math.MaxInt, nil
		}
	}()
	w.push(sampled)
	if !w.lexer.InReasoning() || w.lexer.ReasoningTokens() < w.limit || w.decoder.Partial() || w.lexer.Undecided() {
		return nil
	}
	end := w.ends[min(w.ended, 1)]
	for _, t := range end {
		w.push(t)
	}
	if w.ended++; w.lexer.InReasoning() || w.ended == maxEndings { // it does not help
		w.limit = math.MaxInt
	}
	return end
}

func (w *thoughtWatch) push(t engine.Token) { w.lexer.Push(t, w.decoder.Push(t)) }
