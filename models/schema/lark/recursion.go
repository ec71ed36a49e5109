package lark

import "slices"

// maxCycle bounds the rules that refer to each other at their left end.
const maxCycle = 32

// lefts calls f for each rule that a text of x may begin with, and says whether
// x may be empty.
func (n *normal) lefts(x *node, f func(int)) bool {
	switch {
	case x == nil:
		return false
	case x.kind == nodeRule:
		f(x.rule)
		return n.null[x.rule]
	case x.kind == nodeSeq:
		for _, k := range x.kids {
			if !n.lefts(k, f) {
				return false
			}
		}
		return true
	}
	for _, k := range x.kids {
		n.lefts(k, f)
	}
	return n.isNull(x)
}

// leftCycles are the sets of rules that reach each other at their left end
// (Tarjan's algorithm).
func (n *normal) leftCycles() [][]int {
	t := &tarjan{n: n, low: make([]int, len(n.plain)), num: make([]int, len(n.plain)), on: make([]bool, len(n.plain))}
	for i := range n.plain {
		if t.num[i] == 0 {
			t.visit(i)
		}
	}
	return t.out
}

type tarjan struct {
	n        *normal
	num, low []int // from 1
	on       []bool
	stack    []int
	count    int
	out      [][]int
}

func (t *tarjan) visit(i int) {
	t.count++
	t.num[i], t.low[i] = t.count, t.count
	t.stack = append(t.stack, i)
	t.on[i] = true
	self := false
	t.n.lefts(t.n.plain[i], func(j int) {
		self = self || j == i
		switch {
		case t.num[j] == 0:
			t.visit(j)
			t.low[i] = min(t.low[i], t.low[j])
		case t.on[j]:
			t.low[i] = min(t.low[i], t.num[j])
		}
	})
	if t.low[i] != t.num[i] {
		return
	}
	at := slices.Index(t.stack, i)
	members := slices.Clone(t.stack[at:])
	t.stack = t.stack[:at]
	for _, m := range members {
		t.on[m] = false
	}
	if len(members) > 1 || self {
		t.out = append(t.out, members)
	}
}

// production is one way to begin a rule of a cycle: with a rule of the cycle or
// with another node, and what follows.
type production struct {
	from int   // place in the cycle; -1 for a node outside of it
	head *node // if outside
	tail []*node
}

// cycle rewrites left-recursive rules. With A → S | A t the texts of A are S
// followed by any number of t; with several rules the t are steps of an
// automaton from rule to rule. steps(j, i) is the rule for what follows a text of
// rule j to make it one of rule i.
type cycle struct {
	*normal
	members []int // without their empty texts
	at      map[int]int
	seeds   []*node
	next    [][]step // by the rule that the step goes on from
	same    [][]int  // rules that have all texts of a rule, itself first
	reach   [][]bool
	made    map[[2]int]int // rules of steps
}

type step struct {
	to   int
	tail *node // not empty
}

// straighten rewrites the rules of a cycle.
func (n *normal) straighten(members []int) error {
	if len(members) > maxCycle {
		return tooLarge(0, "more than %d rules are left-recursive together", maxCycle)
	}
	c := &cycle{normal: n, at: map[int]int{}, made: map[[2]int]int{}}
	for i, m := range members {
		c.members = append(c.members, n.solid[m])
		c.at[m] = i
		if n.null[m] {
			n.rules[m] = alt(&node{kind: nodeRule, rule: n.solid[m]}, empty)
		}
	}
	c.next, c.same = make([][]step, len(members)), make([][]int, len(members))
	for i := range members {
		c.same[i] = []int{i}
	}
	if err := c.read(members); err != nil {
		return err
	}
	c.connect()
	for i := range members {
		if err := c.write(i); err != nil {
			return err
		}
	}
	return nil
}

// read sorts the productions into seeds and steps.
func (c *cycle) read(members []int) error {
	for i, m := range members {
		list, err := c.productions(c.plain[m])
		if err != nil {
			return err
		}
		alone := len(members) == 1 && !c.null[m]
		seed := c.reserve(-1)
		var seeds []*node
		for _, p := range list {
			// Where A ends in itself, S is enough: the steps that would follow
			// the inner A may follow the outer one. It keeps 1+2+3 unambiguous.
			if last := len(p.tail) - 1; alone && last >= 0 && p.tail[last].kind == nodeRule && p.tail[last].rule == m {
				p.tail = append(slices.Clone(p.tail[:last]), &node{kind: nodeRule, rule: seed})
			}
			tail := seq(p.tail...)
			if p.from < 0 {
				rest, err := c.sound(tail)
				if err != nil {
					return err
				}
				seeds = append(seeds, seq(p.head, rest))
				continue
			}
			if c.isNull(tail) && p.from != i && !slices.Contains(c.same[p.from], i) {
				c.same[p.from] = append(c.same[p.from], i)
			}
			solid, err := c.solidPart(tail)
			if err != nil {
				return err
			}
			if solid != nil {
				c.next[p.from] = append(c.next[p.from], step{i, solid})
			}
		}
		c.rules[seed] = alt(seeds...)
		ref := &node{kind: nodeRule, rule: seed}
		if len(seeds) == 0 {
			ref = nil
		}
		c.seeds = append(c.seeds, ref)
	}
	return nil
}

// productions are the ways to begin x, without the empty text.
func (c *cycle) productions(x *node) ([]production, error) {
	if err := c.spend(1); err != nil {
		return nil, err
	}
	inside := false
	c.lefts(x, func(r int) {
		_, ok := c.at[r]
		inside = inside || ok
	})
	if !inside {
		head, err := c.solidPart(x)
		if err != nil || head == nil {
			return nil, err
		}
		return []production{{from: -1, head: head}}, nil
	}
	var out []production
	add := func(x *node, rest ...*node) error {
		list, err := c.productions(x)
		for _, p := range list {
			p.tail = append(slices.Clone(p.tail), rest...)
			out = append(out, p)
		}
		if err == nil {
			err = c.spend(len(list) * (1 + len(rest)))
		}
		return err
	}
	switch x.kind {
	case nodeRule:
		return []production{{from: c.at[x.rule]}}, nil
	case nodeAlt:
		for _, k := range x.kids {
			if err := add(k); err != nil {
				return nil, err
			}
		}
	case nodeSeq:
		for i, k := range x.kids {
			if err := add(k, x.kids[i+1:]...); err != nil {
				return nil, err
			}
			if !c.isNull(k) {
				break
			}
		}
	case nodeRepeat:
		lo, hi := max(x.lo-1, 0), x.hi
		if c.isNull(x.kids[0]) {
			lo = 0
		}
		if hi > 0 {
			hi--
		}
		if err := add(x.kids[0], repeat(x.kids[0], lo, hi)); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// connect closes the relations between the rules of the cycle.
func (c *cycle) connect() {
	for j := range c.same {
		for at := 0; at < len(c.same[j]); at++ {
			for _, k := range c.same[c.same[j][at]] {
				if !slices.Contains(c.same[j], k) {
					c.same[j] = append(c.same[j], k)
				}
			}
		}
	}
	c.reach = make([][]bool, len(c.members))
	for j := range c.members {
		seen := make([]bool, len(c.members))
		for stack := []int{j}; len(stack) > 0; {
			k := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			if seen[k] {
				continue
			}
			seen[k] = true
			stack = append(stack, c.same[k]...)
			for _, s := range c.next[k] {
				stack = append(stack, s.to)
			}
		}
		c.reach[j] = seen
	}
}

// write makes the body of rule i: each seed with the steps from there.
func (c *cycle) write(i int) error {
	var alts []*node
	for j, seed := range c.seeds {
		if seed == nil || !c.reach[j][i] {
			continue
		}
		rest, err := c.steps(j, i)
		if err != nil {
			return err
		}
		alts = append(alts, seq(seed, rest))
	}
	c.rules[c.members[i]] = alt(alts...)
	return nil
}

func (c *cycle) steps(j, i int) (*node, error) {
	key := [2]int{j, i}
	if id, ok := c.made[key]; ok {
		return &node{kind: nodeRule, rule: id}, nil
	}
	id := c.reserve(-1)
	c.made[key] = id
	done := slices.Contains(c.same[j], i)
	c.null[id] = done
	var alts []*node
	for _, k := range c.same[j] {
		for _, s := range c.next[k] {
			if err := c.spend(1); err != nil {
				return nil, err
			}
			if !c.reach[s.to][i] {
				continue
			}
			rest, err := c.steps(s.to, i)
			if err != nil {
				return nil, err
			}
			alts = append(alts, seq(s.tail, rest))
		}
	}
	if done {
		alts = append(alts, empty)
	}
	c.rules[id] = alt(alts...)
	return &node{kind: nodeRule, rule: id}, nil
}
