package dialect

import (
	"strconv"
	"strings"
)

// targets reads the variables of an assignment or a loop.
func (p *parser) targets() []string {
	paren := p.op("(")
	names := []string{p.name()}
	for p.op(",") {
		if p.peek().kind != tokName {
			break
		}
		names = append(names, p.name())
	}
	if paren {
		p.expect(")")
	}
	return names
}

// loop writes a for block. Where the library can't take the targets apart
// itself, an item gets a name of its own, and the targets are set from it.
func (c *compiler) loop(p *parser, line int) {
	targets := p.targets()
	if !p.word("in") {
		p.fail("expected \"in\", found %s", p.peek())
	}
	iter := p.or()
	if p.peek().is(tokOp, ",") {
		p.fail("a loop over several values is not supported")
	}
	b := &block{keyword: "for", line: line, targets: map[string]bool{}}
	head := strings.Join(targets, ", ")
	for _, t := range targets {
		b.targets[t] = true
		c.names[t] = true
	}
	filtered := p.word("if")
	if len(targets) > 2 || filtered && len(targets) > 1 {
		item := c.fresh()
		p.subst = map[string]string{}
		for i, t := range targets {
			part := item + "[" + strconv.Itoa(i) + "]"
			p.subst[t] = part
			b.first += "{%set " + t + " = " + part + "%}"
		}
		head = item
	}
	b.head = "{%for " + head + " in (" + c.at(line) + c.call("iter", iter) + ")"
	if filtered {
		b.head += " if (" + p.expression() + ")"
	}
	b.head += " %}"
	if p.peek().is(tokName, "recursive") {
		p.fail("recursive loops are not supported")
	}
	c.open(b)
}

func (c *compiler) set(p *parser, line int) {
	targets := p.targets()
	if len(targets) == 1 && p.op(".") {
		attr := p.name()
		p.expect("=")
		c.write("{%set ", targets[0], ".", attr, " = ", c.value(p, line), "%}")
		return
	}
	if p.op("=") {
		c.assign(targets, c.value(p, line))
		return
	}
	if len(targets) != 1 {
		p.fail("expected \"=\", found %s", p.peek())
	}
	name := targets[0]
	c.assigned(name)
	b := &block{keyword: "set", line: line, head: "{%set " + name + "%}"}
	if p.peek().is(tokOp, "|") {
		b.after = "{%set " + name + " = " + c.at(line) + p.filters(name) + "%}"
	}
	c.open(b)
}

func (c *compiler) assign(targets []string, value string) {
	for _, t := range targets {
		c.assigned(t)
	}
	if len(targets) == 1 {
		c.write("{%set ", targets[0], " = ", value, "%}")
		return
	}
	whole := c.fresh()
	c.write("{%set ", whole, " = ", value, "%}")
	for i, t := range targets {
		c.write("{%set ", t, " = ", whole, "[", strconv.Itoa(i), "]%}")
	}
}

// value writes the right side of an assignment. What may have grown is
// checked, so that repeated doubling ends.
func (c *compiler) value(p *parser, line int) string {
	c.grows = false
	e := p.tuple()
	if c.grows {
		e = c.call("check", e)
	}
	return c.at(line) + e
}

// macro writes a macro. Defaults that the library's reader would take apart
// wrongly are computed before it.
func (c *compiler) macro(p *parser, line int) {
	name := p.name()
	c.assigned(name)
	p.expect("(")
	b := &block{keyword: "macro", line: line}
	var params []string
	for !p.op(")") {
		param := p.name()
		if p.op("=") {
			value := c.fresh()
			b.before += "{%set " + value + " = (" + p.expression() + ")%}"
			param += "=" + value
		}
		params = append(params, param)
		if !p.op(",") {
			p.expect(")")
			break
		}
	}
	b.head = "{%macro " + name + "(" + strings.Join(params, ", ") + ")%}"
	b.first = "{{" + c.call("enter") + "}}"
	c.open(b)
}

func (c *compiler) callBlock(p *parser, line int) {
	args := ""
	if p.op("(") {
		var names []string
		for !p.op(")") {
			names = append(names, p.name())
			if !p.op(",") {
				p.expect(")")
				break
			}
		}
		args = "(" + strings.Join(names, ", ") + ")"
	}
	c.open(&block{keyword: "call", line: line, head: "{%call" + args + " " + p.postfix(p.primary()) + "%}"})
}

// filterBlock keeps the block's text in a variable and puts the filtered one
// out.
func (c *compiler) filterBlock(p *parser, line int) {
	name := c.fresh()
	e := p.filter(name)
	for p.op("|") {
		e = p.filter(e)
	}
	c.open(&block{
		keyword: "filter", line: line, head: "{%set " + name + "%}",
		after: "{{" + c.at(line) + c.call("out", e) + " }}",
	})
}
