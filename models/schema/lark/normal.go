package lark

// normal brings rules into a form that a sampler runs: nothing that may be empty
// is repeated, nothing is left-recursive.
type normal struct {
	*graph
	plain []*node // the rules as they were
	null  []bool  // rules that may be empty
	some  []bool  // rules with texts that are not empty
	solid []int   // a rule without its empty text; -1 if none is made yet
	todo  []int   // solid rules without a body
	of    []int   // what a solid rule is the solid part of
}

// normalize rewrites the rules of g, whose rule 0 is the start.
func normalize(g *graph) error {
	n := &normal{graph: g}
	n.null = n.fixpoint(n.mayBeEmpty)
	n.some = n.fixpoint(n.hasText)
	if !n.null[0] && !n.some[0] {
		return fault(0, "no text follows the grammar: its rules never end")
	}
	n.plain = make([]*node, len(g.rules))
	for i, body := range g.rules {
		n.plain[i] = n.prune(body)
		n.solid = append(n.solid, -1)
		n.of = append(n.of, i)
	}
	cycles := n.leftCycles()
	for _, members := range cycles {
		for _, i := range members {
			n.solid[i] = i
			if n.null[i] {
				n.solid[i] = n.reserve(i)
			}
		}
	}
	inCycle := map[int]bool{}
	for _, members := range cycles {
		for _, i := range members {
			inCycle[i] = true
		}
	}
	for i := range n.plain {
		if !inCycle[i] {
			body, err := n.sound(n.plain[i])
			if err != nil {
				return err
			}
			g.rules[i] = body
		}
	}
	for _, members := range cycles {
		if err := n.straighten(members); err != nil {
			return err
		}
	}
	return n.finish()
}

// finish gives the solid rules that were asked for their bodies.
func (n *normal) finish() error {
	for len(n.todo) > 0 {
		id := n.todo[len(n.todo)-1]
		n.todo = n.todo[:len(n.todo)-1]
		body, err := n.solidPart(n.plain[n.of[id]])
		if err != nil {
			return err
		}
		n.rules[id] = body
	}
	return nil
}

// reserve makes a rule for the solid part of another, or with of < 0 for
// anything that is not empty.
func (n *normal) reserve(of int) int {
	id := n.graph.reserve("")
	n.null = append(n.null, false)
	n.some = append(n.some, true)
	n.solid = append(n.solid, id)
	n.plain = append(n.plain, nil)
	n.of = append(n.of, of)
	return id
}

// fixpoint finds the rules for which holds, given those already found, is true.
func (n *normal) fixpoint(holds func(*node, []bool) bool) []bool {
	found := make([]bool, len(n.rules))
	for changed := true; changed; {
		changed = false
		for i := len(n.rules) - 1; i >= 0; i-- {
			if !found[i] && holds(n.rules[i], found) {
				found[i], changed = true, true
			}
		}
	}
	return found
}

func (n *normal) mayBeEmpty(x *node, null []bool) bool {
	switch x.kind {
	case nodeRule:
		return null[x.rule]
	case nodeTerminal:
		return x.term.all.MatchesEmpty()
	case nodeRepeat:
		return x.lo == 0 || n.mayBeEmpty(x.kids[0], null)
	case nodeAlt:
		for _, k := range x.kids {
			if n.mayBeEmpty(k, null) {
				return true
			}
		}
		return false
	}
	for _, k := range x.kids {
		if !n.mayBeEmpty(k, null) {
			return false
		}
	}
	return true
}

func (n *normal) isNull(x *node) bool { return n.mayBeEmpty(x, n.null) }

// hasText says whether a text that is not empty can be derived.
func (n *normal) hasText(x *node, some []bool) bool {
	switch x.kind {
	case nodeRule:
		return some[x.rule]
	case nodeTerminal:
		return x.term.solid != nil
	case nodeRepeat:
		return n.hasText(x.kids[0], some)
	case nodeAlt:
		for _, k := range x.kids {
			if n.hasText(k, some) {
				return true
			}
		}
		return false
	}
	any := false
	for _, k := range x.kids {
		has := n.hasText(k, some)
		if !has && !n.isNull(k) {
			return false
		}
		any = any || has
	}
	return any
}

// prune leaves out what derives nothing, or only the empty text; nil if nothing
// is left.
func (n *normal) prune(x *node) *node {
	has := n.hasText(x, n.some)
	switch {
	case !has && n.isNull(x):
		return empty
	case !has:
		return nil
	}
	var kids []*node
	for _, k := range x.kids {
		if p := n.prune(k); p != nil {
			kids = append(kids, p)
		}
	}
	switch x.kind {
	case nodeSeq:
		return seq(kids...)
	case nodeAlt:
		return alt(kids...)
	case nodeRepeat:
		return repeat(kids[0], x.lo, x.hi)
	}
	return x
}

// sound is x with nothing repeated that may be empty.
func (n *normal) sound(x *node) (*node, error) {
	if err := n.spend(1); err != nil || x == nil {
		return x, err
	}
	switch x.kind {
	case nodeRule, nodeTerminal:
		return x, nil
	case nodeRepeat:
		lo := x.lo
		if n.isNull(x.kids[0]) {
			lo = 0
		}
		kid, err := n.solidPart(x.kids[0])
		if err != nil || kid == nil {
			return empty, err
		}
		return repeat(kid, lo, x.hi), nil
	}
	kids := make([]*node, 0, len(x.kids))
	for _, k := range x.kids {
		s, err := n.sound(k)
		if err != nil {
			return nil, err
		}
		kids = append(kids, s)
	}
	if x.kind == nodeAlt {
		return alt(kids...), nil
	}
	return seq(kids...), nil
}

// solidPart is x without the empty text; nil if nothing else is in it.
func (n *normal) solidPart(x *node) (*node, error) {
	if !n.isNull(x) {
		return n.sound(x)
	}
	if err := n.spend(1 + len(x.kids)); err != nil {
		return nil, err
	}
	switch x.kind {
	case nodeTerminal:
		if x.term.solid == nil {
			return nil, nil
		}
		return &node{kind: nodeTerminal, term: x.term.solid}, nil
	case nodeRule:
		if n.solid[x.rule] < 0 {
			id := n.reserve(x.rule)
			n.solid[x.rule] = id
			n.todo = append(n.todo, id)
		}
		return &node{kind: nodeRule, rule: n.solid[x.rule]}, nil
	case nodeRepeat:
		kid, err := n.solidPart(x.kids[0])
		if err != nil || kid == nil || x.hi == 0 {
			return nil, err
		}
		return repeat(kid, 1, x.hi), nil
	case nodeAlt:
		var kids []*node
		for _, k := range x.kids {
			s, err := n.solidPart(k)
			if err != nil {
				return nil, err
			}
			if s != nil {
				kids = append(kids, s)
			}
		}
		if len(kids) == 0 {
			return nil, nil
		}
		return alt(kids...), nil
	}
	return n.solidSeq(x.kids)
}

// solidSeq is a sequence, all of which may be empty, without the empty text: it
// begins with any of its parts.
func (n *normal) solidSeq(kids []*node) (*node, error) {
	var alts []*node
	for i, k := range kids {
		head, err := n.solidPart(k)
		if err != nil {
			return nil, err
		}
		if head == nil {
			continue
		}
		rest, err := n.sound(seq(kids[i+1:]...))
		if err != nil {
			return nil, err
		}
		alts = append(alts, seq(head, rest))
	}
	if len(alts) == 0 {
		return nil, nil
	}
	return alt(alts...), nil
}
