package lark

import (
	"strings"
	"unicode/utf8"
)

type tokenKind uint8

const (
	tokEnd       tokenKind = iota
	tokRule                // a name in lower case, without ? and !
	tokTerminal            // a name in upper case
	tokString              // between its quotes
	tokRegexp              // between its slashes
	tokNumber              // digits, perhaps with a sign
	tokDirective           // %name, without %
	tokSign                // all else
)

type token struct {
	kind  tokenKind
	text  string
	flags string // behind a string or an expression
	line  int
	first bool // on its line
}

func (t token) is(sign string) bool { return t.kind == tokSign && t.text == sign }

// shown is a token as an error names it.
func (t token) shown() string {
	switch t.kind {
	case tokEnd:
		return "the end"
	case tokString:
		return clip(`"` + t.text + `"`)
	case tokRegexp:
		return clip("/" + t.text + "/")
	case tokDirective:
		return clip("%" + t.text)
	}
	return clip(t.text)
}

func clip(s string) string {
	if len(s) <= 40 {
		return s
	}
	cut := 40
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

// Bounds on a definition.
const (
	maxSource = 64 << 10
	maxTokens = 20_000
)

type scanner struct {
	src  string
	pos  int
	line int
	out  []token
	bol  bool
}

// scan cuts a grammar into tokens, the last of which is tokEnd.
func scan(src string) ([]token, error) {
	if len(src) > maxSource {
		return nil, tooLarge(0, "the grammar of %d bytes exceeds %d", len(src), maxSource)
	}
	if !utf8.ValidString(src) {
		return nil, fault(0, "the grammar is not UTF-8")
	}
	s := &scanner{src: src, line: 1, bol: true}
	for s.blank(); s.pos < len(s.src); s.blank() {
		if len(s.out) == maxTokens {
			return nil, tooLarge(s.line, "the grammar has more than %d parts", maxTokens)
		}
		if err := s.next(); err != nil {
			return nil, err
		}
	}
	return append(s.out, token{kind: tokEnd, line: s.line, first: true}), nil
}

// blank passes over white space, comments and line breaks behind a backslash.
func (s *scanner) blank() {
	for s.pos < len(s.src) {
		rest := s.src[s.pos:]
		switch {
		case rest[0] == '\n':
			s.line++
			s.bol = true
			s.pos++
		case strings.IndexByte(" \t\r\f", rest[0]) >= 0:
			s.pos++
		case rest[0] == '#' || strings.HasPrefix(rest, "//"):
			if n := strings.IndexByte(rest, '\n'); n >= 0 {
				s.pos += n
			} else {
				s.pos = len(s.src)
			}
		case rest[0] == '\\' && strings.HasPrefix(strings.TrimLeft(rest[1:], " \t\r"), "\n"):
			s.pos += strings.IndexByte(rest, '\n') + 1
			s.line++
		default:
			return
		}
	}
}

func (s *scanner) add(kind tokenKind, text string, size int) {
	s.out = append(s.out, token{kind: kind, text: text, line: s.line, first: s.bol})
	s.bol = false
	s.pos += size
}

func (s *scanner) next() error {
	rest := s.src[s.pos:]
	c := rest[0]
	switch {
	case c == '"' || c == '\'':
		return s.quoted(tokString, c, "i")
	case c == '/':
		return s.quoted(tokRegexp, c, "imslux")
	case c == '%':
		n := nameEnd(rest, 1)
		s.add(tokDirective, rest[1:n], n)
	case isDigit(c) || (c == '-' || c == '+') && s.afterDot() && len(rest) > 1 && isDigit(rest[1]):
		n := 1
		for n < len(rest) && isDigit(rest[n]) {
			n++
		}
		s.add(tokNumber, rest[:n], n)
	case isName(c), (c == '?' || c == '!') && s.bol:
		return s.name(rest)
	case strings.HasPrefix(rest, "->"), strings.HasPrefix(rest, ".."):
		s.add(tokSign, rest[:2], 2)
	case strings.IndexByte("|()[]{},:.+*?~", c) >= 0:
		s.add(tokSign, rest[:1], 1)
	case strings.IndexByte("<>&@=", c) >= 0:
		return beyond(s.line, "%q is not of Lark's notation", c)
	default:
		r, _ := utf8.DecodeRuneInString(rest)
		return fault(s.line, "unexpected %q", r)
	}
	return nil
}

func (s *scanner) afterDot() bool { return len(s.out) > 0 && s.out[len(s.out)-1].is(".") }

// name reads the name of a rule or a terminal. ? and ! before it decide only
// about trees.
func (s *scanner) name(rest string) error {
	from := 0
	for from < len(rest) && (rest[from] == '?' || rest[from] == '!') {
		from++
	}
	end := nameEnd(rest, from)
	letter := strings.TrimLeft(rest[from:end], "_")
	switch {
	case letter != "" && letter[0] >= 'a' && letter[0] <= 'z':
		s.add(tokRule, rest[from:end], end)
	case letter != "" && letter[0] >= 'A' && letter[0] <= 'Z' && from == 0:
		s.add(tokTerminal, rest[:end], end)
	default:
		return fault(s.line, "%q is not a name", clip(rest[:max(end, 1)]))
	}
	return nil
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isName(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func nameEnd(s string, from int) int {
	n := from
	for n < len(s) && (isName(s[n]) || n > from && isDigit(s[n]) ||
		n > from && s[n] == '-' && n+1 < len(s) && (isName(s[n+1]) || isDigit(s[n+1]))) {
		n++
	}
	return n
}

// quoted reads a string or an expression up to its end, and its flags.
func (s *scanner) quoted(kind tokenKind, end byte, flags string) error {
	rest := s.src[s.pos:]
	n := 1
	for n < len(rest) && rest[n] != end && rest[n] != '\n' {
		if rest[n] == '\\' {
			n++
		}
		n++
	}
	if n >= len(rest) || rest[n] != end {
		return fault(s.line, "%c is not closed", end)
	}
	size := n + 1
	for size < len(rest) && strings.IndexByte(flags, rest[size]) >= 0 {
		size++
	}
	s.add(kind, rest[1:n], size)
	s.out[len(s.out)-1].flags = rest[n+1 : size]
	return nil
}
