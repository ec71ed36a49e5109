package cgo

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// afterPrompt gives a context in which want rows can be sampled again and
// again from the same logits.
type bench struct {
	c    *Context
	last int32
	pos  int32
}

func afterPrompt(t testing.TB, text string) *bench {
	c := newContext(t, ContextParams{})
	prompt := chatPrompt(t, text)
	n := len(prompt) - 1
	prefill(t, c, 0, 0, prompt[:n], -1, nil)
	return &bench{c, prompt[n], int32(n)}
}

// draw samples once more after the same prompt.
func (x *bench) draw(t testing.TB, s *Sampler, want int32) Out {
	t.Helper()
	require.NoError(t, x.c.SeqRemove(0, int(x.pos), end))
	b := x.c.Batch()
	b.N = 0
	b.Add(x.last, x.pos, 0, want, s)
	require.NoError(t, x.c.Step())
	return b.Out[0]
}

func (x *bench) draws(t testing.TB, p SamplerParams, n int) []int32 {
	t.Helper()
	s := newSampler0(t, p)
	out := make([]int32, n)
	o := x.draw(t, s, 0)
	for i := range out {
		if i > 0 {
			o = x.c.resample(0)
		}
		require.NoError(t, o.Err)
		out[i] = o.Token
	}
	return out
}

func TestLogprobs(t *testing.T) {
	x := afterPrompt(t, "Tell me a story.")
	s := newSampler0(t, SamplerParams{})
	o := x.draw(t, s, 1+MaxTop)
	require.NoError(t, o.Err)
	require.Len(t, o.Top, MaxTop)
	require.Equal(t, o.Token, o.Top[0].Token, "greedy takes the first")
	require.Equal(t, o.Logprob, o.Top[0].Logprob)
	sum := 0.0
	seen := map[int32]bool{}
	for i, k := range o.Top {
		require.LessOrEqual(t, k.Logprob, float32(0))
		require.False(t, seen[k.Token])
		seen[k.Token] = true
		if i > 0 {
			require.LessOrEqual(t, k.Logprob, o.Top[i-1].Logprob)
		}
		sum += math.Exp(float64(k.Logprob))
	}
	require.Less(t, sum, 1+1e-4)
	require.Greater(t, sum, 0.5)

	require.Empty(t, x.draw(t, s, 1).Top, "only the chosen one")
	require.Equal(t, o.Logprob, x.draw(t, s, 1).Logprob)
	require.Zero(t, x.draw(t, s, 0).Logprob, "none asked for")

	// They are of the raw distribution, whatever the sampler does to it.
	odd := newSampler0(t, SamplerParams{Temperature: 5, Bias: []TokenBias{{o.Token, -100}}})
	p := x.draw(t, odd, 3)
	require.NotEqual(t, o.Token, p.Token)
	require.Equal(t, o.Top[:2], p.Top)
}

// The frequencies of many draws are the probabilities.
func TestDistribution(t *testing.T) {
	x := afterPrompt(t, "Name a colour.")
	o := x.draw(t, newSampler0(t, SamplerParams{}), 1+MaxTop)
	top := append([]TopLogprob(nil), o.Top...)
	const n = 4000
	count := func(p SamplerParams) map[int32]int {
		m := map[int32]int{}
		for _, k := range x.draws(t, p, n) {
			m[k]++
		}
		return m
	}
	// weight gives the expected share of token i under temperature, over the
	// first k of the list.
	share := func(i, k int, temp float64) float64 {
		sum := 0.0
		for _, a := range top[:k] {
			sum += math.Exp(float64(a.Logprob-top[0].Logprob) / temp)
		}
		return math.Exp(float64(top[i].Logprob-top[0].Logprob)/temp) / sum
	}
	near := func(want float64, got int, msg string) {
		t.Helper()
		sd := math.Sqrt(want*(1-want)/n) + 1e-9
		require.InDelta(t, want, float64(got)/n, 5*sd+0.002, msg)
	}
	all := count(SamplerParams{Temperature: 1, Seed: 1})
	for i := range 5 {
		near(math.Exp(float64(top[i].Logprob)), all[top[i].Token], "no cut")
	}
	five := count(SamplerParams{Temperature: 0.7, TopK: 5, Seed: 2})
	require.LessOrEqual(t, len(five), 5)
	for i := range 5 {
		near(share(i, 5, 0.7), five[top[i].Token], "top_k 5")
	}
	// top_p: the shortest head that reaches the mass.
	mass, k := 0.0, 0
	for ; mass < 0.6; k++ {
		mass += math.Exp(float64(top[k].Logprob))
	}
	nucleus := count(SamplerParams{Temperature: 1.5, TopP: 0.6, Seed: 3})
	require.LessOrEqual(t, len(nucleus), k)
	for i := range k {
		near(share(i, k, 1.5), nucleus[top[i].Token], "top_p 0.6")
	}
	// min_p: all within a factor of the best.
	k = 0
	for k < len(top) && top[k].Logprob >= top[0].Logprob+float32(math.Log(0.3)) {
		k++
	}
	within := count(SamplerParams{Temperature: 1, MinP: 0.3, Seed: 4})
	require.LessOrEqual(t, len(within), k)
	for i := range k {
		near(share(i, k, 1), within[top[i].Token], "min_p 0.3")
	}
}

func TestTopKOneIsGreedy(t *testing.T) {
	prompt := chatPrompt(t, "Name three colours.")
	c := newContext(t, ContextParams{})
	want := complete(t, c, 0, prompt, 10, SamplerParams{})
	for _, p := range []SamplerParams{
		{Temperature: 2, TopK: 1}, {Temperature: 1, TopP: 1e-6}, {Temperature: 1, MinP: 1}, {Temperature: 0, TopK: 40, TopP: 0.9},
	} {
		c.Clear()
		require.Equal(t, want, complete(t, c, 0, prompt, 10, p), "%+v", p)
	}
}

// A seed gives the same tokens, whatever the other sequences of a step do.
func TestSeeds(t *testing.T) {
	x := afterPrompt(t, "Tell me a story.")
	p := SamplerParams{Temperature: 1.5, Seed: 7}
	a := x.draws(t, p, 30)
	require.Equal(t, a, x.draws(t, p, 30))
	p.Seed = 8
	require.NotEqual(t, a, x.draws(t, p, 30))
}

func TestPenalties(t *testing.T) {
	prompt, err := smolModel(t).Vocab().Tokenize("one, two, one, two, one, two, one, two,", false)
	require.NoError(t, err)
	c := newContext(t, ContextParams{})
	repeats := func(p SamplerParams) int {
		c.Clear()
		out := complete(t, c, 0, prompt, 30, p)
		seen, most := map[int32]int{}, 0
		for _, k := range out {
			seen[k]++
			most = max(most, seen[k])
		}
		return most
	}
	plain := repeats(SamplerParams{})
	require.Greater(t, plain, 2)
	require.Less(t, repeats(SamplerParams{Repeat: 2}), plain)
	require.Equal(t, 1, repeats(SamplerParams{Presence: 100}))
	require.LessOrEqual(t, repeats(SamplerParams{Frequency: 100}), 1)
	require.Equal(t, plain, repeats(SamplerParams{Repeat: 1, RepeatLastN: 64}))
}

// The formulas, on one row: repeat counts the prompt's last tokens, presence
// and frequency only what was chosen.
func TestPenaltyFormulas(t *testing.T) {
	x := afterPrompt(t, "Name a colour.")
	first := x.draw(t, newSampler0(t, SamplerParams{}), 3)
	best, second := first.Top[0], first.Top[1]
	gap := best.Logprob - second.Logprob

	s := newSampler0(t, SamplerParams{Presence: 100, Frequency: 1})
	s.AcceptPrompt([]int32{best.Token, best.Token})
	require.Equal(t, best.Token, x.draw(t, s, 0).Token, "the prompt does not count")
	require.Equal(t, second.Token, x.draw(t, s, 0).Token, "now it has been chosen")

	s = newSampler0(t, SamplerParams{Presence: gap * 0.9})
	require.Equal(t, best.Token, x.draw(t, s, 0).Token)
	require.Equal(t, best.Token, x.draw(t, s, 0).Token, "not enough, however often")
	s = newSampler0(t, SamplerParams{Frequency: gap * 0.6})
	require.Equal(t, best.Token, x.draw(t, s, 0).Token)
	require.Equal(t, best.Token, x.draw(t, s, 0).Token)
	require.Equal(t, second.Token, x.draw(t, s, 0).Token, "twice is enough")

	s = newSampler0(t, SamplerParams{Repeat: 10, RepeatLastN: 4})
	s.AcceptPrompt([]int32{best.Token})
	require.NotEqual(t, best.Token, x.draw(t, s, 0).Token, "the prompt counts")
	s = newSampler0(t, SamplerParams{Repeat: 10, RepeatLastN: 4})
	s.AcceptPrompt([]int32{best.Token, 1, 2, 3, 4})
	require.Equal(t, best.Token, x.draw(t, s, 0).Token, "too long ago")

	s = newSampler0(t, SamplerParams{Bias: []TokenBias{{second.Token, gap + 0.1}}})
	require.Equal(t, second.Token, x.draw(t, s, 0).Token)
	require.Equal(t, first.Top[:2], x.draw(t, newSampler0(t, SamplerParams{}), 3).Top, "the row is as it was")
}

func TestSamplerArguments(t *testing.T) {
	m := smolModel(t)
	nan := float32(math.NaN())
	inf := float32(math.Inf(1))
	nv := int32(m.Vocab().Size())
	for _, p := range []SamplerParams{
		{Temperature: -1}, {Temperature: nan}, {Temperature: inf}, {TopP: -1}, {TopP: 1.1}, {TopP: nan}, {MinP: -0.1},
		{MinP: 2}, {MinP: nan}, {TopK: -1}, {TopK: 1 << 40}, {Presence: nan}, {Presence: 1000}, {Frequency: inf},
		{Repeat: -1}, {Repeat: nan}, {RepeatLastN: -1}, {RepeatLastN: 1 << 40},
		{Bias: []TokenBias{{-1, 1}}}, {Bias: []TokenBias{{nv, 1}}}, {Bias: []TokenBias{{1, nan}}},
		{Grammar: `root ::= "a"`, LazyTokens: []int32{nv}}, {Grammar: `root ::= "a"`, LazyPatterns: []string{""}},
	} {
		s, err := NewSampler(m, p)
		require.Nil(t, s)
		require.ErrorIs(t, err, ErrArgument, "%+v", p)
	}
	s := newSampler0(t, SamplerParams{TopK: 1 << 29, Temperature: 1})
	s.AcceptPrompt([]int32{-5, nv, 1 << 30})
	s.AcceptPrompt(nil)
	require.NoError(t, afterPrompt(t, "Hi").draw(t, s, 0).Err)
}

func BenchmarkSample(b *testing.B) {
	x := afterPrompt(b, "Hello")
	for name, p := range map[string]SamplerParams{
		"greedy": {}, "top_k": {Temperature: 0.7, TopK: 40, TopP: 0.95, MinP: 0.05}, "top_p": {Temperature: 0.7, TopP: 0.9},
		"pure": {Temperature: 1}, "penalties": {Repeat: 1.1, Presence: 0.5}, "min_p": {Temperature: 1, MinP: 0.05},
	} {
		b.Run(name, func(b *testing.B) {
			s := newSampler0(b, p)
			x.draw(b, s, 0)
			for b.Loop() {
				x.c.resample(0)
			}
		})
	}
}
