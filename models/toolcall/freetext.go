package toolcall

import (
	"fmt"
	"strings"

	"quern/models/schema"
)

// pattern is a text that free text stops at, and what follows then.
type pattern struct{ text, next string }

// freeText writes rules for text in which a pattern, wherever it occurs, is
// followed by its next; with mayEnd the text may also end at any point. The
// rules are an automaton that knows how much of a pattern has just been
// written (Aho and Corasick's), so the sampler has one path to follow.
//
// This takes the place of llama.cpp's lazy grammars: their triggers run a
// regular expression over all of the output after each token, which is
// quadratic, and recursive in the C++ library.
func freeText(name string, mayEnd bool, patterns ...pattern) []schema.Rule {
	a := buildAutomaton(patterns)
	rules := make([]schema.Rule, 0, len(a.nodes))
	for i, n := range a.nodes {
		if n.final >= 0 {
			continue
		}
		// Group the runes by where they lead.
		var order []int
		to := map[int][]rune{}
		for _, r := range a.runes {
			next := a.step(i, r)
			if next == 0 {
				continue
			}
			if to[next] == nil {
				order = append(order, next)
			}
			to[next] = append(to[next], r)
		}
		var alts, named []string
		for _, next := range order {
			target := ruleName(name, next)
			if f := a.nodes[next].final; f >= 0 {
				target = patterns[f].next
			}
			set := runeSet(to[next])
			named = append(named, set)
			alts = append(alts, "["+set+"] "+target)
		}
		alts = append(alts, "[^"+strings.Join(named, "")+"] "+ruleName(name, 0))
		if mayEnd {
			alts = append(alts, `""`)
		}
		rules = append(rules, schema.Rule{Name: ruleName(name, i), Body: strings.Join(alts, " | ")})
	}
	return rules
}

func ruleName(name string, i int) string {
	if i == 0 {
		return name
	}
	return fmt.Sprintf("%s-%d", name, i)
}

// runeSet spells runes for use inside [ ].
func runeSet(runes []rune) string {
	var b strings.Builder
	for _, r := range runes {
		switch {
		case r == '[' || r == ']' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '-' || r == '^' || r < ' ' || r > '~':
			fmt.Fprintf(&b, `\U%08X`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

type automaton struct {
	nodes []automatonNode
	runes []rune
}

type automatonNode struct {
	next  map[rune]int
	fail  int
	final int // index of the pattern that ends here, -1 for none
}

func buildAutomaton(patterns []pattern) *automaton {
	a := &automaton{nodes: []automatonNode{{next: map[rune]int{}, final: -1}}}
	for i, p := range patterns {
		at := 0
		for _, r := range p.text {
			next, ok := a.nodes[at].next[r]
			if !ok {
				next = len(a.nodes)
				a.nodes[at].next[r] = next
				a.nodes = append(a.nodes, automatonNode{next: map[rune]int{}, final: -1})
			}
			if !strings.ContainsRune(string(a.runes), r) {
				a.runes = append(a.runes, r)
			}
			at = next
		}
		if a.nodes[at].final < 0 {
			a.nodes[at].final = i
		}
	}
	a.link()
	return a
}

// link sets the fail links, breadth first.
func (a *automaton) link() {
	queue := []int{0}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		for _, r := range a.runes {
			next, ok := a.nodes[at].next[r]
			if !ok {
				continue
			}
			if at > 0 {
				a.nodes[next].fail = a.step(a.nodes[at].fail, r)
			}
			if f := a.nodes[a.nodes[next].fail].final; a.nodes[next].final < 0 && f >= 0 {
				a.nodes[next].final = f
			}
			queue = append(queue, next)
		}
	}
}

// step is the longest part of a pattern that ends with r after node at.
func (a *automaton) step(at int, r rune) int {
	for {
		if next, ok := a.nodes[at].next[r]; ok {
			return next
		}
		if at == 0 {
			return 0
		}
		at = a.nodes[at].fail
	}
}
