package dialect

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// parser reads the tokens of one tag by Jinja2's grammar and writes them in
// the library's, with every operation in parentheses: precedence is settled
// here. It panics with *Error; compile recovers.
type parser struct {
	c     *compiler
	toks  []token
	pos   int
	depth int
	// subst replaces names: loop variables that stand for parts of an item.
	subst map[string]string
}

func (p *parser) peek() token { return p.toks[min(p.pos, len(p.toks)-1)] }

func (p *parser) next() token {
	t := p.peek()
	p.pos++
	return t
}

func (p *parser) fail(format string, args ...any) { panic(fault(p.peek().line, format, args...)) }

func (p *parser) op(text string) bool { return p.accept(tokOp, text) }

func (p *parser) word(text string) bool { return p.accept(tokName, text) }

func (p *parser) accept(kind tokenKind, text string) bool {
	if p.peek().is(kind, text) {
		p.pos++
		return true
	}
	return false
}

func (p *parser) expect(op string) {
	if !p.op(op) {
		p.fail("expected %q, found %s", op, p.peek())
	}
}

func (p *parser) name() string {
	t := p.next()
	if t.kind != tokName {
		p.pos--
		p.fail("expected a name, found %s", t)
	}
	return t.text
}

func (p *parser) end() {
	if p.peek().kind != tokEnd {
		p.fail("unexpected %s", p.peek())
	}
}

func (p *parser) enter() {
	if p.depth++; p.depth > maxNesting {
		p.fail("expression is nested too deeply")
	}
}

// expression is a conditional expression.
func (p *parser) expression() string {
	p.enter()
	defer func() { p.depth-- }()
	e := p.or()
	for p.word("if") {
		cond := p.or()
		if !p.word("else") {
			e = "(" + e + " if " + cond + ")"
			continue
		}
		e = "(" + e + " if " + cond + " else " + p.expression() + ")"
	}
	return e
}

// tuple is an expression, or several with commas between them.
func (p *parser) tuple() string {
	e := p.expression()
	if !p.peek().is(tokOp, ",") {
		return e
	}
	items := []string{e}
	for p.op(",") && p.peek().kind != tokEnd {
		items = append(items, p.expression())
	}
	return "[" + strings.Join(items, ", ") + "]"
}

func (p *parser) or() string {
	e := p.and()
	for p.word("or") {
		e = "(" + e + " or " + p.and() + ")"
	}
	return e
}

func (p *parser) and() string {
	e := p.not()
	for p.word("and") {
		e = "(" + e + " and " + p.not() + ")"
	}
	return e
}

func (p *parser) not() string {
	if p.word("not") {
		p.enter()
		defer func() { p.depth-- }()
		return "(not " + p.not() + ")"
	}
	return p.compare()
}

var comparisons = []string{"==", "!=", "<", "<=", ">", ">="}

func (p *parser) compare() string {
	left := p.sum()
	whole := ""
	for {
		op := ""
		switch t := p.peek(); {
		case t.kind == tokOp && slices.Contains(comparisons, t.text), t.is(tokName, "in"):
			op = t.text
			p.pos++
		case t.is(tokName, "not") && p.pos+1 < len(p.toks) && p.toks[p.pos+1].is(tokName, "in"):
			op = "not in"
			p.pos += 2
		default:
			if whole == "" {
				return left
			}
			return whole
		}
		right := p.sum()
		one := "(" + left + " " + op + " " + right + ")"
		if whole == "" {
			whole = one
		} else {
			whole = "(" + whole + " and " + one + ")"
		}
		left = right
	}
}

func (p *parser) sum() string {
	e := p.concat()
	for {
		switch {
		case p.op("+"):
			p.c.grows = true
			e = "(" + e + " + " + p.concat() + ")"
		case p.op("-"):
			e = "(" + e + " - " + p.concat() + ")"
		default:
			return e
		}
	}
}

func (p *parser) concat() string {
	e := p.product()
	for p.op("~") {
		p.c.grows = true
		e = "(" + e + " ~ " + p.product() + ")"
	}
	return e
}

func (p *parser) product() string {
	e := p.power()
	for {
		switch {
		case p.op("*"):
			e = p.c.call("mul", e, p.power())
		case p.op("%"):
			e = p.c.call("mod", e, p.power())
		case p.op("//"):
			e = p.c.call("floordiv", e, p.power())
		case p.op("/"):
			e = "(" + e + " / " + p.power() + ")"
		default:
			return e
		}
	}
}

func (p *parser) power() string {
	e := p.unary(true)
	for p.op("**") {
		e = p.c.call("pow", e, p.unary(true))
	}
	return e
}

func (p *parser) unary(filters bool) string {
	p.enter()
	defer func() { p.depth-- }()
	var e string
	switch {
	case p.op("-"):
		e = "(-" + p.unary(false) + ")"
	case p.op("+"):
		e = "(+" + p.unary(false) + ")"
	default:
		e = p.primary()
	}
	e = p.postfix(e)
	if filters {
		e = p.filters(e)
	}
	return e
}

func (p *parser) primary() string {
	t := p.next()
	switch t.kind {
	case tokName:
		return p.variable(t.text)
	case tokInt:
		return t.text
	case tokFloat:
		return plainFloat(t.text)
	case tokString:
		parts := []string{t.text}
		for p.peek().kind == tokString {
			parts = append(parts, p.next().text)
		}
		return quoted(strings.Join(parts, ""))
	case tokOp:
		switch t.text {
		case "(":
			return p.parens()
		case "[":
			return "[" + strings.Join(p.list("]"), ", ") + "]"
		case "{":
			return p.dict()
		}
	}
	p.pos--
	p.fail("unexpected %s", t)
	return ""
}

// plainFloat writes a number without an exponent, which the library does not
// read.
func plainFloat(text string) string {
	f, _ := strconv.ParseFloat(text, 64) // out of range: infinite
	if f > math.MaxFloat64 {
		f = math.MaxFloat64
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

func (p *parser) variable(name string) string {
	switch name {
	case "none", "None":
		return "none"
	case "true", "True":
		return "true"
	case "false", "False":
		return "false"
	}
	if s, ok := p.subst[name]; ok {
		return s
	}
	p.c.names[name] = true
	return name
}

// quoted writes a string so that the library reads the same one.
func quoted(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}

func (p *parser) parens() string {
	if p.op(")") {
		return "[]"
	}
	e := p.expression()
	if p.op(")") {
		return "(" + e + ")"
	}
	p.expect(",")
	return "[" + strings.Join(append([]string{e}, p.list(")")...), ", ") + "]"
}

// list reads expressions up to the closing bracket.
func (p *parser) list(closing string) []string {
	var items []string
	for !p.op(closing) {
		items = append(items, p.expression())
		if !p.op(",") {
			p.expect(closing)
			break
		}
	}
	return items
}

func (p *parser) dict() string {
	var pairs []string
	for !p.op("}") {
		k := p.expression()
		p.expect(":")
		pairs = append(pairs, k+": "+p.expression())
		if !p.op(",") {
			p.expect("}")
			break
		}
	}
	return "{ " + strings.Join(pairs, ", ") + " }"
}
