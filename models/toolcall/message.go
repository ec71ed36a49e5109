package toolcall

import (
	"slices"
	"strings"
)

// Messages is how a family writes an answer as messages with headers: Start
// header Body text End. The header says what a message is and whom it is for;
// one for a tool is a call, as the first of the format's Blocks has it.
type Messages struct {
	// Start begins a message. Marks stand inside headers, and also begin one
	// where Start was forgotten.
	Start string
	Marks []string
	// Bodies end a header; some say what the message is.
	Bodies []Body
	// Ends end a message; those in Last end the answer, too.
	Ends, Last []string
	// Opened says that a prompt ends inside a header.
	Opened bool
	// To stands before the recipient in a header. If it is empty, the header
	// is nothing but the recipient.
	To string
	// Thoughts are the words that make a message thoughts, User the recipients
	// who are no tools, Words what else stands in headers.
	Thoughts, User, Words []string
	// The rest only matters where a grammar writes messages. Next is what
	// stands between two of them, behind the first of Ends. Say is the header
	// of an answer, Preambles are others of visible text, Call is what stands
	// around the name of a tool in the header of a call. OneCall says that a
	// call ends the answer.
	Next, Say string
	Preambles []string
	Call      Span
	OneCall   bool
}

// Body is a marker between a header and the text.
type Body struct {
	Marker string
	Kind   BodyKind
}

// BodyKind says what a message is.
type BodyKind uint8

const (
	// ByHeader leaves it to the header.
	ByHeader BodyKind = iota
	// ForUser is visible text.
	ForUser
	// ForSelf are thoughts.
	ForSelf
	// ForTool is a call.
	ForTool
)

// maxHeader bounds a header, in bytes.
const maxHeader = 512

// header is what the lexer knows of the header that it reads, and of the message
// that it is in. Positions are in Lexer.in.
type header struct {
	mark   int   // where the header begins
	after  int   // where the marker ends that it begins with
	from   state // where it was met
	tokens int   // in it so far
	open   bool  // a message has begun and not ended
	plain  bool  // it is for the user: calls in it are text
}

func (h *header) shift(n int) {
	h.mark -= n
	h.after -= n
}

// addMessageMarkers adds those of the format's Messages to the table.
func (m *Messages) addMarkers(add func(text string, kind markerKind, index int)) {
	add(m.Start, headMarker, 0)
	for _, s := range m.Marks {
		add(s, headMarker, 0)
	}
	for i, b := range m.Bodies {
		add(b.Marker, bodyMarker, i)
	}
	for _, s := range m.Ends {
		add(s, messageEnd, 0)
	}
}

// countsInMessages says whether a marker of messages means something at p.
func (l *Lexer) countsInMessages(m *marker, p int) bool {
	switch {
	case l.state == inHeader && m.kind == messageEnd:
		return false
	case l.state != inHeader && m.kind == bodyMarker:
		// A header that is missing but for its end.
		if l.head.open || l.f.Messages.knownOnly() {
			return false
		}
	}
	if m.token && l.o.JSON && l.head.open && l.state == inText {
		return slices.Contains(l.real, p)
	}
	return l.isToken(m, p)
}

// knownOnly says that a header is only known by its recipient.
func (m *Messages) knownOnly() bool { return m.To == "" && m.Bodies[0].Kind == ByHeader }

// beginHeader enters a header at hi, which begins with a marker or, where the
// prompt has that, without one.
func (l *Lexer) beginHeader(marker string) {
	l.head = header{mark: l.hi, after: l.hi + len(marker), from: l.state, open: l.head.open, plain: l.head.plain}
	l.hi += len(marker)
	l.state = inHeader
}

// readHeader reads up to the marker that ends the header. True means that the
// state has changed.
func (l *Lexer) readHeader() bool {
	for l.hi < len(l.in) {
		if !l.leads() || l.hi-l.head.mark > maxHeader {
			l.noHeader()
			return true
		}
		m, partial := l.find(l.hi)
		switch {
		case m != nil && m.kind == bodyMarker:
			l.openMessage(&l.f.Messages.Bodies[m.index])
			return true
		case m != nil:
			l.hi += len(m.text)
		case partial:
			return false // at the end of input, endHeader drops the rest
		case isNameByte(l.in[l.hi]) || l.in[l.hi] == ' ' || l.in[l.hi] == '=':
			l.hi++
		default:
			l.noHeader()
			return true
		}
	}
	return false
}

// leads says whether the bytes up to the one at hi can begin a header.
func (l *Lexer) leads() bool {
	m, h := l.f.Messages, &l.head
	if m.knownOnly() {
		return l.knows(string(l.in[h.after : l.hi+1]))
	}
	if h.after > h.mark {
		return true
	}
	p := h.mark
	for p < l.hi && l.in[p] == ' ' {
		p++
	}
	whole, partial := l.at(p, m.To)
	return whole || partial || l.in[p] == ' ' || l.first[l.in[p]]
}

// knows says whether a known recipient and its Body begin with a text.
func (l *Lexer) knows(text string) bool {
	m := l.f.Messages
	for _, name := range m.User {
		if strings.HasPrefix(name+m.Bodies[0].Marker, text) {
			return true
		}
	}
	for name := range l.tools {
		if strings.HasPrefix(name+m.Bodies[0].Marker, text) {
			return true
		}
	}
	return false
}

// noHeader makes text, or thoughts, of what only looked like a header. The
// marker that it began with is not tried again.
func (l *Lexer) noHeader() {
	h := &l.head
	l.state = h.from
	n := h.after - h.mark
	switch {
	case n == 0:
		l.state = inText
	case h.from == inThought:
		l.thinking += h.tokens
		l.giveReasoning(h.after - l.lo)
	default:
		l.giveText(h.after - l.lo)
		l.line = true
	}
	h.tokens = 0
	l.hi, l.keep = l.lo, l.lo
}

// endHeader decides a header that the end of the answer interrupts: it is
// dropped if nothing in it is the model's own.
func (l *Lexer) endHeader(cut bool) {
	m := l.f.Messages
	head := l.in[l.head.after:]
	if cut {
		head = m.whole(head)
	}
	words := m.words(string(head))
	if m.knownOnly() && l.head.after > l.head.mark && len(words) == 0 {
		l.noHeader()
		return
	}
	for i, w := range words {
		known := slices.Contains(m.Words, w) || slices.Contains(m.Thoughts, w)
		if cut && i == len(words)-1 {
			begins := func(s string) bool { return strings.HasPrefix(s, w) }
			known = known || slices.ContainsFunc(m.Words, begins) || slices.ContainsFunc(m.Thoughts, begins) || begins(m.To)
		}
		known = known || m.To != "" && strings.HasPrefix(w, m.To)
		if !known {
			l.noHeader()
			return
		}
	}
	l.take(len(l.in)-l.lo, asMarker)
	l.state = inText
}

// whole leaves the beginning of a marker off the end of a header.
func (m *Messages) whole(head []byte) []byte {
	i := strings.LastIndexByte(string(head), '<')
	if i < 0 {
		return head
	}
	begins := func(s string) bool { return strings.HasPrefix(s, string(head[i:])) }
	if slices.ContainsFunc(m.Marks, begins) || slices.ContainsFunc(m.Bodies, func(b Body) bool { return begins(b.Marker) }) {
		return head[:i]
	}
	return head
}

// words are the words of a header, without its markers.
func (m *Messages) words(head string) []string {
	for _, s := range m.Marks {
		head = strings.ReplaceAll(head, s, " ")
	}
	return strings.Fields(strings.ReplaceAll(head, m.Start, " "))
}

// address is the recipient that a header names, and whether its message is
// thoughts.
func (m *Messages) address(head string) (to string, thoughts bool) {
	for _, w := range m.words(head) {
		if slices.Contains(m.Thoughts, w) {
			thoughts = true
		} else if strings.HasPrefix(w, m.To) {
			to = w[len(m.To):]
		}
	}
	return to, thoughts && to == ""
}

// openMessage begins the message of which the marker at hi ends the header.
func (l *Lexer) openMessage(body *Body) {
	m, tokens := l.f.Messages, l.head.tokens
	to, thoughts := m.address(string(l.in[l.head.after:l.hi]))
	begin, end := l.head.mark, l.hi+len(body.Marker)
	l.closeMessage()
	l.head.open = true
	switch {
	case body.Kind == ForSelf || body.Kind == ByHeader && thoughts:
		l.take(end-l.lo, asMarker)
		l.state, l.thought = inThought, false
		l.thinking += tokens
	case body.Kind == ForTool || body.Kind == ByHeader && to != "" && !slices.Contains(m.User, to):
		l.openCall(to, begin, end)
	default:
		l.take(end-l.lo, asMarker)
		l.state = inText
		l.head.plain = to != ""
	}
}

// openCall begins the message to a tool whose header is in[begin:end].
func (l *Lexer) openCall(to string, begin, end int) {
	b := &l.f.Blocks[0]
	name := l.toolName(to)
	switch {
	case len(l.tools) == 0, b.Style == ArgsAfterName && l.tools[name] == nil, b.Style == Tagged && !l.addressed(name):
		l.malformed("not a declared tool: " + clip(to))
		l.giveText(end - l.lo)
		l.state, l.line = inText, true
		return
	case b.Style == Tagged: // its markers follow
		l.take(end-l.lo, asMarker)
		l.state = inText
		return
	}
	l.block = block{b: b, mark: begin, after: end, started: true, startAt: begin, begunAt: end}
	l.queue = l.queue[:0]
	l.hi, l.state = end, inBlock
	if b.Style == ArgsAfterName {
		l.named(name, "")
	}
}

// leftOut makes a message to a tool that has no text a call without arguments, if
// the tool takes that.
func (l *Lexer) leftOut() bool {
	k := &l.block
	t := l.tools[l.got.name]
	if l.f.Messages == nil || k.b.Style != ArgsAfterName || t == nil || !l.blank(k.after, l.hi) || !t.fits([]byte("{}")) {
		return false
	}
	l.got.whole([]byte("{}"))
	return true
}

// toolName is the declared tool that a name stands for. Models put the name of
// a namespace before one that has none: functions, or the tool's own.
func (l *Lexer) toolName(name string) string {
	if l.tools[name] != nil {
		return name
	}
	space, rest, _ := strings.Cut(name, ".")
	if l.tools[rest] != nil && (space == "functions" || space == rest) {
		return rest
	}
	return name
}

// addressed says that a recipient is a tool, or the namespace of one.
func (l *Lexer) addressed(to string) bool {
	for name := range l.tools {
		if name == to || strings.HasPrefix(name, to+".") {
			return true
		}
	}
	return false
}

// closeMessage is where a message is over. Text that follows is another's.
func (l *Lexer) closeMessage() {
	l.events = append(l.events, Event{Kind: Break})
	l.newMessage()
	l.head = header{}
}

// endMessage takes the marker at hi that ends a message.
func (l *Lexer) endMessage(m *marker) {
	final := slices.Contains(l.f.Messages.Last, m.text) && slices.Contains(l.real, l.hi)
	l.take(l.hi-l.lo+len(m.text), asMarker)
	l.closeMessage()
	l.state = inText
	if final {
		l.state = finished
	}
}
