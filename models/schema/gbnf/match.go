package gbnf

// frame is a position in an alternative; frames form the stack of what is
// still to come, shared between stacks. A matcher makes each frame once, so that
// equal stacks are one pointer.
type frame struct {
	rule, alt, at int
	next          *frame
}

// Matcher follows a text through a grammar.
type Matcher struct {
	g      *Grammar
	stacks []*frame // each top is a character; nil = the text may end here
	peak   int
	limit  int // of stacks, 0 for none
	visits int // rules tried for the current character
	seen   map[*frame]bool
	frames map[frame]*frame
}

func (m *Matcher) frame(rule, alt, at int, next *frame) *frame {
	key := frame{rule, alt, at, next}
	f := m.frames[key]
	if f == nil {
		f = &key
		m.frames[key] = f
	}
	return f
}

// NewMatcher starts at the root.
func NewMatcher(g *Grammar) *Matcher { return NewBoundedMatcher(g, 0) }

// visitsPerStack bounds the rules that a bounded matcher tries for a character:
// where each may be empty there are more ways than stacks.
const visitsPerStack = 64

// NewBoundedMatcher is a Matcher that gives up, as if the text were wrong, where
// more than limit stacks are alive, or as much work is to be done; Peak is above
// limit then.
func NewBoundedMatcher(g *Grammar, limit int) *Matcher {
	m := &Matcher{g: g, limit: limit, seen: map[*frame]bool{}, frames: map[frame]*frame{}}
	for alt := range g.rules[g.root] {
		m.stacks = m.advance(m.stacks, m.frame(g.root, alt, 0, nil))
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
		m.visits = 0
		var next []*frame
		for _, s := range m.stacks {
			if s != nil && m.element(s).matches(r) {
				next = m.advance(next, m.frame(s.rule, s.alt, s.at+1, s.next))
			}
			if m.over(len(next)) {
				m.peak = m.limit + 1
				return false
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

func (m *Matcher) over(stacks int) bool {
	return m.limit > 0 && (stacks > m.limit || m.visits > m.limit*visitsPerStack)
}

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
	rest := f.next // behind the last element: the stack does not grow
	if f.at+1 < len(m.g.rules[f.rule][f.alt]) {
		rest = m.frame(f.rule, f.alt, f.at+1, f.next)
	}
	for alt := range m.g.rules[e.rule] {
		if m.visits++; m.over(len(out)) {
			break
		}
		out = m.advance(out, m.frame(e.rule, alt, 0, rest))
	}
	return out
}

func (m *Matcher) push(out []*frame, f *frame) []*frame {
	if m.seen[f] {
		return out
	}
	m.seen[f] = true
	return append(out, f)
}

// Accepts says whether text as a whole is a sentence of the grammar.
func (g *Grammar) Accepts(text string) bool {
	m := NewMatcher(g)
	return m.Feed(text) && m.CanEnd()
}
