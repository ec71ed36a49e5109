package schema

import (
	"errors"
	"slices"
	"sort"
)

// maxStates bounds an automaton while it is made.
const maxStates = 3000

// ErrTooLarge marks patterns whose automaton has too many states or takes too
// long to make.
var ErrTooLarge = errors.New("too large for a grammar")

// dfa is a deterministic automaton over the characters of a text. State 0 is
// the start; a missing edge is a dead end.
type dfa struct{ states []dfaState }

type dfaState struct {
	accept bool
	edges  []dfaEdge // sorted, disjoint
}

type dfaEdge struct {
	lo, hi rune
	to     int
}

// alphabet is what may stand in a JSON string without \u escapes: no
// surrogates, and of the control characters those with a short escape.
var alphabet = []runeSpan{{'\b', '\n'}, {'\f', '\r'}, {0x20, 0x7e}, {0x80, 0xd7ff}, {0xe000, 0x10ffff}}

type runeSpan struct{ lo, hi rune }

func (d *dfa) step(state int, r rune) int {
	edges := d.states[state].edges
	i := sort.Search(len(edges), func(i int) bool { return edges[i].hi >= r })
	if i < len(edges) && edges[i].lo <= r {
		return edges[i].to
	}
	return -1
}

func (d *dfa) accepts(s string) bool {
	at := 0
	for _, r := range s {
		if at = d.step(at, r); at < 0 {
			return false
		}
	}
	return d.states[at].accept
}

// addAll adds edges to state for every character of the alphabet.
func (s *dfaState) addAll(to int) {
	for _, a := range alphabet {
		s.edges = append(s.edges, dfaEdge{a.lo, a.hi, to})
	}
}

// lengthBetween accepts texts of lo to hi characters; hi < 0 is no bound.
func lengthBetween(lo, hi int) (*dfa, error) {
	n := max(lo, hi)
	if n >= maxStates {
		return nil, ErrTooLarge
	}
	d := &dfa{states: make([]dfaState, n+1)}
	for i := range d.states {
		s := &d.states[i]
		s.accept = i >= lo
		if i < n {
			s.addAll(i + 1)
		} else if hi < 0 {
			s.addAll(i)
		}
	}
	return d, nil
}

// wordSet accepts exactly the words, or with except set all other texts.
func wordSet(words []string, except bool) (*dfa, error) {
	d := &dfa{states: []dfaState{{accept: except}}}
	children := []map[rune]int{{}}
	for _, w := range words {
		at := 0
		for _, r := range w {
			next, ok := children[at][r]
			if !ok {
				next = len(d.states)
				if next >= 4*maxStates {
					return nil, ErrTooLarge
				}
				children[at][r] = next
				d.states = append(d.states, dfaState{accept: except})
				children = append(children, map[rune]int{})
			}
			at = next
		}
		d.states[at].accept = !except
	}
	other := -1
	if except {
		other = len(d.states)
		rest := dfaState{accept: true}
		rest.addAll(other)
		d.states = append(d.states, rest)
	}
	for i, m := range children {
		d.states[i].edges = childEdges(m, other)
	}
	return d, nil
}

// childEdges leads the characters in m to their state and, if other ≥ 0, all
// others of the alphabet there.
func childEdges(m map[rune]int, other int) []dfaEdge {
	runes := make([]rune, 0, len(m))
	for r := range m {
		runes = append(runes, r)
	}
	slices.Sort(runes)
	var edges []dfaEdge
	if other < 0 {
		for _, r := range runes {
			edges = append(edges, dfaEdge{r, r, m[r]})
		}
		return edges
	}
	for _, a := range alphabet {
		lo := a.lo
		for _, r := range runes {
			if r < lo || r > a.hi {
				continue
			}
			if r > lo {
				edges = append(edges, dfaEdge{lo, r - 1, other})
			}
			edges = append(edges, dfaEdge{r, r, m[r]})
			lo = r + 1
		}
		if lo <= a.hi {
			edges = append(edges, dfaEdge{lo, a.hi, other})
		}
	}
	return edges
}

// intersect accepts what both accept.
func intersect(a, b *dfa) (*dfa, error) {
	type pair struct{ a, b int }
	ids := map[pair]int{{}: 0}
	queue := []pair{{}}
	d := &dfa{}
	work := 0
	for len(queue) > 0 {
		p := queue[0]
		queue = queue[1:]
		s := dfaState{accept: a.states[p.a].accept && b.states[p.b].accept}
		ea, eb := a.states[p.a].edges, b.states[p.b].edges
		for i, j := 0, 0; i < len(ea) && j < len(eb); {
			lo, hi := max(ea[i].lo, eb[j].lo), min(ea[i].hi, eb[j].hi)
			if work++; work > maxWork {
				return nil, ErrTooLarge
			}
			if lo <= hi {
				to := pair{ea[i].to, eb[j].to}
				id, ok := ids[to]
				if !ok {
					if id = len(ids); id >= 4*maxStates {
						return nil, ErrTooLarge
					}
					ids[to] = id
					queue = append(queue, to)
				}
				s.edges = append(s.edges, dfaEdge{lo, hi, id})
			}
			if ea[i].hi < eb[j].hi {
				i++
			} else {
				j++
			}
		}
		d.states = append(d.states, s)
	}
	return d, nil
}

// reduce drops dead ends, merges equal states and adjacent edges. A dead end
// would be a trap for the sampler: text that can never be completed. It
// reports false if nothing is accepted.
func (d *dfa) reduce() (*dfa, bool) {
	alive := d.alive()
	if !alive[0] {
		return nil, false
	}
	for i := range d.states {
		var keep []dfaEdge
		for _, e := range d.states[i].edges {
			if alive[e.to] {
				keep = append(keep, e)
			}
		}
		d.states[i].edges = keep
	}
	return d.merge(d.classes()), true
}

func (d *dfa) alive() []bool {
	from := make([][]int, len(d.states))
	for i, s := range d.states {
		for _, e := range s.edges {
			from[e.to] = append(from[e.to], i)
		}
	}
	alive := make([]bool, len(d.states))
	var stack []int
	mark := func(i int) {
		if !alive[i] {
			alive[i] = true
			stack = append(stack, i)
		}
	}
	for i, s := range d.states {
		if s.accept {
			mark(i)
		}
	}
	for len(stack) > 0 {
		i := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, p := range from[i] {
			mark(p)
		}
	}
	return alive
}

// classes refines a partition of the states until edges agree (Moore).
func (d *dfa) classes() []int {
	class := make([]int, len(d.states))
	for i, s := range d.states {
		if s.accept {
			class[i] = 1
		}
	}
	count, edges := 0, 0
	for _, s := range d.states {
		edges += len(s.edges) + 1
	}
	var sig []byte
	for range 1 + 4*maxWork/edges {
		ids := map[string]int{}
		next := make([]int, len(class))
		for i := range d.states {
			sig = d.signature(sig[:0], i, class)
			id, ok := ids[string(sig)]
			if !ok {
				id = len(ids)
				ids[string(sig)] = id
			}
			next[i] = id
		}
		class = next
		if len(ids) == count {
			return class
		}
		count = len(ids)
	}
	// A long chain takes a round a state; it has nothing to merge.
	for i := range class {
		class[i] = i
	}
	return class
}

func (d *dfa) signature(sig []byte, state int, class []int) []byte {
	put := func(v int) { sig = append(sig, byte(v), byte(v>>8), byte(v>>16)) }
	put(class[state])
	edges := d.states[state].edges
	for i := 0; i < len(edges); {
		lo, hi, to := edges[i].lo, edges[i].hi, class[edges[i].to]
		for i++; i < len(edges) && edges[i].lo == hi+1 && class[edges[i].to] == to; i++ {
			hi = edges[i].hi
		}
		put(int(lo))
		put(int(hi))
		put(to)
	}
	return sig
}

func (d *dfa) merge(class []int) *dfa {
	ids := map[int]int{class[0]: 0}
	queue := []int{0}
	out := &dfa{}
	for len(queue) > 0 {
		s := d.states[queue[0]]
		queue = queue[1:]
		m := dfaState{accept: s.accept}
		for _, e := range s.edges {
			id, ok := ids[class[e.to]]
			if !ok {
				id = len(ids)
				ids[class[e.to]] = id
				queue = append(queue, e.to)
			}
			if n := len(m.edges); n > 0 && m.edges[n-1].to == id && m.edges[n-1].hi+1 == e.lo {
				m.edges[n-1].hi = e.hi
				continue
			}
			m.edges = append(m.edges, dfaEdge{e.lo, e.hi, id})
		}
		out.states = append(out.states, m)
	}
	return out
}
