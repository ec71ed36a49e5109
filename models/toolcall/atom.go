package toolcall

import (
	"regexp"
	"strings"
)

// atom is what templates put between texts as a whole: a tag, a mark between
// square brackets, white space; anything else goes letter by letter.
var atom = regexp.MustCompile(`(?s)<[^<>\s]+>|\[/?[A-Z_]{2,}\]|\s+|.`)

// isTag tells a tag from other atoms.
func isTag(s string) bool { return len(s) > 1 && s[0] == '<' }

func atoms(s string) []string { return atom.FindAllString(s, -1) }

// commonStart is the length of what two texts begin with alike, in whole atoms.
func commonStart(a, b string) int {
	x, y := atoms(a), atoms(b)
	n := 0
	for i := 0; i < min(len(x), len(y)) && x[i] == y[i]; i++ {
		n += len(x[i])
	}
	return n
}

// commonEnd is the length of what two texts end with alike, in whole atoms.
func commonEnd(a, b string) int {
	x, y := atoms(a), atoms(b)
	n := 0
	for i := 1; i <= min(len(x), len(y)) && x[len(x)-i] == y[len(y)-i]; i++ {
		n += len(x[len(x)-i])
	}
	return n
}

const blanks = " \t\r\n"

func trim(s string) string { return strings.Trim(s, blanks) }

// leading and trailing are the white space at the ends of a text.
func leading(s string) string  { return s[:len(s)-len(strings.TrimLeft(s, blanks))] }
func trailing(s string) string { return s[len(strings.TrimRight(s, blanks)):] }

// cutBetween is the text that stands between the first a and the next b behind it.
func cutBetween(s, a, b string) (text string, ok bool) {
	_, rest, found := strings.Cut(s, a)
	text, _, end := strings.Cut(rest, b)
	return text, found && end
}
