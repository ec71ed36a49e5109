package gbnf

import "strings"

// frame is a position in an alternative; frames form the stack of what is
// still to come, shared between stacks.
type frame struct {
	rule, alt, at int
	next          *frame
}

// Matcher follows a text through a grammar.
type Matcher struct {
	g      *Grammar
	stacks []*frame // each top is a character; nil = the text may end here
	peak   int
	seen   map[string]bool
}

// NewMatcher starts at the root.
func NewMatcher(g *Grammar) *Matcher {
	m := &Matcher{g: g, seen: map[string]bool{}}
	for alt := range g.rules[g.root] {
		m.stacks = m.advance(m.stacks, &frame{rule: g.root, alt: alt})
	}
	m.peak = len(m.stacks)
	return m
}

// Peak is the largest number of stacks that were alive at once; the cost of
// masking a vocabulary grows with it.
func (m *Matcher) Peak() int { return m.peak }

// CanEnd says whether the text so far is a complete sentence.
func (m *Matcher) CanEnd() bool {
	for _, s := range m.stacks {
		if s == nil {
			return true
		}
	}
	return false
}

// Feed consumes text and reports whether the grammar still allows it.
func (m *Matcher) Feed(text string) bool {
	for _, r := range text {
		clear(m.seen)
		var next []*frame
		for _, s := range m.stacks {
			if s != nil && m.element(s).matches(r) {
				next = m.advance(next, &frame{s.rule, s.alt, s.at + 1, s.next})
			}
		}
		m.stacks = next
		m.peak = max(m.peak, len(next))
		if len(next) == 0 {
			return false
		}
	}
	return true
}

func (m *Matcher) element(f *frame) *element { return &m.g.rules[f.rule][f.alt][f.at] }

// advance resolves rule references until a character is on top.
func (m *Matcher) advance(out []*frame, f *frame) []*frame {
	for f != nil && f.at == len(m.g.rules[f.rule][f.alt]) {
		f = f.next
	}
	if f == nil {
		return m.push(out, nil)
	}
	e := m.element(f)
	if e.kind == charClass {
		return m.push(out, f)
	}
	rest := &frame{f.rule, f.alt, f.at + 1, f.next}
	if rest.at == len(m.g.rules[f.rule][f.alt]) {
		rest = f.next // tail call: the stack does not grow
	}
	for alt := range m.g.rules[e.rule] {
		out = m.advance(out, &frame{rule: e.rule, alt: alt, next: rest})
	}
	return out
}

func (m *Matcher) push(out []*frame, f *frame) []*frame {
	key := stackKey(f)
	if m.seen[key] {
		return out
	}
	m.seen[key] = true
	return append(out, f)
}

func stackKey(f *frame) string {
	var b strings.Builder
	for ; f != nil; f = f.next {
		for _, v := range [...]int{f.rule, f.alt, f.at} {
			b.Write([]byte{byte(v), byte(v >> 8), byte(v >> 16)})
		}
	}
	return b.String()
}

// Accepts says whether text as a whole is a sentence of the grammar.
func (g *Grammar) Accepts(text string) bool {
	m := NewMatcher(g)
	return m.Feed(text) && m.CanEnd()
}
