package gbnf

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// MaxRepetitions is llama.cpp's limit for the bounds in x{m,n}.
const MaxRepetitions = 2000

type elementKind uint8

const (
	ruleRef elementKind = iota
	charClass
)

type runeRange struct{ lo, hi rune }

// element is one step of an alternative: a rule or one character.
type element struct {
	kind   elementKind
	rule   int
	ranges []runeRange
	negate bool
}

func (e *element) matches(r rune) bool {
	for _, x := range e.ranges {
		if x.lo <= r && r <= x.hi {
			return !e.negate
		}
	}
	return e.negate
}

// Grammar is a parsed grammar; repetitions and groups are rules of their own,
// as they are in llama.cpp.
type Grammar struct {
	rules [][][]element // rule → alternatives → elements
	names []string
	root  int
}

// Rules is the number of rules, the synthesized ones included.
func (g *Grammar) Rules() int { return len(g.rules) }

type parser struct {
	src     string
	pos     int
	ids     map[string]int
	names   []string
	rules   [][][]element
	defined []bool
}

// Parse reads a grammar that has a rule named root.
func Parse(src string) (*Grammar, error) {
	p := &parser{src: src, ids: map[string]int{}}
	p.space(true)
	for p.pos < len(p.src) {
		if err := p.rule(); err != nil {
			return nil, err
		}
	}
	for i, ok := range p.defined {
		if !ok {
			return nil, fmt.Errorf("undefined rule %q", p.names[i])
		}
	}
	root, ok := p.ids["root"]
	if !ok {
		return nil, fmt.Errorf("no rule named root")
	}
	g := &Grammar{rules: p.rules, names: p.names, root: root}
	return g, g.checkLeftRecursion()
}

func (p *parser) errorf(format string, args ...any) error {
	return fmt.Errorf("%s at byte %d: %.40q", fmt.Sprintf(format, args...), p.pos, p.src[p.pos:])
}

func (p *parser) peek() byte {
	if p.pos < len(p.src) {
		return p.src[p.pos]
	}
	return 0
}

func (p *parser) space(newlines bool) {
	for p.pos < len(p.src) {
		switch c := p.src[p.pos]; {
		case c == '#':
			for p.pos < len(p.src) && p.src[p.pos] != '\n' {
				p.pos++
			}
		case c == ' ' || c == '\t' || newlines && (c == '\n' || c == '\r'):
			p.pos++
		default:
			return
		}
	}
}

func isWord(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '-' || '0' <= c && c <= '9'
}

func (p *parser) name() (string, error) {
	start := p.pos
	for isWord(p.peek()) {
		p.pos++
	}
	if p.pos == start {
		return "", p.errorf("expected a name")
	}
	return p.src[start:p.pos], nil
}

func (p *parser) id(name string) int {
	if id, ok := p.ids[name]; ok {
		return id
	}
	id := p.fresh(name)
	p.ids[name] = id
	return id
}

func (p *parser) fresh(name string) int {
	p.names = append(p.names, name)
	p.rules = append(p.rules, nil)
	p.defined = append(p.defined, false)
	return len(p.rules) - 1
}

func (p *parser) define(id int, alternatives [][]element) {
	p.rules[id], p.defined[id] = alternatives, true
}

func (p *parser) rule() error {
	name, err := p.name()
	if err != nil {
		return err
	}
	id := p.id(name)
	if p.defined[id] {
		return p.errorf("rule %q is defined twice", name)
	}
	p.space(false)
	if !strings.HasPrefix(p.src[p.pos:], "::=") {
		return p.errorf("expected ::=")
	}
	p.pos += 3
	p.space(true)
	alternatives, err := p.alternatives(name, false)
	if err != nil {
		return err
	}
	p.define(id, alternatives)
	if c := p.peek(); p.pos < len(p.src) && c != '\n' && c != '\r' {
		return p.errorf("expected the end of rule %q", name)
	}
	p.space(true)
	return nil
}

func (p *parser) alternatives(name string, nested bool) ([][]element, error) {
	var all [][]element
	for {
		seq, err := p.sequence(name, nested)
		if err != nil {
			return nil, err
		}
		all = append(all, seq)
		if p.peek() != '|' {
			return all, nil
		}
		p.pos++
		p.space(true)
	}
}

func (p *parser) sequence(name string, nested bool) ([]element, error) {
	var seq []element
	last := 0
	for p.pos < len(p.src) {
		switch c := p.peek(); {
		case c == '"':
			last = len(seq)
			p.pos++
			for p.peek() != '"' {
				r, err := p.char()
				if err != nil {
					return nil, err
				}
				seq = append(seq, element{kind: charClass, ranges: []runeRange{{r, r}}})
			}
			p.pos++
		case c == '[':
			last = len(seq)
			e, err := p.class()
			if err != nil {
				return nil, err
			}
			seq = append(seq, e)
		case c == '.':
			last = len(seq)
			p.pos++
			seq = append(seq, element{kind: charClass, negate: true})
		case c == '(':
			last = len(seq)
			p.pos++
			p.space(true)
			id := p.fresh(name + "-group")
			alternatives, err := p.alternatives(name, true)
			if err != nil {
				return nil, err
			}
			p.define(id, alternatives)
			if p.peek() != ')' {
				return nil, p.errorf("expected )")
			}
			p.pos++
			seq = append(seq, element{kind: ruleRef, rule: id})
		case c == '*' || c == '+' || c == '?' || c == '{':
			lo, hi, err := p.bounds()
			if err != nil {
				return nil, err
			}
			if last == len(seq) {
				return nil, p.errorf("nothing to repeat")
			}
			seq = p.repeat(name, seq, last, lo, hi)
		case isWord(c):
			last = len(seq)
			ref, err := p.name()
			if err != nil {
				return nil, err
			}
			seq = append(seq, element{kind: ruleRef, rule: p.id(ref)})
		default:
			return seq, nil
		}
		p.space(nested)
	}
	return seq, nil
}

// bounds reads *, +, ?, {m}, {m,} or {m,n}; hi is -1 for no upper bound.
func (p *parser) bounds() (lo, hi int, err error) {
	c := p.peek()
	p.pos++
	switch c {
	case '*':
		return 0, -1, nil
	case '+':
		return 1, -1, nil
	case '?':
		return 0, 1, nil
	}
	end := strings.IndexByte(p.src[p.pos:], '}')
	if end < 0 {
		return 0, 0, p.errorf("expected }")
	}
	text := p.src[p.pos : p.pos+end]
	p.pos += end + 1
	a, b, comma := strings.Cut(text, ",")
	if lo, err = strconv.Atoi(strings.TrimSpace(a)); err != nil {
		return 0, 0, p.errorf("bad repetition {%s}", text)
	}
	switch b = strings.TrimSpace(b); {
	case !comma:
		hi = lo
	case b == "":
		hi = -1
	default:
		if hi, err = strconv.Atoi(b); err != nil || hi < lo {
			return 0, 0, p.errorf("bad repetition {%s}", text)
		}
	}
	if lo > MaxRepetitions || hi > MaxRepetitions {
		return 0, 0, p.errorf("repetition {%s} exceeds %d", text, MaxRepetitions)
	}
	return lo, hi, nil
}

// repeat rewrites the elements from last on as llama.cpp does: copies for the
// lower bound, a chain of optional rules for the rest.
func (p *parser) repeat(name string, seq []element, last, lo, hi int) []element {
	unit := append([]element(nil), seq[last:]...)
	seq = seq[:last]
	for range lo {
		seq = append(seq, unit...)
	}
	if hi < 0 {
		id := p.fresh(name + "-star")
		p.define(id, [][]element{append(slices.Clip(unit), element{kind: ruleRef, rule: id}), nil})
		return append(seq, element{kind: ruleRef, rule: id})
	}
	prev := -1
	for range hi - lo {
		id := p.fresh(name + "-opt")
		body := slices.Clip(unit)
		if prev >= 0 {
			body = append(body, element{kind: ruleRef, rule: prev})
		}
		p.define(id, [][]element{body, nil})
		prev = id
	}
	if prev >= 0 {
		seq = append(seq, element{kind: ruleRef, rule: prev})
	}
	return seq
}
