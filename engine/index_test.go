package engine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// The index against a plain list of what is in it.
func TestIndexFindsTheLongestPrefix(t *testing.T) {
	for seed := range uint64(100) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { randomIndex(t, seed) })
	}
}

func randomIndex(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 0))
	word := func(n int) []Token {
		p := make([]Token, n)
		for i := range p {
			p[i] = Token(r.IntN(2 + int(seed%3)))
		}
		return p
	}
	x := index[int]{}
	var in []*entry[int]
	for step := range 120 {
		switch op := r.IntN(5); {
		case op < 2 || len(in) == 0:
			e := &entry[int]{owner: step, salt: []string{"", "a"}[r.IntN(2)]}
			x.insert(e, word(1+r.IntN(12)))
			in = append(in, e)
		case op == 2: // grows
			e := in[r.IntN(len(in))]
			x.insert(e, append(slices.Clone(e.tokens), word(1+r.IntN(6))...))
		case op == 3: // shrinks
			e := in[r.IntN(len(in))]
			x.insert(e, e.tokens[:1+r.IntN(len(e.tokens))])
		default:
			i := r.IntN(len(in))
			x.remove(in[i])
			x.remove(in[i])
			in = slices.Delete(in, i, i+1)
		}
		for range 5 {
			salt, p := []string{"", "a", "b"}[r.IntN(3)], word(1+r.IntN(15))
			want := 0
			for _, e := range in {
				if e.salt == salt {
					want = max(want, common(e.tokens, p))
				}
			}
			n, at := x.lookup(salt, p)
			require.Equal(t, want, n)
			if n > 0 {
				e := at.first()
				require.Contains(t, in, e)
				require.Equal(t, salt, e.salt)
				require.Equal(t, p[:n], e.tokens[:n])
			}
		}
		branches := 0
		for _, root := range x {
			branches += checkBranch(t, root)
		}
		require.LessOrEqual(t, branches, 2*len(in)+2, "the tree is no larger than need be")
	}
	for _, e := range in {
		x.remove(e)
	}
	require.Empty(t, x)
}

func checkBranch(t *testing.T, b *branch[int]) int {
	n := 1
	for _, e := range b.entries {
		require.Same(t, b, e.at)
		require.Len(t, e.tokens, b.depth)
	}
	for _, c := range b.children {
		require.Same(t, b, c.parent)
		require.Equal(t, b.depth+len(c.edge), c.depth)
		require.NotEmpty(t, c.edge)
		require.Equal(t, c.edge, c.first().tokens[b.depth:c.depth])
		require.False(t, len(c.entries) == 0 && len(c.children) == 1, "an edge that could be merged")
		n += checkBranch(t, c)
	}
	return n
}
