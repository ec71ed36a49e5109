package dialect

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

type tokenKind int

const (
	tokEnd tokenKind = iota
	tokName
	tokInt
	tokFloat
	tokString
	tokOp
)

type token struct {
	kind tokenKind
	text string // of a string: what it stands for
	line int
}

func (t token) is(kind tokenKind, text string) bool { return t.kind == kind && t.text == text }

func (t token) String() string {
	if t.kind == tokEnd {
		return "the end of the tag"
	}
	return strconv.Quote(t.text)
}

// lexer reads the tokens of one tag.
type lexer struct {
	src  string
	pos  int
	line int
}

// tag reads up to closer and stops before its sign. Inside brackets closer is
// no end, so that a dict may end in two braces.
func (l *lexer) tag(closer string) ([]token, error) {
	var toks []token
	depth, line := 0, l.line
	for {
		l.space()
		rest := l.src[l.pos:]
		if rest == "" {
			return nil, fault(line, "tag is not closed")
		}
		if depth == 0 {
			end := rest
			if end[0] == '-' || end[0] == '+' {
				end = end[1:]
			}
			if strings.HasPrefix(end, closer) {
				return append(toks, token{kind: tokEnd, line: l.line}), nil
			}
		}
		t, err := l.next()
		if err != nil {
			return nil, err
		}
		if t.kind == tokOp {
			switch t.text {
			case "(", "[", "{":
				depth++
			case ")", "]", "}":
				depth--
			}
		}
		toks = append(toks, t)
	}
}

func (l *lexer) space() {
	for l.pos < len(l.src) {
		r, n := utf8.DecodeRuneInString(l.src[l.pos:])
		if !unicode.IsSpace(r) {
			return
		}
		if r == '\n' {
			l.line++
		}
		l.pos += n
	}
}

func (l *lexer) next() (token, error) {
	rest := l.src[l.pos:]
	switch c := rest[0]; {
	case c == '\'' || c == '"':
		return l.string(c)
	case c >= '0' && c <= '9':
		return l.number(), nil
	case isNameStart(rest):
		n := 0
		for n < len(rest) {
			r, w := utf8.DecodeRuneInString(rest[n:])
			if r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) {
				break
			}
			n += w
		}
		return l.take(tokName, n), nil
	}
	for _, op := range []string{"**", "//", "==", "!=", "<=", ">="} {
		if strings.HasPrefix(rest, op) {
			return l.take(tokOp, 2), nil
		}
	}
	if strings.IndexByte("+-*/%~<>=.,:|()[]{}", rest[0]) >= 0 {
		return l.take(tokOp, 1), nil
	}
	r, _ := utf8.DecodeRuneInString(rest)
	return token{}, fault(l.line, "unexpected character %q", r)
}

func isNameStart(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return r == '_' || unicode.IsLetter(r)
}

func (l *lexer) take(kind tokenKind, n int) token {
	t := token{kind, l.src[l.pos : l.pos+n], l.line}
	l.pos += n
	return t
}

func (l *lexer) number() token {
	rest := l.src[l.pos:]
	digits := func(i int) int {
		for i < len(rest) && (rest[i] >= '0' && rest[i] <= '9' || rest[i] == '_') {
			i++
		}
		return i
	}
	n, kind := digits(0), tokInt
	if n+1 < len(rest) && rest[n] == '.' && rest[n+1] >= '0' && rest[n+1] <= '9' {
		n, kind = digits(n+1), tokFloat
	}
	if n < len(rest) && (rest[n] == 'e' || rest[n] == 'E') {
		m := n + 1
		if m < len(rest) && (rest[m] == '+' || rest[m] == '-') {
			m++
		}
		if e := digits(m); e > m {
			n, kind = e, tokFloat
		}
	}
	t := l.take(kind, n)
	t.text = strings.ReplaceAll(t.text, "_", "")
	return t
}

// string reads a quoted string with Python's escapes.
func (l *lexer) string(quote byte) (token, error) {
	t := token{kind: tokString, line: l.line}
	var b strings.Builder
	for i := l.pos + 1; i < len(l.src); i++ {
		switch c := l.src[i]; c {
		case quote:
			t.text = b.String()
			l.pos = i + 1
			return t, nil
		case '\\':
			i += l.escape(&b, l.src[i+1:])
		default:
			if c == '\n' {
				l.line++
			}
			b.WriteByte(c)
		}
	}
	return t, fault(t.line, "string is not closed")
}

var simpleEscapes = map[byte]byte{
	'n': '\n', 't': '\t', 'r': '\r', 'a': '\a', 'b': '\b', 'f': '\f', 'v': '\v',
	'\\': '\\', '\'': '\'', '"': '"',
}

// escape writes what the escape after a backslash stands for and returns its
// length. An unknown one stands for itself, backslash included.
func (l *lexer) escape(b *strings.Builder, rest string) int {
	if rest == "" {
		return 0
	}
	if c, ok := simpleEscapes[rest[0]]; ok {
		b.WriteByte(c)
		return 1
	}
	base, from, n := 16, 1, 0
	switch c := rest[0]; {
	case c == '\n':
		l.line++
		return 1
	case c == 'x':
		n = 2
	case c == 'u':
		n = 4
	case c == 'U':
		n = 8
	case c >= '0' && c <= '7':
		base, from, n = 8, 0, 1
		for n < 3 && n < len(rest) && rest[n] >= '0' && rest[n] <= '7' {
			n++
		}
	}
	if n > 0 && from+n <= len(rest) {
		if v, err := strconv.ParseUint(rest[from:from+n], base, 32); err == nil && v <= unicode.MaxRune {
			b.WriteRune(rune(v))
			return from + n
		}
	}
	b.WriteByte('\\')
	return 0
}
