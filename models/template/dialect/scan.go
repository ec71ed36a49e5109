package dialect

import (
	"regexp"
	"strings"
	"unicode"
)

type pieceKind int

const (
	pieceText pieceKind = iota
	pieceOutput
	pieceStatement
)

// piece is a stretch of a template: text with whitespace control already
// applied, or the tokens of a tag.
type piece struct {
	kind pieceKind
	text string
	toks []token
	line int
}

// scanner cuts a template into pieces. The rules of whitespace are Jinja2's
// with trim_blocks and lstrip_blocks on: a sign inside a tag strips all
// whitespace on that side; without one, a block or comment tag takes the
// indentation before it and one newline behind it.
type scanner struct {
	src       string
	pos       int
	line      int
	lineStart bool // nothing but whitespace can stand before pos on its line
	pieces    []piece
}

func scan(src string) ([]piece, error) {
	src = strings.ReplaceAll(strings.ReplaceAll(src, "\r\n", "\n"), "\r", "\n")
	s := &scanner{src: strings.TrimSuffix(src, "\n"), line: 1, lineStart: true}
	for {
		at := s.nextTag()
		if at < 0 {
			s.text(s.src[s.pos:])
			return s.pieces, nil
		}
		kind, sign := s.src[at+1], byte(0)
		begin := at + 2
		if begin < len(s.src) && (s.src[begin] == '-' || s.src[begin] == '+') {
			sign = s.src[begin]
			begin++
		}
		s.text(s.strip(s.src[s.pos:at], sign, kind != '{'))
		s.moveTo(begin)
		if err := s.tag(kind); err != nil {
			return nil, err
		}
	}
}

// nextTag is the position of the next tag's brace, or -1.
func (s *scanner) nextTag() int {
	for i := s.pos; i+1 < len(s.src); i++ {
		if s.src[i] == '{' && strings.IndexByte("{%#", s.src[i+1]) >= 0 {
			return i
		}
	}
	return -1
}

// strip cuts the whitespace before a tag.
func (s *scanner) strip(text string, sign byte, block bool) string {
	if sign == '-' {
		return strings.TrimRightFunc(text, unicode.IsSpace)
	}
	if sign == '+' || !block {
		return text
	}
	line := strings.LastIndexByte(text, '\n') + 1
	if (line > 0 || s.lineStart) && strings.TrimSpace(text[line:]) == "" {
		return text[:line]
	}
	return text
}

func (s *scanner) text(t string) {
	if t != "" {
		s.pieces = append(s.pieces, piece{kind: pieceText, text: t, line: s.line})
	}
}

func (s *scanner) moveTo(pos int) {
	s.line += strings.Count(s.src[s.pos:pos], "\n")
	s.pos = pos
}

// endTag moves past the end of a tag that stands at pos, and past the
// whitespace that it takes.
func (s *scanner) endTag(at int, sign byte, block bool) {
	end := at + 2
	switch {
	case sign == '-':
		rest := s.src[end:]
		end += len(rest) - len(strings.TrimLeftFunc(rest, unicode.IsSpace))
	case sign == 0 && block && strings.HasPrefix(s.src[end:], "\n"):
		end++
	}
	s.lineStart = s.src[end-1] == '\n'
	s.moveTo(end)
}

func (s *scanner) tag(kind byte) error {
	if kind == '#' {
		return s.comment()
	}
	line := s.line
	closer := "}}"
	if kind == '%' {
		closer = "%}"
	}
	lex := lexer{src: s.src, pos: s.pos, line: s.line}
	toks, err := lex.tag(closer)
	if err != nil {
		return err
	}
	s.moveTo(lex.pos)
	sign := byte(0)
	if c := s.src[s.pos]; c == '-' || c == '+' {
		sign = c
		s.pos++
	}
	if kind == '%' && len(toks) == 2 && toks[0].is(tokName, "raw") {
		return s.raw(line, sign)
	}
	s.endTag(s.pos, sign, kind == '%')
	p := piece{kind: pieceOutput, toks: toks, line: line}
	if kind == '%' {
		p.kind = pieceStatement
	}
	s.pieces = append(s.pieces, p)
	return nil
}

func (s *scanner) comment() error {
	n := strings.Index(s.src[s.pos:], "#}")
	if n < 0 {
		return fault(s.line, "comment is not closed")
	}
	at, sign := s.pos+n, byte(0)
	if n > 0 && (s.src[at-1] == '-' || s.src[at-1] == '+') {
		sign = s.src[at-1]
	}
	s.endTag(at, sign, true)
	return nil
}

var endRaw = regexp.MustCompile(`\{%([-+]?)\s*endraw\s*([-+]?)%\}`)

// raw takes everything up to endraw as text.
func (s *scanner) raw(line int, sign byte) error {
	s.endTag(s.pos, sign, false)
	m := endRaw.FindStringSubmatchIndex(s.src[s.pos:])
	if m == nil {
		return fault(line, "raw block is not closed")
	}
	signAt := func(from, to int) byte {
		if from == to {
			return 0
		}
		return s.src[s.pos+from]
	}
	before, after := signAt(m[2], m[3]), signAt(m[4], m[5])
	end := s.pos + m[1] - 2
	s.text(s.strip(s.src[s.pos:s.pos+m[0]], before, true))
	s.endTag(end, after, true)
	return nil
}
