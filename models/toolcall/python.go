package toolcall

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"
)

// python reads a call whose object is written as a Python literal: it hands what
// it reads to the reader of JSON objects, translated byte by byte.
type python struct {
	*object
	quote   byte   // of the string being read; 0 outside
	escaped bool   // an escape is being read
	esc     []byte // of it, without its backslash
	word    string // of a constant being read
}

func (p *python) reset(o *object) { *p = python{object: o, esc: p.esc[:0]} }

func (p *python) step(c byte) status {
	switch {
	case p.escaped:
		return p.escape(c)
	case p.quote == 0:
		return p.outside(c)
	case c == p.quote:
		p.quote = 0
		return p.object.step('"')
	case c == '\\':
		p.escaped, p.esc = true, p.esc[:0]
		return more
	case c == '"':
		return p.feed('\\', '"')
	}
	return p.object.step(c)
}

func (p *python) feed(text ...byte) status {
	for _, c := range text {
		if st := p.object.step(c); st != more {
			return st
		}
	}
	return more
}

// startsLiteral says that outside of strings a byte begins what Python writes and
// JSON does not.
func startsLiteral(c byte) bool { return strings.IndexByte("'TFN", c) >= 0 }

// pending is a constant that is not complete.
func (p *python) pending() int { return len(p.word) }

// outside reads what stands around strings.
func (p *python) outside(c byte) status {
	if c == '\'' || c == '"' {
		st := p.object.step('"')
		if st != broken {
			p.quote = c
		}
		return st
	}
	if p.word == "" && !startsLiteral(c) {
		return p.object.step(c)
	}
	word := p.word + string(rune(c))
	at := slices.IndexFunc(pythonConstants, func(s string) bool { return strings.HasPrefix(s, word) })
	if at < 0 {
		return broken
	}
	if word != pythonConstants[at] {
		p.word = word
		return more
	}
	st := p.feed([]byte(jsonConstants[at])...)
	if st != broken {
		p.word = ""
	}
	return st
}

// escape reads on in an escape. One that Python does not know stays as it is
// written.
func (p *python) escape(c byte) status {
	p.esc = append(p.esc, c)
	kind := p.esc[0]
	digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[kind]
	r, ok := rune(0), true
	switch i := strings.IndexByte(simpleEscapes, kind); {
	case kind == '\n': // the line goes on
		p.escaped = false
		return more
	case i >= 0:
		r = rune(escapedAs[i])
	case digits == 0:
		ok = false
	case !isHex(c) && len(p.esc) > 1:
		ok = false
	case len(p.esc) <= digits:
		return more
	default:
		r, ok = hexRune(p.esc, digits)
	}
	text := p.esc
	p.escaped = false
	switch {
	case !ok:
		st := p.feed('\\', '\\')
		for _, c := range bytes.Clone(text) {
			if st == more {
				st = p.step(c)
			}
		}
		return st
	case kind == 'u': // of a pair, maybe
		return p.feed(append([]byte{'\\'}, text...)...)
	}
	return p.feed(appendString(nil, utf8.AppendRune(nil, r)...)...)
}

// finish adds closing brackets that are missing, but no end of a string.
func (p *python) finish() bool {
	return p.quote == 0 && p.word == "" && p.object.finish()
}
