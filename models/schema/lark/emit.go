package lark

import (
	"slices"
	"strings"

	"quern/models/schema"
)

// emitter writes the rules that the start reaches.
type emitter struct {
	*graph
	text  *schema.Text
	names map[int]string
	terms map[*terminal]string
	todo  []int
}

// emit writes the rules twice, with the escapes of JSON and without.
func emit(g *graph, source, key string) (*schema.Compiled, error) {
	escaped, start, err := emitText(g, schema.NewText(source, false))
	if err != nil {
		return nil, err
	}
	plain, plainStart, err := emitText(g, schema.NewText(source, true))
	if err != nil {
		return nil, err
	}
	return escaped.Member(key, start, plain, plainStart)
}

func emitText(g *graph, text *schema.Text) (*schema.Text, string, error) {
	e := &emitter{graph: g, text: text, names: map[int]string{}, terms: map[*terminal]string{}}
	start := e.name(0)
	for len(e.todo) > 0 {
		id := e.todo[len(e.todo)-1]
		e.todo = e.todo[:len(e.todo)-1]
		body, err := e.node(g.rules[id])
		if err == nil {
			err = e.text.Put(e.names[id], body)
		}
		if err != nil {
			return nil, "", err
		}
	}
	return e.text, start, nil
}

func (e *emitter) name(id int) string {
	if name, ok := e.names[id]; ok {
		return name
	}
	name := e.text.Reserve()
	e.names[id] = name
	e.todo = append(e.todo, id)
	return name
}

func (e *emitter) node(x *node) (string, error) {
	switch x.kind {
	case nodeRule:
		return e.name(x.rule), nil
	case nodeTerminal:
		return e.terminal(x.term)
	case nodeRepeat:
		kid, err := e.node(x.kids[0])
		if err != nil {
			return "", err
		}
		if kid, err = e.text.Add(kid); err != nil {
			return "", err
		}
		return e.text.Repeat(kid, x.lo, x.hi)
	case nodeAlt:
		return e.alternatives(x)
	}
	if len(x.kids) == 0 {
		return `""`, nil
	}
	parts := make([]string, 0, len(x.kids))
	for _, k := range x.kids {
		part, err := e.node(k)
		if err != nil {
			return "", err
		}
		if k.kind == nodeAlt {
			part = "( " + part + " )"
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, " "), nil
}

func (e *emitter) alternatives(x *node) (string, error) {
	var alts []string
	for _, k := range x.kids {
		a, err := e.node(k)
		if err != nil {
			return "", err
		}
		if !slices.Contains(alts, a) {
			alts = append(alts, a)
		}
	}
	return strings.Join(alts, " | "), nil
}

// longTerminal is where the expression of a terminal becomes a rule.
const longTerminal = 64

func (e *emitter) terminal(t *terminal) (string, error) {
	if expr, ok := e.terms[t]; ok {
		return expr, nil
	}
	expr, err := e.text.Pattern(t.all)
	if err == nil && len(expr) > longTerminal {
		expr, err = e.text.Add(expr)
	}
	e.terms[t] = expr
	return expr, err
}
