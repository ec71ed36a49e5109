package lark

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"quern/models/schema"
	"quern/models/schema/gbnf"
)

// grammars makes small grammars full of what is hard: rules that refer to
// themselves and each other at any place, that may be empty, that never end.
type grammars struct {
	rng   *rand.Rand
	rules int
}

func (g *grammars) make() string {
	g.rules = 1 + g.rng.IntN(4)
	var b strings.Builder
	fmt.Fprintf(&b, "start: r0\n")
	for i := range g.rules {
		fmt.Fprintf(&b, "r%d: %s\n", i, g.alternatives(0))
	}
	b.WriteString("A: \"a\"\nB: /b*/\nt{x, y}: x (y x)* | t{y, A}\n")
	if g.rng.IntN(5) == 0 {
		b.WriteString("%ignore \"c\"\n")
	}
	return b.String()
}

func (g *grammars) alternatives(depth int) string {
	var alts []string
	for range 1 + g.rng.IntN(3) {
		var parts []string
		for range g.rng.IntN(4) {
			parts = append(parts, g.part(depth))
		}
		alts = append(alts, strings.Join(parts, " "))
	}
	return strings.Join(alts, " | ")
}

func (g *grammars) part(depth int) string {
	atom := g.pick("A", "B", `"b"`, `"c"i`, "/[ab]/", `"a".."b"`, `""`)
	switch n := g.rng.IntN(9); {
	case n < 4:
		atom = fmt.Sprintf("r%d", g.rng.IntN(g.rules))
	case n == 4 && depth < 2:
		atom = "(" + g.alternatives(depth+1) + ")"
	case n == 5 && depth < 2:
		return "[" + g.alternatives(depth+1) + "]"
	case n == 6 && g.rng.IntN(3) == 0:
		atom = fmt.Sprintf("t{%s, r%d}", g.pick("A", `"b"`), g.rng.IntN(g.rules))
	}
	return atom + g.pick("", "", "", "", "*", "+", "?", "~2", "~0..2", "{1,2}")
}

func (g *grammars) pick(of ...string) string { return of[g.rng.IntN(len(of))] }

// The compiled rules accept exactly what the definitions derive, for every short
// text.
func TestRandomGrammars(t *testing.T) {
	all := texts("abc", 4)
	held, beyondHolding := 0, 0
	for seed := range uint64(80) {
		text := (&grammars{rng: rand.New(rand.NewPCG(seed, 0))}).make()
		src, err := parse(text)
		require.NoError(t, err, text)
		c, err := compile(text, "input")
		if err != nil {
			if schema.IsBeyond(err) {
				beyondHolding++
				continue
			}
			require.ErrorContains(t, err, "never end", text)
			for _, s := range all {
				require.False(t, follows(src, s), "%q: %s", s, text)
			}
			continue
		}
		held++
		g, err := gbnf.Parse(c.GBNF())
		require.NoError(t, err, text)
		for _, s := range all {
			m := gbnf.NewBoundedMatcher(g, 3000)
			accepts := m.Feed(`{"input":"`+s+`"}`) && m.CanEnd()
			if m.Peak() > 3000 {
				break
			}
			require.Equal(t, follows(src, s), accepts, "seed %d: %q: %s\n%s", seed, s, text, c.GBNF())
		}
	}
	t.Log(held, beyondHolding)
	require.Greater(t, held, 60)
	require.Less(t, beyondHolding, 10)
}
