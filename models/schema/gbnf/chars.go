package gbnf

import (
	"strconv"
	"unicode/utf8"
)

func (p *parser) class() (element, error) {
	p.pos++
	e := element{kind: charClass}
	if p.peek() == '^' {
		e.negate = true
		p.pos++
	}
	for p.peek() != ']' {
		lo, err := p.char()
		if err != nil {
			return e, err
		}
		hi := lo
		if p.peek() == '-' && p.pos+1 < len(p.src) && p.src[p.pos+1] != ']' {
			p.pos++
			if hi, err = p.char(); err != nil {
				return e, err
			}
		}
		if hi < lo {
			return e, p.errorf("empty range")
		}
		e.ranges = append(e.ranges, runeRange{lo, hi})
	}
	p.pos++
	if len(e.ranges) == 0 {
		return e, p.errorf("empty character class")
	}
	return e, nil
}

func (p *parser) char() (rune, error) {
	if p.pos >= len(p.src) {
		return 0, p.errorf("unexpected end")
	}
	if p.src[p.pos] != '\\' {
		r, n := utf8.DecodeRuneInString(p.src[p.pos:])
		if r == utf8.RuneError && n == 1 {
			return 0, p.errorf("invalid UTF-8")
		}
		p.pos += n
		return r, nil
	}
	p.pos++
	c := p.peek()
	p.pos++
	switch c {
	case 'x':
		return p.hex(2)
	case 'u':
		return p.hex(4)
	case 'U':
		return p.hex(8)
	case 't':
		return '\t', nil
	case 'r':
		return '\r', nil
	case 'n':
		return '\n', nil
	case '\\', '"', '[', ']':
		return rune(c), nil
	}
	p.pos -= 2
	return 0, p.errorf("unknown escape")
}

func (p *parser) hex(n int) (rune, error) {
	if p.pos+n > len(p.src) {
		return 0, p.errorf("expected %d hex digits", n)
	}
	v, err := strconv.ParseUint(p.src[p.pos:p.pos+n], 16, 32)
	if err != nil {
		return 0, p.errorf("expected %d hex digits", n)
	}
	p.pos += n
	return rune(v), nil
}
