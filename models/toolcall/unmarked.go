package toolcall

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"quern/models/schema"
)

// autoUnmarked is text that is free unless the answer begins as a call does, in
// a format without markers: from there on it is one, and right.
func (g *grammarWriter) autoUnmarked() (string, error) {
	if _, err := g.call(true); err != nil {
		return "", err
	}
	b := g.b
	end := `[ \n]{0,3}`
	list := ""
	if b.List {
		_, between, shut := b.repeat()
		end = sequence(g.furtherCalls(between, "call"), shut, end)
		list = "[" + b.Lead
	}
	g.add("calls-end", end)
	var patterns []pattern
	for i := range g.tools {
		if b.Style == Expression {
			next := g.add(fmt.Sprintf("begun-%d", i), sequence(g.argsOf[i], literal(string(b.closing())), "calls-end"))
			patterns = append(patterns, pattern{list + g.tools[i].Name + b.NameEnd, next})
			continue
		}
		patterns = append(patterns, g.objects(i, list, b)...)
	}
	g.add("free", `[^\U00000000]*`)
	g.rules.AddRules(beginsWith("begin", "free", nil, patterns)...)
	return "begin", nil
}

// objects are the ways in which a bare object may begin that calls a tool.
func (g *grammarWriter) objects(i int, list string, b *Block) []pattern {
	name := g.tools[i].Name
	next := g.add(fmt.Sprintf("begun-%d", i), sequence(literal(`, "`+orElse(b.ArgsKey, "arguments")+`": `), g.argsOf[i], `"}"`, "calls-end"))
	var out []pattern
	for _, lead := range []string{`{"%s": "%s"`, `{"%s":"%s"`, `{ "%s": "%s"`, "{\n  \"%s\": \"%s\"", `{"type": "function", "%s": "%s"`} {
		out = append(out, pattern{list + fmt.Sprintf(lead, orElse(b.NameKey, "name"), inJSON(name)), next})
	}
	return out
}

// beginsWith writes rules for text that is followed by a pattern's next if it
// begins with that pattern, white space aside, and by free where it departs from
// all of them, or by what departs has for the rune. It may also end there.
func beginsWith(name, free string, departs map[rune]string, patterns []pattern) []schema.Rule {
	a := buildAutomaton(patterns)
	others := slices.Sorted(maps.Keys(departs))
	var rules []schema.Rule
	for i, n := range a.nodes {
		if n.final >= 0 {
			continue
		}
		alts := []string{`""`}
		var named []rune
		lead := func(r rune, target string) {
			named = append(named, r)
			alts = append(alts, "["+runeSet([]rune{r})+"] "+target)
		}
		for _, r := range a.runes {
			if next, ok := n.next[r]; ok {
				target := ruleName(name, next)
				if f := a.nodes[next].final; f >= 0 {
					target = patterns[f].next
				}
				lead(r, target)
			}
		}
		if i == 0 {
			lead(' ', name)
			lead('\n', name)
		}
		for _, r := range others {
			if !slices.Contains(named, r) {
				lead(r, departs[r])
			}
		}
		alts = append(alts, "[^"+runeSet(named)+"] "+free)
		rules = append(rules, schema.Rule{Name: ruleName(name, i), Body: strings.Join(alts, " | ")})
	}
	return rules
}
