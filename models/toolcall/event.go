package toolcall

// Kind is the kind of an Event.
type Kind uint8

// What a lexer reports. The deltas carry Text; those of a call and CallEnd
// carry the call's Index.
const (
	// TextDelta is visible text. Text before and after a call are different
	// messages.
	TextDelta Kind = iota + 1
	// ReasoningDelta is a piece of the thoughts.
	ReasoningDelta
	// Break says that a message is over or begins: text that follows belongs to
	// another one than the text before.
	Break
	// CallStart opens a call: Name, and ID where the model wrote one; an id
	// behind the arguments only comes with CallEnd.
	CallStart
	// ArgsDelta is a piece of a call's arguments; all of them together are a
	// JSON object.
	ArgsDelta
	// CallEnd closes a call. Cut says that its arguments are not whole.
	CallEnd
	// Malformed is a diagnostic, Why being the reason: something that looked
	// like a call was none and is given out as text or stays incomplete.
	Malformed
)

// Event is one piece of what a model said.
type Event struct {
	Kind  Kind
	Cut   bool
	Index int // of the call, from 0
	// Text is valid until the next call of Push or Flush.
	Text []byte
	Name string
	ID   string
	Why  string
}

// emit appends a delta, to the last event if that is of the same kind.
func (l *Lexer) emit(kind Kind, text []byte) {
	if len(text) == 0 {
		return
	}
	n := len(l.events)
	if n > 0 && l.events[n-1].Kind == kind {
		l.out = append(l.out, text...)
		l.events[n-1].Text = l.out[l.eventAt:]
		return
	}
	l.eventAt = len(l.out)
	l.out = append(l.out, text...)
	l.events = append(l.events, Event{Kind: kind, Index: l.calls, Text: l.out[l.eventAt:]})
}

func (l *Lexer) malformed(why string) {
	l.events = append(l.events, Event{Kind: Malformed, Index: l.calls, Why: why})
}

// class says what became of a byte of input; tests add the classes up.
type class uint8

const (
	asText class = iota
	asReasoning
	asCall
	asMarker // markers, and white space around them
)

// take removes n undecided bytes for good.
func (l *Lexer) take(n int, c class) []byte {
	b := l.in[l.lo : l.lo+n]
	l.lo += n
	l.hi = max(l.hi, l.lo)
	l.keep = max(l.keep, l.lo)
	if v := min(l.virtual, n); v > 0 { // stood in the prompt
		l.virtual -= v
		b = b[v:]
	}
	if l.span != nil && len(b) > 0 {
		l.span(c, b)
	}
	return b
}

// giveText gives n undecided bytes out as text. A message does not begin with
// the white space that separates it from a call or from the thoughts.
func (l *Lexer) giveText(n int) {
	if !l.segment && l.trim {
		n -= l.trimLeft(n)
	}
	if n > 0 {
		l.segment, l.said = true, true
		l.emit(TextDelta, l.take(n, asText))
	}
}

// giveReasoning gives n undecided bytes out as thoughts.
func (l *Lexer) giveReasoning(n int) {
	if !l.thought {
		n -= l.trimLeft(n)
	}
	if n > 0 {
		l.thought = true
		l.emit(ReasoningDelta, l.take(n, asReasoning))
	}
}

// trimLeft drops white space among the next n undecided bytes.
func (l *Lexer) trimLeft(n int) int {
	i := 0
	for i < n && isSpace(l.in[l.lo+i]) {
		i++
	}
	l.take(i, asMarker)
	return i
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }
