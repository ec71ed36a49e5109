package lark

import (
	"strconv"
)

type op uint8

const (
	opSeq      op = iota // of kids; without any, the empty text
	opAlt                // of kids
	opRepeat             // lo to hi times the kid, hi < 0 meaning no bound
	opRule               // by name, a template with its arguments in kids
	opTerminal           // by name
	opLiteral            // a regular expression in RE2's syntax
)

// expr is the right side of a definition.
type expr struct {
	op      op
	kids    []*expr
	name    string
	pattern string
	lo, hi  int
	line    int
}

// Bounds on expressions.
const (
	maxNesting = 64
	maxRepeat  = 2000
)

// alternatives reads expansions up to what can't belong to them.
func (p *parser) alternatives() (*expr, error) {
	if p.depth++; p.depth > maxNesting {
		return nil, tooLarge(p.peek().line, "nested deeper than %d", maxNesting)
	}
	defer func() { p.depth-- }()
	e := &expr{op: opAlt, line: p.peek().line}
	for {
		kid, err := p.expansion()
		if err != nil {
			return nil, err
		}
		e.kids = append(e.kids, kid)
		if !p.take("|") {
			break
		}
	}
	if len(e.kids) == 1 {
		return e.kids[0], nil
	}
	return e, nil
}

// expansion reads one alternative, with its alias.
func (p *parser) expansion() (*expr, error) {
	e := &expr{op: opSeq, line: p.peek().line}
	for p.atomNext() {
		kid, err := p.repeated()
		if err != nil {
			return nil, err
		}
		e.kids = append(e.kids, kid)
	}
	if p.take("->") {
		if t := p.advance(); t.kind != tokRule && t.kind != tokTerminal {
			return nil, fault(t.line, "expected the name of an alias, got %s", t.shown())
		}
	}
	if len(e.kids) == 1 {
		return e.kids[0], nil
	}
	return e, nil
}

// atomNext says whether an expression goes on.
func (p *parser) atomNext() bool {
	switch t := p.peek(); t.kind {
	case tokRule, tokTerminal:
		return !p.atDefinition()
	case tokString, tokRegexp:
		return true
	case tokDirective:
		return !t.first
	case tokSign:
		return t.text == "(" || t.text == "["
	}
	return false
}

// repeated reads an atom and how often it stands.
func (p *parser) repeated() (*expr, error) {
	e, err := p.atom()
	if err != nil {
		return nil, err
	}
	t := p.peek()
	lo, hi := 0, -1
	switch {
	case p.take("*"):
	case p.take("+"):
		lo = 1
	case p.take("?"):
		hi = 1
	case p.take("~"):
		if lo, err = p.count(); err != nil {
			return nil, err
		}
		hi = lo
		if p.take("..") {
			hi, err = p.count()
		}
	case t.is("{"):
		p.advance()
		lo, hi, err = p.braces()
	default:
		return e, nil
	}
	if err != nil {
		return nil, err
	}
	if hi >= 0 && hi < lo {
		return nil, fault(t.line, "repetition from %d to %d is backwards", lo, hi)
	}
	return &expr{op: opRepeat, kids: []*expr{e}, lo: lo, hi: hi, line: t.line}, nil
}

func (p *parser) count() (int, error) {
	t := p.advance()
	n, err := strconv.Atoi(t.text)
	switch {
	case t.kind != tokNumber || err != nil || n < 0:
		return 0, fault(t.line, "expected a count, got %s", t.shown())
	case n > maxRepeat:
		return 0, tooLarge(t.line, "more than %d repetitions", maxRepeat)
	}
	return n, nil
}

// braces reads m}, m,}, ,n} or m,n}.
func (p *parser) braces() (lo, hi int, err error) {
	hi = -1
	if p.peek().kind == tokNumber {
		if lo, err = p.count(); err != nil {
			return 0, 0, err
		}
		if p.take("}") {
			return lo, lo, nil
		}
	}
	if err = p.want(","); err != nil {
		return 0, 0, err
	}
	if p.peek().kind == tokNumber {
		if hi, err = p.count(); err != nil {
			return 0, 0, err
		}
	}
	return lo, hi, p.want("}")
}

func (p *parser) atom() (*expr, error) {
	t := p.advance()
	switch {
	case t.is("("):
		e, err := p.alternatives()
		if err == nil {
			err = p.want(")")
		}
		return e, err
	case t.is("["):
		e, err := p.alternatives()
		if err == nil {
			err = p.want("]")
		}
		return &expr{op: opRepeat, kids: []*expr{e}, hi: 1, line: t.line}, err
	case t.kind == tokTerminal:
		return &expr{op: opTerminal, name: t.text, line: t.line}, nil
	case t.kind == tokRule:
		e := &expr{op: opRule, name: t.text, line: t.line}
		if p.peek().is("{") && p.tokens[p.at+1].kind != tokNumber && !p.tokens[p.at+1].is(",") {
			return e, p.arguments(e)
		}
		return e, nil
	case t.kind == tokRegexp:
		return regexpOf(t)
	case t.kind == tokString && p.take(".."):
		return rangeOf(t, p.advance())
	case t.kind == tokString:
		return stringOf(t)
	case t.kind == tokDirective:
		return nil, beyond(t.line, "%s is not held", t.shown())
	}
	return nil, fault(t.line, "unexpected %s", t.shown())
}

// arguments reads those of a template, from the brace on.
func (p *parser) arguments(e *expr) error {
	p.advance()
	for {
		arg, err := p.alternatives()
		if err != nil {
			return err
		}
		e.kids = append(e.kids, arg)
		if !p.take(",") {
			return p.want("}")
		}
	}
}
