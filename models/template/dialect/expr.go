package dialect

import (
	"math"
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

func (p *parser) compare() string {
	left := p.sum()
	whole := ""
	for {
		op := ""
		switch t := p.peek(); {
		case t.kind == tokOp && strings.Contains(" == != < <= > >= ", " "+t.text+" "), t.is(tokName, "in"):
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
		text := t.text
		for p.peek().kind == tokString {
			text += p.next().text
		}
		return quoted(text)
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

// postfix reads attributes, subscripts and calls.
func (p *parser) postfix(e string) string {
	for {
		switch {
		case p.op("."):
			if p.peek().kind == tokInt {
				e += "[" + p.next().text + "]"
				continue
			}
			attr := p.name()
			if methods[attr] != nil && p.op("(") {
				e = p.c.call("m_"+attr, append([]string{e}, p.args()...)...)
				continue
			}
			e += "." + attr
		case p.op("["):
			e += "[" + p.subscript()
		case p.op("("):
			e = p.callOf(e)
		default:
			return e
		}
	}
}

func (p *parser) subscript() string {
	var b strings.Builder
	for colons := 0; ; {
		switch {
		case p.op("]"):
			return b.String() + "]"
		case p.op(":"):
			if colons++; colons > 2 {
				p.fail("too many colons in a slice")
			}
			b.WriteByte(':')
		default:
			if b.Len() > 0 && !strings.HasSuffix(b.String(), ":") {
				p.fail("expected \"]\", found %s", p.peek())
			}
			b.WriteString(p.expression())
		}
	}
}

// callOf reads the arguments of a call. namespace and dict become literals,
// because the library loses the order of keyword arguments.
func (p *parser) callOf(e string) string {
	args := p.args()
	if e == "namespace" || e == "dict" {
		pairs := make([]string, len(args))
		for i, a := range args {
			key, value, ok := strings.Cut(a, "=")
			if !ok || !isIdentifier(key) {
				p.fail("%s takes keyword arguments only", e)
			}
			pairs[i] = quoted(key) + ": " + value
		}
		return "{ " + strings.Join(pairs, ", ") + " }"
	}
	return e + "(" + strings.Join(args, ", ") + ")"
}

func isIdentifier(s string) bool {
	for i, r := range s {
		if r != '_' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return s != ""
}

// args reads the arguments of a call up to its closing parenthesis.
func (p *parser) args() []string {
	var args []string
	for !p.op(")") {
		if p.peek().is(tokOp, "*") || p.peek().is(tokOp, "**") {
			p.fail("unpacked arguments are not supported")
		}
		if p.peek().kind == tokName && p.pos+1 < len(p.toks) && p.toks[p.pos+1].is(tokOp, "=") {
			key := p.name()
			p.pos++
			args = append(args, key+"="+p.expression())
		} else {
			args = append(args, p.expression())
		}
		if !p.op(",") {
			p.expect(")")
			break
		}
	}
	return args
}

// filters reads filters and tests, which bind closer than any operator.
func (p *parser) filters(e string) string {
	for {
		switch {
		case p.op("|"):
			e = p.filter(e)
		case p.word("is"):
			e = p.test(e)
		case p.op("("):
			e = p.callOf(e)
		default:
			return e
		}
	}
}

func (p *parser) filter(e string) string {
	name := p.name()
	if filters[name] == nil {
		p.pos--
		p.fail("unknown filter %q", name)
	}
	args := []string{e}
	if p.op("(") {
		args = append(args, p.args()...)
	}
	return p.c.call("f_"+name, args...)
}

func (p *parser) test(e string) string {
	negated := p.word("not")
	name := p.name()
	if tests[name] == nil {
		p.pos--
		p.fail("unknown test %q", name)
	}
	args := []string{e}
	if p.op("(") {
		args = append(args, p.args()...)
	} else if p.startsArgument() {
		args = append(args, p.postfix(p.primary()))
	}
	e = p.c.call("t_"+name, args...)
	if negated {
		e = "(not " + e + ")"
	}
	return e
}

// startsArgument tells whether the one argument of a test follows without
// parentheses.
func (p *parser) startsArgument() bool {
	switch t := p.peek(); t.kind {
	case tokString, tokInt, tokFloat:
		return true
	case tokName:
		return !strings.Contains(" and or not if else in is ", " "+t.text+" ")
	case tokOp:
		return t.text == "[" || t.text == "{"
	}
	return false
}

// call writes a call of one of this package's functions.
func (c *compiler) call(fn string, args ...string) string {
	c.used[fn] = true
	return prefix + fn + "(" + strings.Join(args, ", ") + ")"
}

// at writes a marker that records the line and counts the step; what follows
// it is what the tag evaluates.
func (c *compiler) at(line int) string { return c.call("at", strconv.Itoa(line)) + " or " }
