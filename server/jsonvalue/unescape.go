package jsonvalue

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// unescape returns the text of a checked string without its quotes. A surrogate
// without its other half becomes U+FFFD.
func unescape(body []byte) string {
	var b strings.Builder
	b.Grow(len(body))
	for i := 0; i < len(body); {
		if body[i] != '\\' {
			start := i
			for i < len(body) && body[i] != '\\' {
				i++
			}
			b.Write(body[start:i])
			continue
		}
		switch c := body[i+1]; c {
		case 'u':
			r, n := unicodeEscape(body[i:])
			b.WriteRune(r)
			i += n
			continue
		case 'b':
			b.WriteByte('\b')
		case 'f':
			b.WriteByte('\f')
		case 'n':
			b.WriteByte('\n')
		case 'r':
			b.WriteByte('\r')
		case 't':
			b.WriteByte('\t')
		default: // a quote, a slash, a backslash
			b.WriteByte(c)
		}
		i += 2
	}
	return b.String()
}

// escapeLength is that of \uXXXX.
const escapeLength = 6

// unicodeEscape reads the character that begins with \uXXXX, and the length of
// its escapes.
func unicodeEscape(s []byte) (r rune, length int) {
	r = hex(s)
	if !utf16.IsSurrogate(r) {
		return r, escapeLength
	}
	if rest := s[escapeLength:]; len(rest) >= escapeLength && rest[0] == '\\' && rest[1] == 'u' {
		if pair := utf16.DecodeRune(r, hex(rest)); pair != utf8.RuneError {
			return pair, 2 * escapeLength
		}
	}
	return utf8.RuneError, escapeLength
}

// hex reads the digits of \uXXXX.
func hex(s []byte) rune {
	n, _ := strconv.ParseUint(string(s[2:escapeLength]), 16, 16) // checked
	return rune(n)
}
