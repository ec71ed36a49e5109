package toolcall

// readText reads visible text up to a marker.
func (l *Lexer) readText(last bool) bool {
	if len(l.markers) == 0 && !l.bareWanted() && !l.forcedBare() {
		l.hi, l.keep = len(l.in), len(l.in)
		l.giveText(l.keep - l.lo)
		return false
	}
	for l.hi < len(l.in) {
		c := l.in[l.hi]
		if isSpace(c) {
			l.line = l.line && c != '\n'
			l.hi++
			continue
		}
		if l.keep == l.lo && l.beginsBare(c) {
			return true
		}
		if c == '{' && l.lateBare() {
			named, partial := l.namedObject(l.hi)
			if named {
				l.giveText(l.keep - l.lo)
				l.enterBlock(&bareBlock, "", alone)
				return true
			}
			if partial && !last {
				break
			}
		}
		if l.first[c] {
			m, partial := l.find(l.hi)
			if m != nil {
				l.giveText(l.keep - l.lo)
				return l.enter(m)
			}
			if partial && !last {
				break
			}
		}
		l.line = true
		l.hi++
		l.keep = l.hi
	}
	l.giveText(l.keep - l.lo)
	return false
}

// enter goes into what a marker at hi begins.
func (l *Lexer) enter(m *marker) bool {
	switch m.kind {
	case callMarker:
		l.enterBlock(&l.f.Blocks[m.index], m.text, inAnswer)
	case thinkMarker:
		l.take(l.hi-l.lo+len(m.text), asMarker)
		l.state, l.thoughts, l.thought = inThought, m.index, false
	case thinkEnd:
		l.take(l.hi-l.lo+len(m.text), asMarker)
		l.newMessage()
	case frameStart:
		l.take(l.hi-l.lo+len(m.text), asMarker)
		l.frame = l.f.Frames[m.index].End
		l.trim = true
	case frameEnd:
		l.take(l.hi-l.lo+len(m.text), asMarker)
		l.frame = ""
		l.newMessage()
	case headMarker:
		l.beginHeader(m.text)
	case bodyMarker:
		l.beginHeader("")
	case messageEnd:
		l.endMessage(m)
	}
	return true
}

// newMessage is where one message is over and another may begin.
func (l *Lexer) newMessage() {
	l.segment, l.trim, l.line = false, true, false
}

// readThought reads thoughts up to their end, or to a call.
func (l *Lexer) readThought(last bool) bool {
	for l.hi < len(l.in) {
		c := l.in[l.hi]
		if isSpace(c) {
			l.hi++
			continue
		}
		if l.first[c] {
			m, partial := l.find(l.hi)
			if m != nil {
				return l.leaveThought(m)
			}
			if partial && !last {
				break
			}
		}
		l.hi++
		l.keep = l.hi
	}
	l.giveReasoning(l.keep - l.lo)
	return false
}

func (l *Lexer) leaveThought(m *marker) bool {
	l.giveReasoning(l.keep - l.lo)
	switch m.kind {
	case thinkEnd:
		l.take(l.hi-l.lo+len(m.text), asMarker)
		l.state = inText
		l.newMessage()
	case thinkMarker:
		l.take(l.hi-l.lo+len(m.text), asMarker)
	case callMarker:
		l.enterBlock(&l.f.Blocks[m.index], m.text, inThoughts)
	case headMarker:
		l.beginHeader(m.text)
	case messageEnd:
		l.endMessage(m)
	}
	return true
}

// bareWanted says whether the answer may still be a call without markers.
func (l *Lexer) bareWanted() bool {
	return l.o.Bare && l.f.Bare != BareNone && !l.o.JSON && !l.said && len(l.tools) > 0
}

// lateBare says whether a call without markers may stand at the beginning of a
// line, behind text. Only families that write such calls do that; what follows
// the text has to be that call and nothing else.
func (l *Lexer) lateBare() bool {
	return (l.said || l.keep > l.lo) && !l.line && l.o.Bare && l.f.Bare == BareNative && !l.o.JSON && len(l.tools) > 0
}

// namedObject says whether the object at p begins as calls do.
func (l *Lexer) namedObject(p int) (named, partial bool) {
	const maxGap = 64 // white space behind the brace, in bytes
	key := l.skipSpace(p + 1)
	if key == len(l.in) {
		return false, key-p <= maxGap
	}
	for _, s := range [...]string{`"name"`, `"type"`} {
		whole, part := l.at(key, s)
		named, partial = named || whole, partial || part
	}
	return named, partial
}

// forcedBare says that the answer must be a call, in a format without markers.
func (l *Lexer) forcedBare() bool {
	return l.o.Forced && !l.said && len(l.f.Blocks) > 0 && l.f.Blocks[0].Start == ""
}

// beginsBare enters a call without markers if c at hi can begin one.
func (l *Lexer) beginsBare(c byte) bool {
	switch {
	case c == '{' && (l.forcedBare() || l.bareWanted() && l.f.Bare == BareNative),
		c == '[' && (l.forcedBare() || l.bareWanted() && l.f.Bare == BareList):
		l.enterBlock(&l.f.Blocks[0], "", inAnswer)
	case l.bareWanted() && (c == '{' || c == '`'):
		l.enterBlock(&bareBlock, "", alone)
	default:
		return false
	}
	return true
}
