package server

import (
	"bytes"

	"quern/engine"
	"quern/models/toolcall"
	"quern/tokenizer"
)

// transcript turns the tokens of one generation into what its sink takes. In
// order: tokens → whole UTF-8 (decoder) → text, thoughts and calls (lexer) →
// stop strings, on visible text only → blanks that may turn out to stand before
// a call. It belongs to the goroutine of the request.
type transcript struct {
	sink    sink
	decoder *tokenizer.Decoder
	lexer   *toolcall.Lexer
	stops   *tokenizer.StopMatcher // nil without stop strings
	task    *task
	vocab   *tokenizer.Tokenizer

	probs   *logprobQueue // nil unless asked for
	partial []byte        // text of a token that is not whole yet
	muted   bool          // what comes is no text
	blank   []byte        // blanks held back before the first letter of a message
	spoke   bool          // a message is open
	calls   bool          // there was a call

	tokens    int
	malformed string // why something that looked like a call was none
	stopped   bool   // nothing more is wanted: a stop string, or calls enough
}

func newTranscript(m *Model, j *job, s sink) *transcript {
	if j.task.plain {
		s = &plainSink{sink: s}
	}
	t := &transcript{
		sink: s, decoder: m.Tokenizer.NewDecoder(), lexer: toolcall.NewLexer(j.formatOf(m), j.lexer),
		task: j.task, vocab: m.Tokenizer,
	}
	if len(j.stops) > 0 {
		t.stops = tokenizer.NewStopMatcher(j.stops)
	}
	if j.task.logprobs >= 0 {
		t.probs = &logprobQueue{}
	}
	return t
}

// push takes one sampled token.
func (t *transcript) push(o *engine.Output) {
	if t.task.silent {
		return
	}
	t.tokens++
	text := t.decoder.Push(o.Token)
	if t.probs != nil {
		t.probs.push(t.logprob(o), text)
	}
	thinking := t.lexer.InReasoning()
	t.events(t.lexer.Push(o.Token, text))
	if thinking && !t.lexer.InReasoning() {
		t.sink.thoughtEnd()
	}
	t.stopped = t.stopped || t.lexer.Done()
}

// noToken is the token of text that none stands behind.
const noToken tokenizer.Token = -1

// finish gives out what was held back and ends the output.
func (t *transcript) finish(end outcome) {
	if !t.stopped && !t.task.silent {
		if rest := t.decoder.Flush(); len(rest) > 0 {
			if t.probs != nil {
				t.probs.complete(rest)
			}
			t.events(t.lexer.Push(noToken, rest))
		}
		cut := end.cut || end.err != nil
		// Where only a call could come, what is left is the beginning of one.
		t.muted = cut && t.task.choice.mode == choiceRequired
		t.events(t.lexer.Flush(cut))
		t.endText(true)
	}
	t.sink.finish(end)
}

func (t *transcript) events(events []toolcall.Event) {
	for i := range events {
		if t.stopped {
			return
		}
		t.event(&events[i])
		// The header before a message is no text, unless it comes as such.
		if events[i].Kind == toolcall.Break && (i+1 == len(events) || events[i+1].Kind != toolcall.TextDelta) {
			t.hide()
		}
	}
}

func (t *transcript) event(e *toolcall.Event) {
	switch e.Kind {
	case toolcall.TextDelta:
		t.text(e.Text)
		return
	case toolcall.Malformed:
		t.malformed = e.Why // what it is about comes as text
		return
	case toolcall.Break:
		t.endText(false)
		t.sink.messageEnd()
		return
	}
	t.endText(false)
	switch e.Kind {
	case toolcall.ReasoningDelta:
		t.sink.thought(e.Text)
	case toolcall.CallStart:
		t.calls = true
		t.sink.call(t.called(e.Name))
	case toolcall.ArgsDelta:
		t.sink.arguments(e.Text)
	case toolcall.CallEnd:
		t.sink.callEnd(e.Cut)
	}
	t.hide()
}

// called finds the tool by its flat name. The lexer lets only offered names
// through; a tool of that name is made up for one that it does not know.
func (t *transcript) called(name string) *tool {
	if found := t.task.tools.byFlat(name); found != nil {
		return found
	}
	made := &tool{name: name}
	made.Name = name
	return made
}

// text takes visible text and passes on what can be no part of a stop string,
// and no part of a token where tokens are told.
func (t *transcript) text(text []byte) {
	if t.muted {
		return
	}
	stopped := false
	if t.stops != nil {
		text, stopped = t.stops.Push(text)
	}
	if t.probs != nil {
		text = t.wholeTokens(text, stopped)
	}
	t.say(text)
	t.stopped = t.stopped || stopped
}

// wholeTokens holds text back to the end of a token, so that each token is told
// once; at the end of the text all goes out.
func (t *transcript) wholeTokens(text []byte, atEnd bool) []byte {
	t.partial = append(t.partial, text...)
	n := len(t.partial)
	if !atEnd {
		n = t.probs.whole(t.partial)
	}
	ready := bytes.Clone(t.partial[:n])
	t.partial = append(t.partial[:0], t.partial[n:]...)
	return ready
}

// say passes text on; blanks wait until a letter follows, since blanks before a
// call are no message.
func (t *transcript) say(text []byte) {
	if len(text) == 0 {
		return
	}
	if !t.spoke {
		if isBlank(text) {
			t.blank = append(t.blank, text...)
			return
		}
		t.spoke = true
		if len(t.blank) > 0 {
			text = append(t.blank, text...)
			t.blank = nil
		}
	}
	var probs []tokenLogprob
	if t.probs != nil {
		probs = t.probs.take(text)
	}
	t.sink.text(text, probs)
}

// endText ends a message: held text goes out, blanks alone only at the end of
// an answer that is nothing else.
func (t *transcript) endText(atEnd bool) {
	var held []byte
	if t.stops != nil {
		held = t.stops.Flush()
	}
	if t.probs != nil {
		held = t.wholeTokens(held, true)
	}
	t.say(held)
	if atEnd && !t.spoke && !t.calls && len(t.blank) > 0 {
		text := t.blank
		t.blank, t.spoke = nil, true
		t.say(text)
	}
	t.blank, t.spoke = t.blank[:0], false
}

// hide forgets the log probabilities of what is no visible text.
func (t *transcript) hide() {
	if t.probs != nil {
		t.probs.clear()
	}
}

func (t *transcript) logprob(o *engine.Output) tokenLogprob {
	p := tokenLogprob{text: t.visible(o.Token), logprob: o.Logprob}
	for _, a := range o.Top {
		p.top = append(p.top, alternative{text: t.vocab.Piece(a.Token), logprob: a.Logprob})
	}
	return p
}

// visible is the text that a token gives; control tokens give none.
func (t *transcript) visible(tok tokenizer.Token) []byte {
	if t.vocab.IsControl(tok) {
		return nil
	}
	return t.vocab.Piece(tok)
}

func isBlank(s []byte) bool {
	for i := range s {
		if s[i] != ' ' && s[i] != '\n' && s[i] != '\t' && s[i] != '\r' {
			return false
		}
	}
	return true
}
