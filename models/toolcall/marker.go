package toolcall

import (
	"bytes"
	"slices"
	"strings"
)

// marker is a text that means something where plain text or thoughts stand.
type marker struct {
	text  string
	kind  markerKind
	index int // of the block, the reasoning span or the frame
	token bool
}

type markerKind uint8

const (
	callMarker markerKind = iota
	thinkMarker
	thinkEnd
	frameStart
	frameEnd
	headMarker // begins a header (Messages), or stands in one
	bodyMarker
	messageEnd
)

// addMarkers makes the table of markers that count in this answer.
func (l *Lexer) addMarkers() {
	add := func(text string, kind markerKind, index int) {
		if text != "" {
			l.markers = append(l.markers, marker{text: text, kind: kind, index: index})
			l.first[text[0]] = true
		}
	}
	if len(l.tools) > 0 {
		for i := range l.f.Blocks {
			if l.f.headed(&l.f.Blocks[i]) {
				continue
			}
			add(l.f.Blocks[i].Section, callMarker, i)
			add(l.f.Blocks[i].Start, callMarker, i)
		}
	}
	if l.f.Messages != nil {
		l.f.Messages.addMarkers(add)
	}
	for i, s := range l.f.Reasoning {
		if l.f.Messages != nil {
			break // they are headers
		}
		add(s.Start, thinkMarker, i)
		add(s.End, thinkEnd, i)
	}
	for i, s := range l.f.Frames {
		add(s.Start, frameStart, i)
		add(s.End, frameEnd, i)
	}
	if l.o.Lookup == nil {
		return
	}
	l.tokens = map[int32]string{}
	for _, text := range l.f.Markers() {
		if id, ok := l.o.Lookup(text); ok {
			l.tokens[id] = text
			for i := range l.markers {
				l.markers[i].token = l.markers[i].token || leads(l.markers[i].text, text)
			}
		}
	}
}

// leads says that a marker begins with the text of a token: it is that, or the
// token is special and more follows.
func leads(marker, token string) bool {
	return marker == token || strings.HasPrefix(marker, token) && special.FindString(token) == token
}

// at compares in[p:] with text: whole, or so far as there is input.
func (l *Lexer) at(p int, text string) (whole, partial bool) {
	rest := l.in[p:]
	if len(rest) >= len(text) {
		return string(rest[:len(text)]) == text, false
	}
	return false, len(rest) > 0 && text[:len(rest)] == string(rest)
}

// find looks for the longest marker at p that counts there. partial says that
// one may be on its way.
func (l *Lexer) find(p int) (best *marker, partial bool) {
	for i := range l.markers {
		m := &l.markers[i]
		if m.text[0] != l.in[p] || !l.counts(m, p) {
			continue
		}
		whole, part := l.at(p, m.text)
		partial = partial || part
		if whole && (best == nil || len(m.text) > len(best.text)) {
			best = m
		}
	}
	return best, partial && best == nil
}

// counts says whether a marker means something at p.
func (l *Lexer) counts(m *marker, p int) bool {
	if m.kind >= headMarker {
		return l.countsInMessages(m, p)
	}
	if l.f.Messages != nil && (l.state != inText || l.head.plain) {
		return false
	}
	if l.state == inThought {
		switch m.kind {
		case thinkEnd:
			return m.index == l.thoughts && l.isToken(m, p)
		case thinkMarker: // written again although the prompt has it
			return !l.thought && m.index == l.thoughts && l.blank(l.lo, p)
		case callMarker:
			return !l.o.JSON
		}
		return false
	}
	said := l.said || l.keep > l.lo
	switch m.kind {
	case callMarker:
		return !l.o.JSON || !said
	case thinkMarker: // at the start of a line or after a block
		return !l.line && (!l.o.JSON || !said)
	case frameStart:
		return !l.segment && l.keep == l.lo && l.frame == ""
	case frameEnd:
		return (l.frame == m.text || l.f.Frames[m.index].Start == "") && l.isToken(m, p)
	case thinkEnd: // an answer without thoughts may begin with it
		return !said && l.isToken(m, p)
	}
	return false
}

// isToken says whether a marker that is a token of its own came as that token,
// where this can matter.
func (l *Lexer) isToken(m *marker, p int) bool {
	return !m.token || l.o.Constrained || slices.Contains(l.real, p)
}

// blank says whether in[from:to] is white space.
func (l *Lexer) blank(from, to int) bool {
	return len(bytes.TrimLeft(l.in[from:to], " \t\r\n")) == 0
}
