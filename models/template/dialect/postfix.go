package dialect

import (
	"slices"
	"strconv"
	"strings"
)

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

var operatorWords = []string{"and", "or", "not", "if", "else", "in", "is"}

// startsArgument tells whether the one argument of a test follows without
// parentheses.
func (p *parser) startsArgument() bool {
	switch t := p.peek(); t.kind {
	case tokString, tokInt, tokFloat:
		return true
	case tokName:
		return !slices.Contains(operatorWords, t.text)
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
