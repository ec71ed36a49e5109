package jsonvalue

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// Parse checks a whole document, which must be one value in valid UTF-8 whose
// arrays and objects nest at most maxDepth deep. The document must not be
// changed as long as values of it are in use.
func Parse(doc []byte, maxDepth int) (Value, error) {
	doc = bytes.TrimSpace(bytes.TrimPrefix(doc, []byte("\xef\xbb\xbf")))
	if len(doc) == 0 {
		return Value{}, errors.New("the body is empty")
	}
	if at := invalidUTF8(doc); at >= 0 {
		return Value{}, fmt.Errorf("the body is not valid UTF-8 at byte %d", at)
	}
	if d := depth(doc, maxDepth); d > maxDepth {
		return Value{}, fmt.Errorf("arrays and objects nest deeper than %d levels", maxDepth)
	}
	if !json.Valid(doc) {
		return Value{}, syntaxError(doc)
	}
	return Value{raw: doc}, nil
}

// syntaxError finds the fault of a document that is known to have one.
func syntaxError(doc []byte) error {
	var any json.RawMessage
	err := json.Unmarshal(doc, &any)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("the body is not valid JSON: %s at byte %d", syntax.Error(), syntax.Offset)
	}
	return fmt.Errorf("the body is not valid JSON: %w", err)
}

func invalidUTF8(doc []byte) int {
	if utf8.Valid(doc) {
		return -1
	}
	for i := 0; i < len(doc); {
		r, n := utf8.DecodeRune(doc[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}

// depth counts how deep brackets nest outside of strings, and stops past limit.
// It runs before the syntax check, whose own stack it bounds.
func depth(doc []byte, limit int) int {
	deepest, now := 0, 0
	for i := 0; i < len(doc); i++ {
		switch doc[i] {
		case '"':
			i = skipString(doc, i) - 1
		case '[', '{':
			now++
			deepest = max(deepest, now)
			if now > limit {
				return now
			}
		case ']', '}':
			now--
		}
	}
	return deepest
}

// skipString returns the index past the string that begins at p; the end of the
// document where the string is not closed.
func skipString(doc []byte, p int) int {
	for p++; p < len(doc); p++ {
		switch doc[p] {
		case '\\':
			p++
		case '"':
			return p + 1
		}
	}
	return len(doc)
}

// skipValue returns the index past the value at p of a checked document.
func skipValue(doc []byte, p int) int {
	switch doc[p] {
	case '"':
		return skipString(doc, p)
	case '[', '{':
		open := 0
		for ; p < len(doc); p++ {
			switch doc[p] {
			case '"':
				p = skipString(doc, p) - 1
			case '[', '{':
				open++
			case ']', '}':
				if open--; open == 0 {
					return p + 1
				}
			}
		}
		return len(doc)
	default:
		for p < len(doc) && !isSpace(doc[p]) && doc[p] != ',' && doc[p] != ']' && doc[p] != '}' {
			p++
		}
		return p
	}
}

func skipSpace(doc []byte, p int) int {
	for p < len(doc) && isSpace(doc[p]) {
		p++
	}
	return p
}

// skipComma goes to the next value or to the closing bracket.
func skipComma(doc []byte, p int) int {
	p = skipSpace(doc, p)
	if doc[p] == ',' {
		p = skipSpace(doc, p+1)
	}
	return p
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }
