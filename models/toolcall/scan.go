package toolcall

import "slices"

// scanner follows JSON byte by byte. It forgives what is repaired in calls:
// raw control characters in strings and a comma before a closing bracket.
type scanner struct {
	stack []byte // open brackets
	state scanState
	key   bool // the string being read is a key
	hex   int  // hex digits still to come in an escape
	word  string
	at    int // position in word
}

type scanState uint8

const (
	wantValue scanState = iota // also after a colon
	wantItem                   // after [: a value or ]
	wantNext                   // after a comma in an array
	wantKey                    // after {: a key or }
	wantMore                   // after a comma in an object
	wantColon
	afterValue
	inString
	inEscape
	inHex
	inLiteral
	numSign // a number that cannot end yet: after -, ., e, or a sign
	numZero
	numInt
	numDot
	numFrac
	numExp
	numExpSign
	numExpDigits
	scanEnd // the top value is complete
)

// token is what a byte is.
type token uint8

const (
	bad token = iota
	space
	open
	shut
	comma
	colon
	quoteOpen
	quoteClose
	inside // of a string
	scalar
)

const maxJSONDepth = 256

func (s *scanner) reset() {
	*s = scanner{stack: s.stack[:0]}
}

func (s *scanner) depth() int { return len(s.stack) }

// inNumber says that a number is being read, and whether it could end here.
func (s *scanner) inNumber() (reading, whole bool) {
	switch s.state {
	case numZero, numInt, numFrac, numExpDigits:
		return true, true
	case numSign, numDot, numExp, numExpSign:
		return true, false
	}
	return false, false
}

// inScalar says that a number or literal is being read.
func (s *scanner) inScalar() bool {
	number, _ := s.inNumber()
	return number || s.state == inLiteral
}

// step takes one byte. trailing says that it closes a bracket after a comma.
func (s *scanner) step(c byte) (t token, trailing bool) {
	switch s.state {
	case inString, inEscape, inHex:
		return s.stringByte(c), false
	case inLiteral:
		if c != s.word[s.at] {
			return bad, false
		}
		if s.at++; s.at == len(s.word) {
			s.endValue()
		}
		return scalar, false
	}
	if reading, whole := s.inNumber(); reading {
		if s.number(c) {
			return scalar, false
		}
		if !whole {
			return bad, false
		}
		s.endValue()
	}
	if isSpace(c) {
		return space, false
	}
	switch c {
	case '{', '[':
		return s.open(c), false
	case '}', ']':
		return s.close(c)
	case '"':
		return s.quote(), false
	case ',':
		return s.comma(), false
	case ':':
		if s.state != wantColon {
			return bad, false
		}
		s.state, s.key = wantValue, false
		return colon, false
	}
	if !s.wantsValue() {
		return bad, false
	}
	return s.scalar(c), false
}

func (s *scanner) wantsValue() bool {
	return s.state == wantValue || s.state == wantItem || s.state == wantNext
}

func (s *scanner) endValue() {
	s.state = afterValue
	if len(s.stack) == 0 {
		s.state = scanEnd
	}
}

func (s *scanner) open(c byte) token {
	if !s.wantsValue() || len(s.stack) >= maxJSONDepth {
		return bad
	}
	s.stack = append(s.stack, c)
	s.state = wantKey
	if c == '[' {
		s.state = wantItem
	}
	return open
}

func (s *scanner) close(c byte) (token, bool) {
	if len(s.stack) == 0 || s.stack[len(s.stack)-1] != c-2 { // '{'+2 is '}', '['+2 is ']'
		return bad, false
	}
	trailing := s.state == wantMore || s.state == wantNext
	if !trailing && s.state != afterValue && s.state != wantKey && s.state != wantItem {
		return bad, false
	}
	s.stack = s.stack[:len(s.stack)-1]
	s.endValue()
	return shut, trailing
}

func (s *scanner) quote() token {
	s.key = s.state == wantKey || s.state == wantMore
	if !s.key && !s.wantsValue() {
		return bad
	}
	s.state = inString
	return quoteOpen
}

func (s *scanner) stringByte(c byte) token {
	switch {
	case s.state == inHex:
		if !isHex(c) {
			return bad
		}
		if s.hex--; s.hex == 0 {
			s.state = inString
		}
	case s.state == inEscape:
		switch c {
		case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			s.state = inString
		case 'u':
			s.state, s.hex = inHex, 4
		default:
			return bad
		}
	case c == '\\':
		s.state = inEscape
	case c == '"':
		if s.key {
			s.state = wantColon
		} else {
			s.endValue()
		}
		return quoteClose
	}
	return inside
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

func (s *scanner) comma() token {
	if s.state != afterValue || len(s.stack) == 0 {
		return bad
	}
	s.state = wantMore
	if s.stack[len(s.stack)-1] == '[' {
		s.state = wantNext
	}
	return comma
}

// scalar begins a number or a literal.
func (s *scanner) scalar(c byte) token {
	switch {
	case c == '-':
		s.state = numSign
	case c == '0':
		s.state = numZero
	case '1' <= c && c <= '9':
		s.state = numInt
	case c == 't':
		s.state, s.word, s.at = inLiteral, "true", 1
	case c == 'f':
		s.state, s.word, s.at = inLiteral, "false", 1
	case c == 'n':
		s.state, s.word, s.at = inLiteral, "null", 1
	default:
		return bad
	}
	return scalar
}

// number goes on with a number; false means that c is no part of it.
func (s *scanner) number(c byte) bool {
	digit := '0' <= c && c <= '9'
	switch {
	case digit && s.state == numSign:
		s.state = numInt
		if c == '0' {
			s.state = numZero
		}
	case digit && s.state == numZero:
		return false
	case digit && s.state == numDot:
		s.state = numFrac
	case digit && (s.state == numExp || s.state == numExpSign):
		s.state = numExpDigits
	case digit:
	case c == '.' && (s.state == numZero || s.state == numInt):
		s.state = numDot
	case (c == 'e' || c == 'E') && (s.state == numZero || s.state == numInt || s.state == numFrac):
		s.state = numExp
	case (c == '+' || c == '-') && s.state == numExp:
		s.state = numExpSign
	default:
		return false
	}
	return true
}

// closers are the brackets that are missing, if nothing else is: then the
// text can be repaired. comma says that a comma stands before them.
func (s *scanner) closers(buf []byte) (missing []byte, afterComma, ok bool) {
	_, whole := s.inNumber()
	afterComma = s.state == wantMore || s.state == wantNext
	if s.state != afterValue && !whole && !afterComma {
		return nil, false, false
	}
	for _, b := range slices.Backward(s.stack) {
		buf = append(buf, b+2)
	}
	return buf, afterComma, true
}
