package lark

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"unicode/utf8"

	"quern/models/schema"
)

// stringOf makes an expression of a string, which may be empty.
func stringOf(t token) (*expr, error) {
	text, err := unescape(t)
	if err != nil {
		return nil, err
	}
	if text == "" {
		return &expr{op: opSeq, line: t.line}, nil
	}
	pattern := regexp.QuoteMeta(text)
	if t.flags != "" {
		pattern = "(?i:" + pattern + ")"
	}
	return &expr{op: opLiteral, pattern: pattern, line: t.line}, nil
}

// rangeOf makes an expression of "a".."z".
func rangeOf(from, to token) (*expr, error) {
	var ends [2]rune
	for i, t := range [...]token{from, to} {
		text, err := unescape(t)
		if err != nil {
			return nil, err
		}
		r, size := utf8.DecodeRuneInString(text)
		if t.kind != tokString || t.flags != "" || size == 0 || size < len(text) {
			return nil, fault(t.line, "a range is of two characters in quotes, not %s", t.shown())
		}
		ends[i] = r
	}
	if ends[1] < ends[0] {
		return nil, fault(to.line, "the range from %q to %q is backwards", ends[0], ends[1])
	}
	return &expr{op: opLiteral, pattern: fmt.Sprintf(`[\x{%x}-\x{%x}]`, ends[0], ends[1]), line: from.line}, nil
}

// hexEscapes are the digits behind the escapes that have some.
var hexEscapes = map[byte]int{'x': 2, 'u': 4, 'U': 8}

// unescape reads the escapes of a string: Python's simple ones. A backslash
// before anything else stands for itself.
func unescape(t token) (string, error) {
	var b strings.Builder
	for i := 0; i < len(t.text); i++ {
		c := t.text[i]
		if c != '\\' || i+1 == len(t.text) {
			b.WriteByte(c)
			continue
		}
		i++
		switch c = t.text[i]; {
		case strings.IndexByte("nrtf", c) >= 0:
			b.WriteByte("\n\r\t\f"[strings.IndexByte("nrtf", c)])
		case c == '\\' || c == '"' || c == '\'':
			b.WriteByte(c)
		case hexEscapes[c] > 0:
			r, ok := hexRune(t.text[i+1:], hexEscapes[c])
			if !ok {
				return "", fault(t.line, "bad escape in %s", t.shown())
			}
			b.WriteRune(r)
			i += hexEscapes[c]
		default:
			b.WriteByte('\\')
			b.WriteByte(c)
		}
	}
	return b.String(), nil
}

func hexRune(s string, digits int) (rune, bool) {
	if len(s) < digits {
		return 0, false
	}
	v, err := strconv.ParseUint(s[:digits], 16, 32)
	r := rune(v & 0x7fffffff)
	return r, err == nil && utf8.ValidRune(r)
}

// regexpOf makes an expression of /…/.
func regexpOf(t token) (*expr, error) {
	flags := ""
	for _, f := range t.flags {
		switch f {
		case 'i', 's':
			if !strings.ContainsRune(flags, f) {
				flags += string(f)
			}
		case 'm', 'u': // anchors are refused, and all text is Unicode
		default:
			return nil, beyond(t.line, "the flag %c of an expression is not held", f)
		}
	}
	pattern := longEscapes(t.text)
	if _, err := syntax.Parse(pattern, syntax.Perl); err != nil {
		return nil, regexpError(t, err)
	}
	pattern = "(?" + flags + ":" + pattern + ")"
	return &expr{op: opLiteral, pattern: pattern, line: t.line}, nil
}

// longEscapes rewrites \uXXXX and \UXXXXXXXX, which RE2 lacks.
func longEscapes(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		if n := hexEscapes[s[i]]; n > 2 {
			if r, ok := hexRune(s[i+1:], n); ok {
				fmt.Fprintf(&b, `\x{%x}`, r)
				i += n
				continue
			}
		}
		b.WriteByte('\\')
		b.WriteByte(s[i])
	}
	return b.String()
}

// regexpError tells what is wrong in every dialect from what only RE2 lacks.
func regexpError(t token, err error) error {
	if e, ok := errors.AsType[*syntax.Error](err); ok {
		switch e.Code {
		case syntax.ErrMissingParen, syntax.ErrUnexpectedParen, syntax.ErrMissingBracket,
			syntax.ErrTrailingBackslash, syntax.ErrMissingRepeatArgument, syntax.ErrInvalidCharRange:
			return fault(t.line, "%s is not a regular expression: %s %q", t.shown(), e.Code, clip(e.Expr))
		}
	}
	return beyond(t.line, "the expression %s is not held", t.shown())
}

// maxPattern bounds the expression of a terminal, those that it refers to put
// in.
const maxPattern = 4000

// maxPatternWork bounds all terminals together, see Pattern.Work.
const maxPatternWork = 20_000

// pattern is the regular expression of a terminal's definition.
func (r *resolver) pattern(e *expr) (string, error) {
	out := ""
	switch e.op {
	case opLiteral:
		out = e.pattern
	case opTerminal:
		return r.namedPattern(e)
	case opRule:
		return "", fault(e.line, "a terminal can't refer to the rule %s", clip(e.name))
	case opRepeat:
		kid, err := r.pattern(e.kids[0])
		if err != nil {
			return "", err
		}
		out = "(?:" + kid + ")" + repetition(e.lo, e.hi)
	default:
		for i, kid := range e.kids {
			part, err := r.pattern(kid)
			if err != nil {
				return "", err
			}
			if i > 0 && e.op == opAlt {
				out += "|"
			}
			if out += part; len(out) > maxPattern {
				break
			}
		}
		if e.op == opAlt {
			out = "(?:" + out + ")"
		}
	}
	if len(out) > maxPattern {
		return "", tooLarge(e.line, "a terminal's expression exceeds %d bytes", maxPattern)
	}
	return out, nil
}

func (r *resolver) namedPattern(e *expr) (string, error) {
	if p, ok := r.patterns[e.name]; ok {
		if p == "" {
			return "", fault(e.line, "the terminal %s refers to itself", clip(e.name))
		}
		return p, nil
	}
	r.patterns[e.name] = "" // being made
	p, err := r.pattern(r.src.terminals[e.name].body)
	if err != nil {
		return "", err
	}
	p = "(?:" + p + ")"
	r.patterns[e.name] = p
	return p, nil
}

func repetition(lo, hi int) string {
	switch {
	case hi < 0 && lo == 0:
		return "*"
	case hi < 0 && lo == 1:
		return "+"
	case hi < 0:
		return fmt.Sprintf("{%d,}", lo)
	case lo == 0 && hi == 1:
		return "?"
	}
	return fmt.Sprintf("{%d,%d}", lo, hi)
}

// terminal is a set of texts that stands for one symbol.
type terminal struct {
	id    int
	all   *schema.Pattern
	solid *terminal // without the empty text, nil if there is nothing else
}

// terminal compiles an expression, or finds what it compiled to.
func (r *resolver) terminal(pattern string, line int) (*terminal, error) {
	if t := r.terminals[pattern]; t != nil {
		return t, nil
	}
	p, err := schema.CompilePattern(pattern)
	if err != nil {
		beyond := schema.ErrUnsupported
		if errors.Is(err, schema.ErrTooLarge) {
			beyond = schema.ErrTooLarge
		}
		return nil, &Error{Line: line, Msg: "a terminal can't be held: " + err.Error(), Beyond: beyond}
	}
	if r.patternWork += p.Work(); r.patternWork > maxPatternWork {
		return nil, tooLarge(line, "the terminals are too large together")
	}
	t, err := r.make(p, line)
	if err == nil {
		r.terminals[pattern] = t
	}
	return t, err
}

// make wraps a pattern, and its part without the empty text.
func (r *resolver) make(p *schema.Pattern, line int) (*terminal, error) {
	r.made++
	t := &terminal{id: r.made, all: p}
	t.solid = t
	if !p.MatchesEmpty() {
		return t, nil
	}
	t.solid = nil
	solid, err := p.Sized(1, -1)
	if err != nil {
		return nil, tooLarge(line, "a terminal can't be held: %v", err)
	}
	if solid != nil {
		r.made++
		t.solid = &terminal{id: r.made, all: solid}
		t.solid.solid = t.solid
	}
	return t, nil
}
