package schema

import "strings"

// spelling is how an automaton's text stands in the output.
type spelling uint8

const (
	plainText  spelling = iota // as it is: numbers
	jsonString                 // inside a JSON string, escapes where needed
)

// emitter writes a reduced dfa as rules: one for each state that has several
// ways in, the others in place.
type emitter struct {
	b     *builder
	d     *dfa
	how   spelling
	tail  string // what follows the text, as a GBNF expression; "" for nothing
	in    []int
	names map[int]string
	depth int // of states in place in each other
}

// maxInPlace bounds the groups within groups: llama.cpp's parser recurses.
const maxInPlace = 40

// automaton writes d and returns the expression for it.
func (b *builder) automaton(d *dfa, how spelling, tail string) (string, error) {
	e := &emitter{b: b, d: d, how: how, tail: tail, in: make([]int, len(d.states)), names: map[int]string{}}
	e.in[0] = 1
	for _, s := range d.states {
		for _, edge := range groupEdges(s.edges) {
			e.in[edge.to]++
		}
	}
	body, several, err := e.state(0)
	if err != nil {
		return "", err
	}
	if several {
		return b.add(body)
	}
	return body, nil
}

// ref is the expression that goes on at a state: in place where this is the
// only way in, else by rule.
func (e *emitter) ref(i int) (string, error) {
	if e.in[i] > 1 || e.depth == maxInPlace {
		if name, ok := e.names[i]; ok {
			return name, nil
		}
		name := e.b.reserve()
		e.names[i] = name
		outer := e.depth
		e.depth = 0
		body, _, err := e.state(i)
		e.depth = outer
		if err != nil {
			return "", err
		}
		return name, e.b.put(name, body)
	}
	e.depth++
	body, several, err := e.state(i)
	e.depth--
	if several {
		body = "( " + body + " )"
	}
	return body, err
}

// state writes the alternatives of a state; several says that there is more
// than one.
func (e *emitter) state(i int) (body string, several bool, err error) {
	lit, i := e.literal(i)
	if lit != "" && e.in[i] > 1 {
		rest, err := e.ref(i)
		return quote(lit) + " " + rest, false, err
	}
	s := &e.d.states[i]
	var alts []string
	for _, g := range groupEdges(s.edges) {
		rest, err := e.ref(g.to)
		if err != nil {
			return "", false, err
		}
		alts = append(alts, e.class(g.spans)+" "+rest)
	}
	if s.accept {
		end := e.tail
		if end == "" {
			end = `""`
		}
		alts = append(alts, end)
	}
	body = strings.Join(alts, " | ")
	if lit == "" {
		return body, len(alts) > 1, nil
	}
	if len(alts) > 1 {
		body = "( " + body + " )"
	}
	return quote(lit) + " " + body, false, nil
}

// literal follows single characters without a choice, up to a state that is a
// rule of its own, and returns their spelling and the state after them.
func (e *emitter) literal(i int) (string, int) {
	var b strings.Builder
	for {
		s := &e.d.states[i]
		if s.accept || len(s.edges) != 1 || s.edges[0].lo != s.edges[0].hi {
			return b.String(), i
		}
		if e.how == jsonString {
			writeJSONRune(&b, s.edges[0].lo)
		} else {
			b.WriteRune(s.edges[0].lo)
		}
		if i = s.edges[0].to; e.in[i] > 1 {
			return b.String(), i
		}
	}
}

// class spells a set of characters, escapes as literals.
func (e *emitter) class(spans []runeSpan) string {
	var plain, alts []string
	var escapes strings.Builder // what may follow a backslash
	flush := func(lo, hi rune) {
		if lo > hi {
			return
		}
		var b strings.Builder
		classRune(&b, lo)
		if hi > lo {
			b.WriteByte('-')
			classRune(&b, hi)
		}
		plain = append(plain, b.String())
	}
	for _, s := range spans {
		lo := s.lo
		if e.how == jsonString {
			for _, special := range [...]rune{'\b', '\t', '\n', '\f', '\r', '"', '\\'} {
				if special < lo || special > s.hi {
					continue
				}
				flush(lo, special-1)
				var b strings.Builder
				writeJSONRune(&b, special)
				classRune(&escapes, rune(b.String()[1]))
				lo = special + 1
			}
		}
		flush(lo, s.hi)
	}
	if len(plain) > 0 {
		alts = append(alts, "["+strings.Join(plain, "")+"]")
	}
	if escapes.Len() > 0 {
		alts = append(alts, `"\\" [`+escapes.String()+"]")
	}
	if len(alts) == 1 {
		return alts[0]
	}
	return "( " + strings.Join(alts, " | ") + " )"
}

type edgeGroup struct {
	to    int
	spans []runeSpan
}

// groupEdges joins the edges that lead to one state.
func groupEdges(edges []dfaEdge) []edgeGroup {
	var groups []edgeGroup
	at := map[int]int{}
	for _, e := range edges {
		i, ok := at[e.to]
		if !ok {
			i = len(groups)
			at[e.to] = i
			groups = append(groups, edgeGroup{to: e.to})
		}
		groups[i].spans = append(groups[i].spans, runeSpan{e.lo, e.hi})
	}
	return groups
}
