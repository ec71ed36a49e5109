package toolcall

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// literals translates key-value pairs of Python or JavaScript literals to JSON.
type literals struct {
	in    []byte
	at    int
	out   []byte
	quote string // a marker around strings without escapes
}

// wordEnds are the bytes that end a word.
const wordEnds = ",()[]{}'\"<> \t\r\n"

// translate makes the inside of a JSON object of arguments, with its first brace
// and without its last. ok says that nothing in them is wrong; whole, that they
// end behind an argument. What is not whole is translated as far as it is sure.
func translate(raw []byte, b *Block) (args []byte, ok, whole bool) {
	l := &literals{in: raw, out: []byte{'{'}, quote: b.Quote}
	assign := byte('=')
	if b.closing() == '}' {
		assign = ':'
	}
	ok = l.pairs(assign, 0)
	return l.out, ok && l.at >= len(l.in), ok && !l.short()
}

// short says that the input ended where more was needed; at is then beyond it.
func (l *literals) short() bool { return l.at > len(l.in) }

// ended notes that the input is too short. It is no mistake.
func (l *literals) ended() bool {
	l.at = len(l.in) + 1
	return true
}

func (l *literals) space() {
	for l.at < len(l.in) && isSpace(l.in[l.at]) {
		l.at++
	}
}

// take passes over c, behind white space, if it stands there.
func (l *literals) take(c byte) bool {
	l.space()
	if l.at < len(l.in) && l.in[l.at] == c {
		l.at++
		return true
	}
	return false
}

// pairs reads key-value pairs up to shut, or with shut 0 to the end of the input.
func (l *literals) pairs(assign, shut byte) bool {
	for first := true; ; first = false {
		l.space()
		switch {
		case l.at >= len(l.in):
			return shut == 0 || l.ended()
		case shut != 0 && l.take(shut):
			l.out = append(l.out, shut)
			return true
		case !first && !l.take(','):
			return false
		}
		l.space()
		if l.at >= len(l.in) || l.in[l.at] == shut { // a comma at the end
			continue
		}
		mark := len(l.out)
		if !first {
			l.out = append(l.out, ',')
		}
		if !l.key(assign) {
			return false
		}
		if l.short() {
			l.out = l.out[:mark]
			return true
		}
		before := len(l.out)
		if !l.value() {
			return false
		}
		if l.short() {
			if len(l.out) == before {
				l.out = l.out[:mark]
			}
			return true
		}
	}
}

func (l *literals) key(assign byte) bool {
	if c := l.in[l.at]; c == '\'' || c == '"' {
		if !l.str(string(c), true) || l.short() {
			return l.short()
		}
	} else {
		from := l.at
		for l.at < len(l.in) && strings.IndexByte("=:"+wordEnds, l.in[l.at]) < 0 {
			l.at++
		}
		if l.at == len(l.in) {
			return l.ended()
		}
		if l.at == from {
			return false
		}
		l.out = append(appendString(append(l.out, '"'), l.in[from:l.at]...), '"')
	}
	l.space()
	if l.at >= len(l.in) {
		return l.ended()
	}
	l.out = append(l.out, ':')
	return l.take(assign)
}

func (l *literals) value() bool {
	l.space()
	if l.at >= len(l.in) {
		return l.ended()
	}
	rest := l.in[l.at:]
	switch c := rest[0]; {
	case l.quote != "" && bytes.HasPrefix(rest, []byte(l.quote)):
		return l.str(l.quote, false)
	case c == '\'' || c == '"':
		return l.str(string(c), true)
	case c == '{':
		l.at++
		l.out = append(l.out, '{')
		return l.pairs(':', '}')
	case c == '[':
		l.at++
		l.out = append(l.out, '[')
		return l.items()
	}
	return l.word()
}

func (l *literals) items() bool {
	for first := true; ; first = false {
		l.space()
		switch {
		case l.at >= len(l.in):
			return l.ended()
		case l.take(']'):
			l.out = append(l.out, ']')
			return true
		case !first && !l.take(','):
			return false
		}
		l.space()
		if l.at < len(l.in) && l.in[l.at] == ']' {
			continue
		}
		if !first {
			l.out = append(l.out, ',')
		}
		if !l.value() || l.short() {
			return l.short()
		}
	}
}

// word is a number, a constant or, where strings have a marker, a bare word.
func (l *literals) word() bool {
	from := l.at
	for l.at < len(l.in) && strings.IndexByte(wordEnds, l.in[l.at]) < 0 {
		l.at++
	}
	w := asConstant(l.in[from:l.at])
	if len(w) == 0 {
		return false
	}
	if json.Valid(w) {
		if n, err := strconv.ParseFloat(string(w), 64); err != nil && n != 0 { // too large
			return false
		}
		l.out = append(l.out, w...)
		return true
	}
	if l.quote == "" {
		return false
	}
	l.out = append(appendString(append(l.out, '"'), w...), '"')
	return true
}

// str reads a string up to its quotation mark.
func (l *literals) str(quote string, escapes bool) bool {
	l.at += len(quote)
	l.out = append(l.out, '"')
	for l.at < len(l.in) {
		rest := l.in[l.at:]
		if bytes.HasPrefix(rest, []byte(quote)) {
			l.at += len(quote)
			l.out = append(l.out, '"')
			return true
		}
		if escapes && rest[0] == '\\' {
			if len(rest) < 2 {
				break
			}
			l.escape(rest[1:])
			continue
		}
		l.out = appendString(l.out, rest[0])
		l.at++
	}
	return l.ended()
}

const (
	simpleEscapes = "nrtbfav0\\'\"/"
	escapedAs     = "\n\r\t\b\f\a\v\x00\\'\"/"
)

// escape translates an escape; one that the language does not know stays as it
// is written.
func (l *literals) escape(rest []byte) {
	if i := strings.IndexByte(simpleEscapes, rest[0]); i >= 0 {
		l.out = appendString(l.out, escapedAs[i])
		l.at += 2
		return
	}
	if rest[0] == '\n' { // the line goes on
		l.at += 2
		return
	}
	digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[rest[0]]
	r, ok := hexRune(rest, digits)
	if !ok {
		l.out = append(l.out, `\\`...)
		l.at++
		return
	}
	l.at += 2 + digits
	if utf16.IsSurrogate(r) {
		if next := l.in[l.at:]; len(next) > 1 && next[0] == '\\' && next[1] == 'u' {
			if low, ok := hexRune(next[1:], 4); ok && utf16.DecodeRune(r, low) != utf8.RuneError {
				r = utf16.DecodeRune(r, low)
				l.at += 6
			}
		}
	}
	l.out = appendString(l.out, utf8.AppendRune(nil, r)...)
}

func hexRune(rest []byte, digits int) (rune, bool) {
	if digits == 0 || len(rest) <= digits {
		return 0, false
	}
	n, err := strconv.ParseUint(string(rest[1:1+digits]), 16, 32)
	return rune(n), err == nil && n <= utf8.MaxRune
}
