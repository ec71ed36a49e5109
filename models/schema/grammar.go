package schema

import "strings"

// Grammar collects rules of several schemas into one grammar.
type Grammar struct {
	rules []Rule
	seen  map[string]bool
}

// Add takes over the rules of a compiled schema.
func (g *Grammar) Add(c *Compiled) { g.AddRules(c.Rules...) }

// AddRules adds rules; a name that is there already is left alone.
func (g *Grammar) AddRules(rules ...Rule) {
	if g.seen == nil {
		g.seen = map[string]bool{}
	}
	for _, r := range rules {
		if !g.seen[r.Name] {
			g.seen[r.Name] = true
			g.rules = append(g.rules, r)
		}
	}
}

// Text is the grammar with root as its start.
func (g *Grammar) Text(root string) string {
	size := len(root) + 16
	for _, r := range g.rules {
		size += len(r.Name) + len(r.Body) + 6
	}
	var b strings.Builder
	b.Grow(size)
	b.WriteString("root ::= " + root + "\n")
	for _, r := range g.rules {
		b.WriteString(r.Name + " ::= " + r.Body + "\n")
	}
	return b.String()
}

// Quote spells a text as a literal of a grammar.
func Quote(s string) string { return quote(s) }
