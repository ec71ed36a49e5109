package toolcall

import (
	"bytes"
	"slices"

	"quern/models/chat"
	"quern/models/schema"
)

// Options are what a request brings to a lexer.
type Options struct {
	// Tools are the declared tools; without any, nothing is a call.
	Tools []chat.Tool
	// StartInReasoning says that the prompt left the thoughts open.
	StartInReasoning bool
	// Forced says that a grammar makes the answer a call, after the thoughts
	// if there are any. Opening is what the prompt already holds of that call
	// (Grammar.Opening).
	Forced  bool
	Opening string
	// MaxCalls ends the answer after that many calls; 0 is no limit.
	// parallel_tool_calls: false is 1.
	MaxCalls int
	// Bare lets a whole answer without markers be a call, if the format has
	// that. It is meant for tool_choice auto.
	Bare bool
	// JSON says that the answer is a JSON text: markers inside it are its
	// own, a call can only come before it.
	JSON bool
	// Constrained says that a grammar holds: markers may be spelled in
	// ordinary tokens.
	Constrained bool
	// Lookup finds the token that is exactly a text, so that markers are told
	// from text that merely looks like them. It may be nil.
	Lookup func(text string) (token int32, ok bool)
}

// Lexer splits what a model writes. It belongs to one goroutine.
type Lexer struct {
	f     *Format
	o     Options
	tools map[string]*tool

	markers []marker
	first   [256]bool // bytes that may begin a marker
	tokens  map[int32]string

	// in[lo:hi] has been read and is undecided; in[hi:] is unread. Up to keep
	// the undecided bytes are not white space at the end.
	in           []byte
	lo, keep, hi int
	virtual      int   // undecided bytes that are the opening, not output
	real         []int // where in "in" a marker came as its own token
	state        state

	segment  bool // the current message has visible text
	trim     bool // white space before the message is dropped
	said     bool // there was visible text or a call
	line     bool // the current line of text has something on it
	thought  bool // the current thoughts have text
	frame    string
	head     header // of the message (Messages)
	thoughts int    // index of the current Reasoning span
	thinking int    // tokens in reasoning

	block  block
	obj    object
	tag    tagged
	expr   expression
	py     python
	reader reader   // of the call being read: obj, tag, expr or py
	got    *written // what reader has read
	calls  int      // announced so far
	queue  []queued

	events  []Event
	out     []byte
	eventAt int
	span    func(class, []byte)
}

type state uint8

const (
	inText state = iota
	inThought
	inBlock
	inHeader
	finished // after MaxCalls: nothing counts any more
)

type tool struct {
	name       string
	parameters []byte
	checker    *schema.Checker
	params     *schema.Arguments // for Tagged; nil before their first use
}

// fits says whether arguments fit the tool's schema.
func (t *tool) fits(args []byte) bool {
	if t.checker == nil {
		t.checker = schema.NewChecker(t.parameters)
	}
	return t.checker.Fits(args)
}

// maxHeld bounds what is held back undecided.
const maxHeld = 1 << 20

// NewLexer begins an answer.
func NewLexer(f *Format, o Options) *Lexer {
	l := &Lexer{f: f, o: o, tools: make(map[string]*tool, len(o.Tools))}
	for i := range o.Tools {
		t := &o.Tools[i]
		l.tools[t.Name] = &tool{name: t.Name, parameters: t.Parameters}
	}
	l.addMarkers()
	switch {
	case o.StartInReasoning && len(f.Reasoning) > 0:
		l.state = inThought
		l.head.open = true
	case f.Messages != nil && f.Messages.Opened:
		l.beginHeader("")
	}
	if o.Opening != "" {
		l.in = append(l.in, o.Opening...)
		l.virtual = len(o.Opening)
		l.run(false)
	}
	return l
}

// Push takes one token: its id and the text that the decoder gave for it,
// which may be none. The events are valid until the next call.
func (l *Lexer) Push(token int32, text []byte) []Event {
	before := l.InReasoning()
	l.begin()
	m, special := l.tokens[token]
	if special {
		text = bytes.TrimSuffix(text, []byte(m))
	}
	l.in = append(l.in, text...)
	if special {
		l.real = append(l.real, len(l.in))
		l.in = append(l.in, m...)
	}
	l.run(false)
	switch {
	case before || l.InReasoning():
		l.thinking++
	case l.state == inHeader:
		l.head.tokens++
	}
	return l.events
}

// Flush ends the answer; cut says that a limit ended it, not the model.
func (l *Lexer) Flush(cut bool) []Event {
	l.begin()
	l.run(true)
	l.end(cut)
	return l.events
}

// Done says that the answer has all the calls it may have: nothing that
// follows counts, so generation can stop.
func (l *Lexer) Done() bool { return l.state == finished }

// Calls is the number of calls announced so far.
func (l *Lexer) Calls() int { return l.calls }

// InReasoning says that the model is thinking.
func (l *Lexer) InReasoning() bool {
	return l.state == inThought || l.state == inBlock && l.block.where == inThoughts
}

// Undecided says that the last bytes may be the beginning of a marker.
func (l *Lexer) Undecided() bool { return l.hi < len(l.in) }

// ReasoningTokens counts the tokens that were thoughts, their markers
// included.
func (l *Lexer) ReasoningTokens() int { return l.thinking }

// begin forgets the last events and moves what is undecided to the front.
func (l *Lexer) begin() {
	l.events, l.out, l.eventAt = l.events[:0], l.out[:0], 0
	if l.lo == 0 {
		return
	}
	n := l.lo
	l.in = l.in[:copy(l.in, l.in[n:])]
	l.hi -= n
	l.keep -= n
	l.lo = 0
	l.block.shift(n)
	l.head.shift(n)
	l.real = slices.DeleteFunc(l.real, func(at int) bool { return at < n })
	for i := range l.real {
		l.real[i] -= n
	}
}

// run reads until nothing more can be decided. With last set, no more input
// follows and partial markers are plain bytes.
func (l *Lexer) run(last bool) {
	for l.step(last) {
	}
}

// step reads on in the current state; true means that the state has changed
// and there may be more to do.
func (l *Lexer) step(last bool) bool {
	switch l.state {
	case inText:
		return l.readText(last)
	case inThought:
		return l.readThought(last)
	case inBlock:
		return l.readBlock(last)
	case inHeader:
		return l.readHeader()
	}
	l.take(len(l.in)-l.lo, asMarker)
	return false
}

// end decides what was held back.
func (l *Lexer) end(cut bool) {
	for l.state == inBlock || l.state == inHeader {
		if l.state == inHeader {
			l.endHeader(cut)
		} else {
			l.endBlock(cut)
		}
		l.run(true)
	}
	n := len(l.in) - l.lo
	blank := l.blank(l.lo, len(l.in))
	switch {
	case l.state == inText && (!blank || l.segment || !l.said && !l.trim):
		l.giveText(n)
	case l.state == inThought && !blank:
		l.giveReasoning(n)
	default:
		l.take(n, asMarker)
	}
}
