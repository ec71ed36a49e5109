package lark

// definition is a rule or a terminal.
type definition struct {
	name   string
	params []string // of a template
	body   *expr
	line   int
}

// source is a grammar as it was written.
type source struct {
	rules, terminals map[string]*definition
	all              []*definition // in order
	ignored          []*expr
}

type parser struct {
	tokens []token
	at     int
	depth  int
	out    source
}

func parse(text string) (*source, error) {
	tokens, err := scan(text)
	if err != nil {
		return nil, err
	}
	p := &parser{tokens: tokens, out: source{rules: map[string]*definition{}, terminals: map[string]*definition{}}}
	for p.peek().kind != tokEnd {
		t := p.peek()
		switch {
		case !t.first:
			err = fault(t.line, "unexpected %s", t.shown())
		case t.kind == tokDirective:
			err = p.directive()
		case t.kind == tokRule || t.kind == tokTerminal:
			err = p.definition()
		default:
			err = fault(t.line, "expected a definition, got %s", t.shown())
		}
		if err != nil {
			return nil, err
		}
	}
	return &p.out, p.out.check()
}

func (p *parser) peek() token { return p.tokens[p.at] }

// advance takes a token; the end stays.
func (p *parser) advance() token {
	t := p.tokens[p.at]
	if t.kind != tokEnd {
		p.at++
	}
	return t
}

func (p *parser) take(sign string) bool {
	if !p.peek().is(sign) {
		return false
	}
	p.at++
	return true
}

func (p *parser) want(sign string) error {
	if t := p.peek(); !p.take(sign) {
		return fault(t.line, "expected %s, got %s", sign, t.shown())
	}
	return nil
}

// atDefinition says whether a definition begins here: a name at the beginning
// of a line, with a colon behind it and its parameters and priority.
func (p *parser) atDefinition() bool {
	if !p.peek().first {
		return false
	}
	at := p.at + 1
	if p.tokens[at].is("{") {
		for at < len(p.tokens)-1 && !p.tokens[at].is("}") {
			if p.tokens[at].is(":") {
				return false
			}
			at++
		}
		at = min(at+1, len(p.tokens)-1)
	}
	return p.tokens[at].is(":") || p.tokens[at].is(".") || p.tokens[at].is("[")
}

func (p *parser) definition() error {
	name := p.advance()
	d := &definition{name: name.text, line: name.line}
	if p.peek().is("{") {
		if err := p.parameters(d); err != nil {
			return err
		}
	}
	if t := p.peek(); t.is("[") {
		return beyond(t.line, "options of a rule are not held")
	}
	if p.take(".") {
		if t := p.advance(); t.kind != tokNumber {
			return fault(t.line, "expected a priority, got %s", t.shown())
		}
	}
	if err := p.want(":"); err != nil {
		return err
	}
	var err error
	if d.body, err = p.alternatives(); err != nil {
		return err
	}
	set := p.out.rules
	if name.kind == tokTerminal {
		set = p.out.terminals
		if len(d.params) > 0 {
			return beyond(d.line, "the terminal %s is a template", clip(d.name))
		}
	}
	return p.out.define(set, d)
}

func (s *source) define(set map[string]*definition, d *definition) error {
	if set[d.name] != nil {
		return fault(d.line, "%s is defined twice", clip(d.name))
	}
	set[d.name] = d
	s.all = append(s.all, d)
	return nil
}

func (p *parser) parameters(d *definition) error {
	p.advance()
	for {
		t := p.advance()
		if t.kind != tokRule && t.kind != tokTerminal {
			return fault(t.line, "expected a parameter, got %s", t.shown())
		}
		d.params = append(d.params, t.text)
		if !p.take(",") {
			return p.want("}")
		}
	}
}

func (p *parser) directive() error {
	t := p.advance()
	switch t.text {
	case "ignore":
		e, err := p.alternatives()
		p.out.ignored = append(p.out.ignored, e)
		return err
	case "import":
		return p.imports()
	case "":
		return fault(t.line, "%% without a name")
	}
	return beyond(t.line, "%s is not held", t.shown())
}

// imports reads %import common.NAME -> OTHER or %import common (NAME, OTHER).
func (p *parser) imports() error {
	t := p.advance()
	if t.kind != tokRule || t.text != "common" {
		return beyond(t.line, "only terminals of common are imported, not of %s", t.shown())
	}
	if p.take("(") {
		for {
			name := p.advance()
			if err := p.importOne(name, name); err != nil {
				return err
			}
			if !p.take(",") {
				return p.want(")")
			}
		}
	}
	if err := p.want("."); err != nil {
		return err
	}
	name := p.advance()
	as := name
	if p.take("->") {
		as = p.advance()
	}
	return p.importOne(name, as)
}

func (p *parser) importOne(name, as token) error {
	pattern, ok := common[name.text]
	switch {
	case !ok || name.kind != tokTerminal:
		return fault(name.line, "common has no %s", name.shown())
	case as.kind != tokTerminal:
		return fault(as.line, "%s is not the name of a terminal", as.shown())
	}
	body := &expr{op: opLiteral, pattern: pattern, line: name.line}
	return p.out.define(p.out.terminals, &definition{name: as.text, body: body, line: name.line})
}

// check looks for names that stand for nothing, used or not.
func (s *source) check() error {
	if d := s.rules["start"]; d == nil || len(d.params) > 0 {
		return fault(0, "there is no rule start")
	}
	for _, d := range s.all {
		params := map[string]bool{}
		for _, name := range d.params {
			params[name] = true
		}
		if err := s.checkNames(d.body, params); err != nil {
			return err
		}
	}
	for _, e := range s.ignored {
		if err := s.checkNames(e, nil); err != nil {
			return err
		}
	}
	return nil
}

func (s *source) checkNames(e *expr, params map[string]bool) error {
	switch {
	case e.op == opTerminal && s.terminals[e.name] == nil && !params[e.name]:
		return fault(e.line, "the terminal %s is not defined", clip(e.name))
	case e.op == opRule && params[e.name]:
		if len(e.kids) > 0 {
			return beyond(e.line, "the parameter %s is used as a template", clip(e.name))
		}
	case e.op == opRule && s.rules[e.name] == nil:
		return fault(e.line, "the rule %s is not defined", clip(e.name))
	case e.op == opRule && len(s.rules[e.name].params) != len(e.kids):
		return fault(e.line, "the rule %s takes %d arguments, not %d", clip(e.name), len(s.rules[e.name].params), len(e.kids))
	}
	for _, kid := range e.kids {
		if err := s.checkNames(kid, params); err != nil {
			return err
		}
	}
	return nil
}
