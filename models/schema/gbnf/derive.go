package gbnf

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"unicode/utf8"
)

// Deriver makes random sentences of a grammar.
type Deriver struct {
	g    *Grammar
	cost []int  // shortest derivation of each rule, in characters
	loop []bool // rules that contain themselves
	long bool   // stay in loops while there is budget
	rng  *rand.Rand
}

// NewDeriver prepares derivations; a rule that derives nothing finite is
// reported by its name, "" means all is well.
func NewDeriver(g *Grammar, seed uint64) (d *Deriver, endless string) {
	d = &Deriver{g: g, cost: make([]int, len(g.rules)), rng: rand.New(rand.NewPCG(seed, 1))}
	for i := range d.cost {
		d.cost[i] = math.MaxInt32
	}
	for changed := true; changed; {
		changed = false
		for i, alternatives := range g.rules {
			for _, seq := range alternatives {
				if c := d.length(seq); c < d.cost[i] {
					d.cost[i], changed = c, true
				}
			}
		}
	}
	for i, c := range d.cost {
		if c >= math.MaxInt32 {
			return nil, g.names[i]
		}
	}
	return d, ""
}

func (d *Deriver) length(seq []element) int {
	n := 0
	for _, e := range seq {
		if e.kind == charClass {
			n++
		} else {
			n += d.cost[e.rule]
		}
		if n >= math.MaxInt32 {
			return math.MaxInt32
		}
	}
	return n
}

// Sentence derives one sentence; past about budget characters it takes the
// shortest way to an end.
func (d *Deriver) Sentence(budget int) string {
	var b strings.Builder
	d.derive(&b, d.g.root, budget)
	return b.String()
}

// Long derives one sentence that seldom leaves a repetition or recursion before
// about budget characters.
func (d *Deriver) Long(budget int) string {
	if d.loop == nil {
		d.loop = d.g.loops()
	}
	d.long = true
	defer func() { d.long = false }()
	return d.Sentence(budget)
}

// loops finds the rules that contain themselves: those in a strongly connected
// part with others or with an edge to themselves (Tarjan's algorithm).
func (g *Grammar) loops() []bool {
	out := make([]bool, len(g.rules))
	num, low := make([]int, len(g.rules)), make([]int, len(g.rules)) // from 1
	on := make([]bool, len(g.rules))
	var stack []int
	count := 0
	var visit func(int)
	visit = func(i int) {
		count++
		num[i], low[i] = count, count
		stack = append(stack, i)
		on[i] = true
		for _, alternative := range g.rules[i] {
			for _, e := range alternative {
				switch {
				case e.kind != ruleRef:
				case num[e.rule] == 0:
					visit(e.rule)
					low[i] = min(low[i], low[e.rule])
				case on[e.rule]:
					out[i] = out[i] || e.rule == i
					low[i] = min(low[i], num[e.rule])
				}
			}
		}
		if low[i] != num[i] {
			return
		}
		at := slices.Index(stack, i)
		for _, m := range stack[at:] {
			on[m] = false
			out[m] = out[m] || len(stack)-at > 1
		}
		stack = stack[:at]
	}
	for i := range g.rules {
		if num[i] == 0 {
			visit(i)
		}
	}
	return out
}

// onward takes an alternative at random, with long most often one that may come
// back to its rule.
func (d *Deriver) onward(alternatives [][]element) int {
	pick := d.rng.IntN(len(alternatives))
	for tries := 0; d.long && tries < 8; tries++ {
		for _, e := range alternatives[pick] {
			if e.kind == ruleRef && d.loop[e.rule] {
				return pick
			}
		}
		pick = d.rng.IntN(len(alternatives))
	}
	return pick
}

func (d *Deriver) derive(b *strings.Builder, rule, budget int) {
	alternatives := d.g.rules[rule]
	pick := d.onward(alternatives)
	if b.Len() > budget {
		for i, seq := range alternatives {
			if d.length(seq) < d.length(alternatives[pick]) {
				pick = i
			}
		}
	}
	for i := range alternatives[pick] {
		e := &alternatives[pick][i]
		if e.kind == ruleRef {
			d.derive(b, e.rule, budget)
			continue
		}
		b.WriteRune(d.pick(e))
	}
}

// pick takes a character of the class, mostly a plain one.
func (d *Deriver) pick(e *element) rune {
	if !e.negate {
		x := e.ranges[d.rng.IntN(len(e.ranges))]
		return x.lo + rune(d.rng.IntN(int(x.hi-x.lo)+1))
	}
	for {
		r := rune(' ' + d.rng.IntN(95))
		if d.rng.IntN(8) == 0 {
			r = rune(d.rng.IntN(0x2FFF))
		}
		if utf8.ValidRune(r) && e.matches(r) {
			return r
		}
	}
}
