package cgo

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// kernelsThere says if this build has the package's own kernels, which give a
// row the same result beside any others.
func kernelsThere(t testing.TB) bool {
	p, err := newProduct("q4_1", 64, 16, 1, 1, weightsKernels, make([]float32, 64*16))
	if err != nil {
		require.ErrorIs(t, err, ErrUnsupported)
		return false
	}
	p.close()
	return true
}

// guessed generates like generate, but lets each step check guesses at what
// follows: the tokens of a generation without, some of them made wrong.
func guessed(t *testing.T, c *Context, want []Out, n int, s *Sampler) (got []Out, steps int) {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	v := c.model.Vocab()
	got = append(got, want[0])
	for len(got) < n && !v.IsEOG(got[len(got)-1].Token) {
		b := c.Batch()
		b.N = 0
		at := c.SeqPosMax(0) + 1
		b.Add(got[len(got)-1].Token, int32(at), 0, 2, s)
		guesses := min(r.IntN(8), n-len(got)-1)
		wrong := r.IntN(8)
		right := 0
		for i := range guesses {
			guess := want[min(len(got)+i, len(want)-1)].Token
			if i == wrong {
				guess = (guess + 1) % int32(v.Size())
			} else if i == right && !v.IsEOG(guess) {
				right++
			}
			b.Add(guess, int32(at+1+i), 0, 2, s)
		}
		require.NoError(t, c.Step())
		steps++
		for i, o := range b.Out[:b.N] {
			require.NoError(t, o.Err)
			if i > right {
				require.Equal(t, Out{Token: -1, Skipped: true, Top: o.Top[:0]}, o)
				continue
			}
			require.False(t, o.Skipped, "guess %d of %d", i, guesses)
			got = append(got, Out{Token: o.Token, Logprob: o.Logprob, Top: append([]TopLogprob{}, o.Top...)})
		}
		require.NoError(t, c.SeqRemove(0, at+1+right, 1<<30))
	}
	return got, steps
}

// Guesses change no token and no probability, whatever the sampler keeps.
func TestGuesses(t *testing.T) {
	if !kernelsThere(t) {
		t.Skip("no kernels that give a row the same result beside others")
	}
	const n = 48
	for name, p := range map[string]SamplerParams{
		"greedy":    {},
		"seeded":    {Temperature: 1, Seed: 5},
		"cut":       {Temperature: 1.3, Seed: 6, TopK: 40, TopP: 0.9},
		"penalties": {Temperature: 0.8, Seed: 7, Presence: 0.5, Frequency: 0.3, Repeat: 1.2},
		"grammar":   {Temperature: 1, Seed: 8, Grammar: `root ::= ("[" [0-9]+ "]" " "?){3,5}`},
		"trigger":   {Temperature: 1, Seed: 9, Grammar: `root ::= "." " "? [A-Z ]+ "."`, LazyPatterns: []string{"."}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newContext(t, ContextParams{Ctx: 1024, SeqMax: 2, Unified: true})
			prompt := chatPrompt(t, "Count to ten, then say why.")
			alone := newSampler0(t, p)
			alone.AcceptPrompt(prompt)
			first := prefill(t, c, 0, 0, prompt, 2, alone)
			want := []Out{{Token: first.Token, Logprob: first.Logprob, Top: append([]TopLogprob{}, first.Top...)}}
			for len(want) < n && !c.model.Vocab().IsEOG(want[len(want)-1].Token) {
				b := c.Batch()
				b.N = 0
				b.Add(want[len(want)-1].Token, int32(c.SeqPosMax(0)+1), 0, 2, alone)
				require.NoError(t, c.Step())
				require.NoError(t, b.Out[0].Err)
				want = append(want, Out{Token: b.Out[0].Token, Logprob: b.Out[0].Logprob, Top: append([]TopLogprob{}, b.Out[0].Top...)})
			}
			c.Clear()
			s := newSampler0(t, p)
			s.AcceptPrompt(prompt)
			require.Equal(t, first.Token, prefill(t, c, 0, 0, prompt, 2, s).Token)
			got, steps := guessed(t, c, want, n, s)
			require.Equal(t, want, got)
			require.Less(t, steps, len(want))
			require.Greater(t, len(want), 5)
		})
	}
}

// BenchmarkRows takes steps of so many rows that want a token each, of one
// sequence: what it costs to check guesses.
func BenchmarkRows(b *testing.B) {
	m, err := LoadModel(b.Context(), modelPath(b, "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"), LoadOptions{})
	require.NoError(b, err)
	defer m.Close()
	c, err := NewContext(m, ContextParams{Ctx: 4096, SeqMax: 64, Threads: 2, Unified: true})
	require.NoError(b, err)
	defer c.Close()
	s, err := NewSampler(m, SamplerParams{})
	require.NoError(b, err)
	defer s.Close()
	rows := c.Batch()
	for range 300 {
		rows.Add(100, int32(rows.N), 0, -1, nil)
	}
	require.NoError(b, c.Step())
	for _, n := range []int{1, 2, 3, 4, 5, 6, 8, 9, 12, 16, 17, 24, 32} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				rows.N = 0
				for i := range n {
					rows.Add(100, int32(300+i), 0, 0, s)
				}
				require.NoError(b, c.Step())
				require.NoError(b, c.SeqRemove(0, 300, 1<<30))
			}
		})
	}
}
