package schema

import "strings"

// spelling is how an automaton's text stands in the output.
type spelling uint8

const (
	plainText    spelling = iota // as it is: numbers, text between markers
	jsonString                   // inside a JSON string, escapes where needed
	singleQuoted                 // the same between single quotation marks
)

// mark is the quotation mark of a spelling.
func (s spelling) mark() rune {
	if s == singleQuoted {
		return '\''
	}
	return '"'
}

// emitter writes a reduced dfa as rules: one for each state that has several
// ways in, the others in place.
type emitter struct {
	b     *builder
	d     *dfa
	how   spelling
	tail  string // what follows the text, as a GBNF expression; "" for nothing
	also  string // what else may stand in the text, leading to the start
	in    []int
	names map[int]string
	depth int // of states in place in each other
}

// maxInPlace bounds the groups within groups: llama.cpp's parser recurses.
const maxInPlace = 40

// automaton writes d and returns the expression for it.
func (b *builder) automaton(d *dfa, how spelling, tail string) (string, error) {
	e := &emitter{b: b, d: d, how: how, tail: tail}
	return e.write()
}

func (e *emitter) write() (string, error) {
	d, b := e.d, e.b
	e.in, e.names = make([]int, len(d.states)), map[int]string{}
	e.in[0] = 1
	if e.also != "" {
		e.in[0] += len(d.states)
	}
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

// shared writes what e does under a name that it has in every grammar, and
// returns the name. Its automaton is small and accepts something.
func (b *builder) shared(name string, e emitter) (string, error) {
	if b.prims[name] {
		return name, nil
	}
	b.prims[name] = true
	reduced, ok := e.d.reduce()
	if !ok {
		return "", unsatisfiable("$")
	}
	e.d, e.b = reduced, newBuilder(name)
	body, err := e.write()
	if err != nil {
		return "", err
	}
	for _, r := range append(e.b.rules, Rule{name, body}) {
		b.append(r.Name, r.Body)
	}
	return name, nil
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
	if e.also != "" {
		rest, err := e.ref(0)
		if err != nil {
			return "", false, err
		}
		alts = append(alts, e.also+" "+rest)
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
		if e.how != plainText {
			writeQuotedRune(&b, s.edges[0].lo, e.how.mark())
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
		if e.how != plainText {
			for _, special := range [...]rune{'\b', '\t', '\n', '\f', '\r', e.how.mark(), '\\'} {
				if special < lo || special > s.hi {
					continue
				}
				flush(lo, special-1)
				var b strings.Builder
				writeQuotedRune(&b, special, e.how.mark())
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
