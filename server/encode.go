package server

import (
	"math"
	"strconv"
	"unicode/utf8"
)

// The append encoder writes JSON without reflection and without garbage: the
// delta path runs once a token and stream. It escapes no HTML, and it escapes
// the line separators U+0085, U+2028 and U+2029, at which some SSE readers
// split a data line.

const hexDigits = "0123456789abcdef"

// appendString appends s as a JSON string. Bytes that are no UTF-8 become U+FFFD.
func appendString[T string | []byte](dst []byte, s T) []byte {
	dst = append(dst, '"')
	return append(appendEscaped(dst, s), '"')
}

func appendEscaped[T string | []byte](dst []byte, s T) []byte {
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c < utf8.RuneSelf {
			dst = append(dst, s[start:i]...)
			dst = appendEscape(dst, c)
			i++
			start = i
			continue
		}
		r, n := decodeRune(s, i)
		switch {
		case r == utf8.RuneError && n == 1:
			dst = append(append(dst, s[start:i]...), `\ufffd`...)
			start = i + n
		case r == 0x85 || r == 0x2028 || r == 0x2029:
			dst = append(append(dst, s[start:i]...), '\\', 'u',
				hexDigits[r>>12&15], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
			start = i + n
		}
		i += n
	}
	return append(dst, s[start:]...)
}

func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}

// decodeRune is utf8.DecodeRune for both kinds of text, on at most four bytes.
func decodeRune[T string | []byte](s T, i int) (rune, int) {
	var b [utf8.UTFMax]byte
	n := copy(b[:], s[i:min(len(s), i+utf8.UTFMax)])
	return utf8.DecodeRune(b[:n])
}

func appendStringOrNull(dst []byte, s string) []byte {
	if s == "" {
		return append(dst, "null"...)
	}
	return appendString(dst, s)
}

// appendPointer appends the string that p points to, or null.
func appendPointer(dst []byte, p *string) []byte {
	if p == nil {
		return append(dst, "null"...)
	}
	return appendString(dst, *p)
}

func appendInt[T int | int64](dst []byte, n T) []byte { return strconv.AppendInt(dst, int64(n), 10) }

// appendCountOrNull appends n, or null for 0, which stands for "no limit".
func appendCountOrNull(dst []byte, n int) []byte {
	if n == 0 {
		return append(dst, "null"...)
	}
	return appendInt(dst, n)
}

// appendFloat appends a finite number in its shortest form. JSON has no
// infinities: they become the largest number there is.
func appendFloat(dst []byte, f float64) []byte {
	switch {
	case math.IsNaN(f):
		return append(dst, '0')
	case math.IsInf(f, 0):
		f = math.Copysign(math.MaxFloat32, f)
	}
	return strconv.AppendFloat(dst, f, 'g', -1, 64)
}

// appendFloat32 keeps the short form of a number that was a float32: 0.1, not
// 0.10000000149011612.
func appendFloat32(dst []byte, f float32) []byte {
	if f64 := float64(f); math.IsNaN(f64) || math.IsInf(f64, 0) {
		return appendFloat(dst, f64)
	}
	return strconv.AppendFloat(dst, float64(f), 'g', -1, 32)
}

// appendCompact appends a valid JSON value without the blanks between its
// parts, so that it stays on one line of an event.
func appendCompact(dst []byte, raw []byte) []byte {
	inString := false
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		switch {
		case inString && c == '\\':
			dst = append(dst, c, raw[i+1])
			i++
			continue
		case c == '"':
			inString = !inString
		case !inString && (c == ' ' || c == '\n' || c == '\r' || c == '\t'):
			continue
		case c == 0xC2 && raw[i+1] == 0x85:
			dst = append(dst, `\u0085`...)
			i++
			continue
		case c == 0xE2 && raw[i+1] == 0x80 && (raw[i+2] == 0xA8 || raw[i+2] == 0xA9):
			dst = append(dst, `\u202`...)
			dst = append(dst, hexDigits[raw[i+2]-0xA0])
			i += 2
			continue
		}
		dst = append(dst, c)
	}
	return dst
}
