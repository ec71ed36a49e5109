package server

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLogprobsFollowTheShownText: tokens that are no single bytes.
func TestLogprobsFollowTheShownText(t *testing.T) {
	type token struct{ raw, gave string }
	for _, row := range []struct {
		name   string
		tokens []token
		shown  []string
		want   [][]string
	}{
		{"one by one", []token{{"ab", "ab"}, {"c", "c"}}, []string{"ab", "c"}, [][]string{{"ab"}, {"c"}}},
		{"held and given together", []token{{"ab", "ab"}, {"c", "c"}}, []string{"abc"}, [][]string{{"ab", "c"}}},
		{"a part of a token", []token{{"abcd", "abcd"}}, []string{"ab", "d"}, [][]string{{"ab"}, {"d"}}},
		{"hidden text before", []token{{"<x>", "<x>"}, {" hi", " hi"}}, []string{"hi"}, [][]string{{"hi"}}},
		{"hidden text between", []token{{"a<", "a<"}, {"x>b", "x>b"}}, []string{"a", "b"}, [][]string{{"a"}, {"b"}}},
		{"half characters", []token{{"a\xc3", "a"}, {"\xa9b", "éb"}}, []string{"a", "éb"}, [][]string{{"a\xc3"}, {"\xa9b"}}},
		{"half characters, cut", []token{{"\xc3", ""}, {"\xa9bc", "ébc"}}, []string{"éb"}, [][]string{{"\xc3", "\xa9b"}}},
		{"a control token", []token{{"a", "a"}, {"", ""}, {"b", "b"}}, []string{"a", "b"}, [][]string{{"a"}, {"b"}}},
		{"text of no token", []token{{"a", "a"}}, []string{"zzz", "a"}, [][]string{nil, {"a"}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			q := &logprobQueue{}
			for _, k := range row.tokens {
				q.push(tokenLogprob{text: []byte(k.raw)}, []byte(k.gave))
			}
			for i, shown := range row.shown {
				var got []string
				for _, p := range q.take([]byte(shown)) {
					got = append(got, string(p.text))
				}
				require.Equal(t, row.want[i], got, "%q", shown)
			}
		})
	}
}

// A token is told once, when all of it can be shown.
func TestTextIsHeldToTheEndOfAToken(t *testing.T) {
	q := &logprobQueue{}
	for _, text := range []string{"<x>", " count", " a", "s"} {
		q.push(tokenLogprob{text: []byte(text)}, []byte(text))
	}
	for _, row := range []struct {
		text string
		want int
	}{{" coun", 0}, {" count", 6}, {" count ", 6}, {" count as", 9}, {"elsewhere", 9}} {
		require.Equal(t, row.want, q.whole([]byte(row.text)), row.text)
	}
}
