package schema

import (
	"slices"
	"sort"
	"strings"
)

// Bounds on one text between markers: on its automaton, each state of which is
// a rule, and on the length that is counted, which multiplies the states.
const (
	maxRawStates = 2500
	maxRawLength = 128
)

// avoid accepts the texts after which, when end follows, a marker shows up at
// the end of that and nowhere before. end ends with one of the markers.
func avoid(end string, markers ...string) *dfa {
	a := &avoider{markers: markers, ids: map[string]int{}}
	a.id("")
	for i := 0; i < len(a.seen); i++ {
		s := dfaState{accept: a.endsWith(a.seen[i], end)}
		next := map[rune]int{}
		for _, m := range markers {
			for _, r := range m {
				if to, hit := a.step(a.seen[i], r); !hit {
					next[r] = a.id(to)
				} else {
					next[r] = -1
				}
			}
		}
		a.out = append(a.out, s)
		a.out[i].edges = childEdges(next, 0)
	}
	for i := range a.out { // what would complete a marker leads nowhere
		edges := a.out[i].edges[:0]
		for _, e := range a.out[i].edges {
			if e.to >= 0 {
				edges = append(edges, e)
			}
		}
		a.out[i].edges = edges
	}
	return &dfa{states: a.out}
}

// avoider makes the automaton of avoid; its states are the beginnings of
// markers that a text ends with.
type avoider struct {
	markers []string
	ids     map[string]int
	seen    []string
	out     []dfaState
}

func (a *avoider) id(text string) int {
	id, ok := a.ids[text]
	if !ok {
		id = len(a.seen)
		a.ids[text] = id
		a.seen = append(a.seen, text)
	}
	return id
}

// step is the longest beginning of a marker at the end of text and r; hit says
// that a marker is complete.
func (a *avoider) step(text string, r rune) (to string, hit bool) {
	text += string(r)
	for i := range text {
		for _, m := range a.markers {
			if m == text[i:] {
				return "", true
			}
			if to == "" && strings.HasPrefix(m, text[i:]) {
				to = text[i:]
			}
		}
	}
	return to, false
}

func (a *avoider) endsWith(text, end string) bool {
	for i, r := range end {
		next, hit := a.step(text, r)
		if hit {
			return i+len(string(r)) == len(end)
		}
		text = next
	}
	return false
}

// trimmed accepts the texts of which d accepts what is left when one line break
// is dropped at each end.
func trimmed(d *dfa) *dfa {
	n := len(d.states)
	const plain, broken, ended = 0, 1, 2 // behind a line break: d did not, or did accept before it
	id := func(state, kind int) int { return 1 + kind*n + state }
	last := 1 + 3*n // a line break that d has no place for
	out := &dfa{states: make([]dfaState, last+1)}
	out.states[last].accept = true
	edges := func(state int) (edges []dfaEdge) {
		found := false
		for _, e := range d.states[state].edges {
			for _, part := range [...]runeSpan{{e.lo, min(e.hi, '\n'-1)}, {max(e.lo, '\n'), min(e.hi, '\n')}, {max(e.lo, '\n'+1), e.hi}} {
				to := id(e.to, plain)
				if part.lo == '\n' && part.hi == '\n' {
					found = true
					to = id(e.to, broken)
					if d.states[state].accept {
						to = id(e.to, ended)
					}
				}
				if part.lo <= part.hi {
					edges = append(edges, dfaEdge{part.lo, part.hi, to})
				}
			}
		}
		if !found && d.states[state].accept {
			edges = insertEdge(edges, dfaEdge{'\n', '\n', last})
		}
		return edges
	}
	for i, s := range d.states {
		for kind, accept := range [...]bool{plain: s.accept, broken: false, ended: true} {
			out.states[id(i, kind)] = dfaState{accept: accept, edges: edges(i)}
		}
	}
	first := slices.DeleteFunc(edges(0), func(e dfaEdge) bool { return e.lo == '\n' && e.hi == '\n' })
	out.states[0] = dfaState{accept: d.states[0].accept, edges: insertEdge(first, dfaEdge{'\n', '\n', id(0, plain)})}
	return out
}

// insertEdge adds an edge whose characters have none yet.
func insertEdge(edges []dfaEdge, e dfaEdge) []dfaEdge {
	at := sort.Search(len(edges), func(i int) bool { return edges[i].lo > e.hi })
	return slices.Insert(edges, at, e)
}

// sizedText counts the characters of a text without escapes; nil means that it
// cannot.
func (c *compiler) sizedText(f *flat) (*dfa, error) {
	if max(f.minLen, f.maxLen) > maxRawLength {
		return nil, c.relax(f.path, "a length above %d can't be held in text without escapes", maxRawLength)
	}
	return lengthBetween(f.minLen, f.maxLen)
}
