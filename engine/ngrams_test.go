package engine

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPropose(t *testing.T) {
	for name, c := range map[string]struct {
		tokens  []Token
		n       int
		want    []Token
		matched int
	}{
		"nothing yet":              {[]Token{1}, 3, nil, 0},
		"nothing alike":            {[]Token{1, 2, 3, 4, 5}, 3, nil, 0},
		"one token alike":          {[]Token{1, 2, 3, 1}, 3, []Token{2, 3, 1}, 1},
		"two alike":                {[]Token{1, 2, 3, 4, 1, 2}, 2, []Token{3, 4}, 2},
		"the latest of two":        {[]Token{1, 2, 3, 1, 2, 4, 1, 2}, 1, []Token{4}, 2},
		"the longest of two":       {[]Token{9, 8, 1, 2, 3, 7, 7, 1, 2, 4, 9, 8, 1, 2}, 1, []Token{3}, 4},
		"two before one":           {[]Token{1, 2, 3, 4, 2, 5, 1, 2}, 1, []Token{3}, 2},
		"repeats into itself":      {[]Token{5, 6, 5, 6}, 5, []Token{5, 6, 5, 6, 5}, 2},
		"one token over and over":  {[]Token{3, 7, 7, 7}, 3, []Token{7, 7, 7}, 2},
		"no more than it may have": {[]Token{1, 2, 3, 4, 5, 6, 1, 2}, 1, []Token{3}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			g := &guess{}
			got := g.propose(nil, c.tokens, c.n)
			require.Equal(t, c.want, got)
			require.Equal(t, c.matched, g.matched)
		})
	}
}

// A copy goes on where it is, even where other places fit as well, and comes
// back to it after a token that differs.
func TestACopyGoesOn(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var text []Token
	for range 100 { // one line, again and again, with a number of its own
		text = append(text, 1, 2, 3, 4, 5, Token(100+r.IntN(1000)), 6, 7)
	}
	tokens := append(append([]Token{}, text...), 50, 51)
	g := &guess{}
	for i := range 400 {
		draft := g.propose(nil, tokens, 1)
		if i > 16 && i != 200+1 {
			require.Equal(t, text[i], draft[0], "token %d", i)
		}
		next := text[i]
		if i == 200 {
			next = 52
		}
		tokens = append(tokens, next)
	}
}

// However long a sequence gets and however it comes, what is found is alike, and
// a long n-gram that was there is found.
func TestFindIsTrue(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 30 {
		g := &ngrams{}
		var tokens []Token
		found := 0
		for len(tokens) < 3000 {
			for range 1 + r.IntN(40) {
				tokens = append(tokens, Token(r.IntN(8)))
			}
			at, n := g.find(tokens, r.IntN(len(tokens)+10))
			if n == 0 {
				continue
			}
			found++
			require.Less(t, at, len(tokens))
			require.Equal(t, tokens[len(tokens)-n:], tokens[at-n:at])
		}
		require.Greater(t, found, 50)
	}
}

// Memory stays within bounds, and what is recent is found.
func TestLongSequence(t *testing.T) {
	g := &ngrams{}
	tokens := make([]Token, 300_000)
	for i := range tokens {
		tokens[i] = Token(uint32(i*2654435761) >> 12)
	}
	tokens = append(tokens, tokens[290_000:290_010]...)
	at, n := g.find(tokens, 0)
	require.Equal(t, 290_010, at)
	require.Equal(t, 10, n)
	require.LessOrEqual(t, len(g.long)+len(g.short), 2*maxTable)
	require.LessOrEqual(t, cap(g.prev), 2*len(tokens))
}

func BenchmarkPropose(b *testing.B) {
	tokens := make([]Token, 4000, 1<<20)
	for i := range tokens {
		tokens[i] = Token(uint32(i*2654435761) >> 20 % 300)
	}
	g := &guess{}
	draft := make([]Token, 0, 16)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		draft = g.propose(draft[:0], tokens, 15)
		tokens = append(tokens[:min(len(tokens), 1<<20-1)], Token(uint32(i*2654435761)>>20%300))
	}
}
