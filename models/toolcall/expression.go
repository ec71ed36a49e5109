package toolcall

import (
	"bytes"
	"slices"
)

// expression reads the arguments of a call that is written as one in a
// programming language, name(key='value', …), up to its closing bracket. The
// whole is translated at once: before that, an expression that cannot be a call
// would have been announced as one. Only an argument that is a long string becomes
// available while it is read, with all that stands before it.
type expression struct {
	written
	b     *Block
	raw   []byte // behind the opening bracket
	stack []byte // brackets that have to come
	quote string // what ends the string being read
	from  int    // where in raw that string, or the byte behind the last one, begins
	esc   bool

	told    int  // length of the arguments that have become available
	upto    int  // how far they stand in raw
	strings int  // how many were long strings
	streams bool // so is the one being read
	out     []byte
}

// longString is the length from which on a string is given out while it is read,
// in bytes; maxStreamed bounds how many of them, since each costs a translation of
// what stands before it.
const (
	longString  = 200
	maxStreamed = 32
)

func (e *expression) reset(b *Block) {
	*e = expression{
		written: written{args: e.args[:0]}, b: b, raw: e.raw[:0], stack: append(e.stack[:0], b.closing()), out: e.out[:0],
	}
}

// closing is the bracket that ends the arguments.
func (b *Block) closing() byte {
	if b.NameEnd == "{" {
		return '}'
	}
	return ')'
}

func (e *expression) closesList() bool { return false }

func (e *expression) step(c byte) status {
	if e.quote != "" {
		e.raw = append(e.raw, c)
		switch {
		case e.esc:
			e.esc = false
		case c == '\\' && len(e.quote) == 1:
			e.esc = true
		case bytes.HasSuffix(e.raw[e.from:], []byte(e.quote)):
			e.quote, e.from, e.streams = "", len(e.raw), false
		case len(e.raw)-e.from == longString:
			e.beginString()
		}
		if e.streams {
			e.stream()
		}
		return more
	}
	if q := e.quoteMark(c); q > 0 {
		e.raw = append(e.raw, c)
		if q == len(e.b.Quote) {
			e.quote, e.from = e.b.Quote, len(e.raw)
		}
		return more
	}
	switch c {
	case '\'', '"':
		e.quote, e.from = string(c), len(e.raw)+1
	case '(': // an expression inside, which is none of ours to evaluate
		return broken
	case '[', '{':
		if len(e.stack) > maxJSONDepth {
			return broken
		}
		e.stack = append(e.stack, c+2)
	case ']', '}', ')':
		if c != e.stack[len(e.stack)-1] {
			return broken
		}
		if len(e.stack) == 1 {
			return e.close()
		}
		e.stack = e.stack[:len(e.stack)-1]
	}
	e.raw = append(e.raw, c)
	return more
}

// quoteMark is how much of the block's quotation marker c completes.
func (e *expression) quoteMark(c byte) int {
	tail := e.raw[e.from:]
	for n := min(len(e.b.Quote)-1, len(tail)); n >= 0; n-- {
		if n < len(e.b.Quote) && e.b.Quote[n] == c && string(tail[len(tail)-n:]) == e.b.Quote[:n] {
			return n + 1
		}
	}
	return 0
}

// beginString gives out the arguments up to the string being read, if that is one
// of them and not a part of one, or a key.
func (e *expression) beginString() {
	if len(e.stack) > 1 || e.strings == maxStreamed {
		return
	}
	args, ok, whole := translate(slices.Concat(e.raw[:e.from], []byte(e.quote)), e.b)
	if !ok || !whole || !bytes.HasSuffix(args, []byte(`:""`)) {
		return
	}
	e.strings++
	e.tell(args[:len(args)-1], e.from)
	e.streams = true
}

// stream gives out what is sure of the string being read.
func (e *expression) stream() {
	l := literals{in: e.raw, at: e.upto, out: e.out[:0]}
	for l.at < len(l.in) {
		rest := l.in[l.at:]
		if len(rest) < len(e.quote) {
			break // it may be its end
		}
		if rest[0] == '\\' && len(e.quote) == 1 {
			if len(rest) < 2 || bytes.IndexByte([]byte("xuU"), rest[1]) >= 0 && len(rest) <= maxEscape {
				break
			}
			l.escape(rest[1:])
			continue
		}
		l.out = appendString(l.out, rest[0])
		l.at++
	}
	e.args = append(e.args, l.out...)
	e.told += len(l.out)
	e.safe, e.upto, e.out = len(e.args), l.at, l.out
}

func (e *expression) pending() int { return len(e.raw) - e.upto }

// tell makes all arguments available that have been translated, up to a place in
// raw.
func (e *expression) tell(args []byte, upto int) {
	e.args = append(e.args, args[e.told:]...)
	e.told, e.upto = len(args), upto
	e.safe, e.anchor = len(e.args), true
}

func (e *expression) close() status {
	args, ok, whole := translate(e.raw, e.b)
	if !ok || !whole {
		return broken
	}
	e.tell(append(args, '}'), len(e.raw))
	e.argsEnd = true
	return allDone
}

// finish adds closing brackets that are missing.
func (e *expression) finish() bool {
	if e.argsEnd {
		return true
	}
	if e.quote != "" {
		return false
	}
	raw := e.raw
	for i := len(e.stack) - 1; i > 0; i-- {
		raw = append(raw, e.stack[i])
	}
	e.raw, e.stack = raw, e.stack[:1]
	return e.close() == allDone
}

// maxEscape is the longest spelling of a character, in bytes: two of \uXXXX.
const maxEscape = 12

// cut leaves the arguments as far as they can be told: without a last word, or a
// last escape, that may have gone on.
func (e *expression) cut() {
	if e.argsEnd {
		return
	}
	raw := e.raw
	switch {
	case e.quote == "":
		raw = raw[:bytes.LastIndexAny(raw, wordEnds)+1]
	case len(e.quote) > 1:
		for n := len(e.quote) - 1; n > 0; n-- {
			raw = bytes.TrimSuffix(raw, []byte(e.quote[:n]))
		}
	default:
		for i := bytes.LastIndexByte(raw, '\\'); i >= max(e.from, len(raw)-maxEscape); i = bytes.LastIndexByte(raw, '\\') {
			raw = raw[:i]
		}
	}
	if args, ok, _ := translate(raw, e.b); ok && len(args) > e.told {
		e.tell(args, len(e.raw))
	}
}
