package lark

import (
	"fmt"
	"strings"
)

type nodeKind uint8

const (
	nodeSeq    nodeKind = iota // of kids; without any, the empty text
	nodeAlt                    // of kids; without any, nothing
	nodeRepeat                 // lo to hi times the kid, hi < 0 meaning no bound
	nodeRule
	nodeTerminal
)

// node is an expression with its names resolved. Nodes are shared and never
// change.
type node struct {
	kind   nodeKind
	kids   []*node
	lo, hi int
	rule   int
	term   *terminal
}

var empty = &node{kind: nodeSeq}

func seq(kids ...*node) *node {
	var out []*node
	for _, k := range kids {
		switch {
		case k == nil || k.kind == nodeSeq && len(k.kids) == 0:
		case k.kind == nodeSeq:
			out = append(out, k.kids...)
		default:
			out = append(out, k)
		}
	}
	if len(out) == 1 {
		return out[0]
	}
	return &node{kind: nodeSeq, kids: out}
}

func alt(kids ...*node) *node {
	if len(kids) == 1 {
		return kids[0]
	}
	return &node{kind: nodeAlt, kids: kids}
}

func repeat(kid *node, lo, hi int) *node {
	switch {
	case hi == 0:
		return empty
	case lo == 1 && hi == 1:
		return kid
	case kid.kind == nodeRepeat && kid.hi < 0 && hi < 0 && kid.lo <= 1 && lo <= 1:
		return &node{kind: nodeRepeat, kids: kid.kids, lo: min(kid.lo, lo), hi: -1} // (x+)*
	}
	return &node{kind: nodeRepeat, kids: []*node{kid}, lo: lo, hi: hi}
}

// graph is the rules of a grammar as nodes.
type graph struct {
	rules []*node
	names []string // for messages
	work  int
}

// maxWork bounds the nodes that are made on the way.
const maxWork = 100_000

func (g *graph) spend(n int) error {
	if g.work += n; g.work > maxWork {
		return tooLarge(0, "the grammar is too large")
	}
	return nil
}

func (g *graph) reserve(name string) int {
	g.rules = append(g.rules, nil)
	g.names = append(g.names, name)
	return len(g.rules) - 1
}

// resolver makes a graph of what start reaches.
type resolver struct {
	graph
	src       *source
	patterns  map[string]string    // of named terminals
	terminals map[string]*terminal // by expression
	made      int

	patternWork int

	ids     map[string]int // of rules, templates with their arguments
	todo    []pendingRule
	ignored *terminal // what may follow each terminal
}

type pendingRule struct {
	id  int
	def *definition
	env map[string]*node // arguments by parameter
}

// maxInstances bounds the rules that templates become.
const maxInstances = 1000

func resolve(src *source) (*resolver, error) {
	r := &resolver{src: src, patterns: map[string]string{}, terminals: map[string]*terminal{}, ids: map[string]int{}}
	if err := r.ignore(); err != nil {
		return nil, err
	}
	if _, err := r.instance(src.rules["start"], nil); err != nil {
		return nil, err
	}
	for len(r.todo) > 0 {
		next := r.todo[len(r.todo)-1]
		r.todo = r.todo[:len(r.todo)-1]
		body, err := r.node(next.def.body, next.env)
		if err != nil {
			return nil, err
		}
		r.rules[next.id] = body
	}
	return r, nil
}

// maxBlank bounds a run of ignored white space: a small model at a loss repeats
// it without end.
const maxBlank = 64

func (r *resolver) ignore() error {
	if len(r.src.ignored) == 0 {
		return nil
	}
	pattern, err := r.pattern(&expr{op: opAlt, kids: r.src.ignored, line: r.src.ignored[0].line})
	if err != nil {
		return err
	}
	line := r.src.ignored[0].line
	t, err := r.terminal("(?:"+pattern+")*", line)
	if err != nil {
		return err
	}
	if t.all.Within(" \t\r\n\f") {
		short, err := t.all.Sized(0, maxBlank)
		if err != nil {
			return tooLarge(line, "what is ignored can't be held: %v", err)
		}
		if t, err = r.make(short, line); err != nil {
			return err
		}
	}
	r.ignored = t
	return nil
}

// instance is the rule of a definition with these arguments.
func (r *resolver) instance(def *definition, args []*node) (int, error) {
	keys := []string{def.name}
	for _, a := range args {
		keys = append(keys, a.key())
	}
	key := strings.Join(keys, " of ")
	if id, ok := r.ids[key]; ok {
		return id, nil
	}
	if len(r.ids) == maxInstances || len(key) > maxPattern {
		return 0, tooLarge(def.line, "more than %d rules, those of templates counted", maxInstances)
	}
	env := map[string]*node{}
	for i, a := range args {
		env[def.params[i]] = a
	}
	id := r.reserve(def.name)
	r.ids[key] = id
	r.todo = append(r.todo, pendingRule{id, def, env})
	return id, nil
}

// key tells nodes apart by what they are.
func (n *node) key() string {
	switch n.kind {
	case nodeRule:
		return fmt.Sprintf("r%d", n.rule)
	case nodeTerminal:
		return fmt.Sprintf("t%d", n.term.id)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d,%d,%d(", n.kind, n.lo, n.hi)
	for _, k := range n.kids {
		b.WriteString(k.key())
		b.WriteByte(' ')
	}
	return b.String() + ")"
}

func (r *resolver) node(e *expr, env map[string]*node) (*node, error) {
	if err := r.spend(1); err != nil {
		return nil, err
	}
	if arg := env[e.name]; arg != nil && (e.op == opRule || e.op == opTerminal) {
		return arg, nil
	}
	switch e.op {
	case opLiteral, opTerminal:
		return r.symbol(e)
	case opRule:
		args, err := r.nodes(e.kids, env)
		if err != nil {
			return nil, err
		}
		id, err := r.instance(r.src.rules[e.name], args)
		return &node{kind: nodeRule, rule: id}, err
	}
	kids, err := r.nodes(e.kids, env)
	switch {
	case err != nil:
		return nil, err
	case e.op == opRepeat:
		return repeat(kids[0], e.lo, e.hi), nil
	case e.op == opAlt:
		return alt(kids...), nil
	}
	return seq(kids...), nil
}

func (r *resolver) nodes(list []*expr, env map[string]*node) ([]*node, error) {
	var out []*node
	for _, e := range list {
		n, err := r.node(e, env)
		if err != nil {
			return nil, err
		}
		out = append(out, n)
	}
	return out, nil
}

// symbol is a terminal in a rule, with what may be ignored behind it.
func (r *resolver) symbol(e *expr) (*node, error) {
	pattern, err := r.pattern(e)
	if err != nil {
		return nil, err
	}
	t, err := r.terminal(pattern, e.line)
	if err != nil {
		return nil, err
	}
	n := &node{kind: nodeTerminal, term: t}
	switch {
	case r.ignored == nil:
		return n, nil
	case t.solid == nil:
		return empty, nil
	}
	n = seq(&node{kind: nodeTerminal, term: t.solid}, &node{kind: nodeTerminal, term: r.ignored})
	if t.all.MatchesEmpty() {
		return repeat(n, 0, 1), nil
	}
	return n, nil
}
