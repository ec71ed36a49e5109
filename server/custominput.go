package server

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"quern/server/jsonvalue"
)

// inputScanner takes the text of a custom tool out of the arguments that the
// model wrote for it, {"input": "..."}, as they come. Arguments of any other
// shape are kept to the end and then given as they are.
type inputScanner struct {
	phase   inputPhase
	matched int    // bytes of the head that stand
	raw     []byte // all of the arguments, until the head stands
	escape  []byte // an escape sequence that is not complete
	high    rune   // first half of a surrogate pair
	out     []byte
}

type inputPhase int

const (
	phaseHead  inputPhase = iota // before the text's opening quote
	phaseText                    // within it
	phaseAfter                   // behind it
	phaseOther                   // not the expected shape
)

// inputHead is what stands before the text; blanks may come between its parts.
const inputHead = `{"input":"`

// push takes arguments and returns the text that they give, valid until the
// next call.
func (s *inputScanner) push(args []byte) []byte {
	out := s.out[:0]
	for _, c := range args {
		switch s.phase {
		case phaseHead:
			s.head(c)
		case phaseText:
			out = s.char(out, c)
		case phaseOther:
			s.raw = append(s.raw, c)
		}
	}
	s.out = out
	return out
}

func (s *inputScanner) head(c byte) {
	s.raw = append(s.raw, c)
	insideKey := s.matched > 1 && s.matched < len(`{"input"`)
	switch {
	case c == inputHead[s.matched]:
		if s.matched++; s.matched == len(inputHead) {
			s.phase = phaseText
		}
	case !insideKey && (c == ' ' || c == '\n' || c == '\t' || c == '\r'):
	default:
		s.phase = phaseOther
	}
}

func (s *inputScanner) char(out []byte, c byte) []byte {
	if len(s.escape) > 0 {
		return s.inEscape(out, c)
	}
	switch c {
	case '\\':
		s.escape = append(s.escape[:0], c)
		return out
	case '"':
		s.phase = phaseAfter
	}
	out = s.dropHigh(out)
	if c != '"' {
		out = append(out, c)
	}
	return out
}

func (s *inputScanner) inEscape(out []byte, c byte) []byte {
	s.escape = append(s.escape, c)
	if s.escape[1] == 'u' {
		if len(s.escape) < len(`\u0000`) {
			return out
		}
		r := hexRune(s.escape[2:])
		s.escape = s.escape[:0]
		switch {
		case s.high != 0:
			pair := utf16.DecodeRune(s.high, r)
			s.high = 0
			return utf8.AppendRune(out, pair)
		case r >= 0xD800 && r < 0xDC00:
			s.high = r
			return out
		}
		return utf8.AppendRune(out, r)
	}
	s.escape = s.escape[:0]
	out = s.dropHigh(out)
	if i := strings.IndexByte("bfnrt", c); i >= 0 {
		c = "\b\f\n\r\t"[i]
	}
	return append(out, c)
}

// dropHigh writes the first half of a pair whose second half did not come.
func (s *inputScanner) dropHigh(out []byte) []byte {
	if s.high == 0 {
		return out
	}
	s.high = 0
	return utf8.AppendRune(out, utf8.RuneError)
}

func hexRune(digits []byte) rune {
	r := rune(0)
	for _, c := range digits {
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | rune(c-'0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			r = r<<4 | rune(c|0x20-'a'+10)
		default:
			return utf8.RuneError
		}
	}
	return r
}

// flush ends the arguments and returns what is left to give.
func (s *inputScanner) flush() []byte {
	switch s.phase {
	case phaseText:
		return s.dropHigh(nil)
	case phaseAfter:
		return nil
	}
	s.phase = phaseAfter
	if v, err := jsonvalue.Parse(s.raw, maxDepth); err == nil {
		if text, ok := v.Field(customInput).Text(); ok {
			return []byte(text)
		}
		if text, ok := v.Text(); ok {
			return []byte(text)
		}
	}
	return s.raw
}
