package cgo

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// kernelTypes are the weight types that the kernels multiply, with the block
// length of their activations.
var kernelTypes = []struct {
	name  string
	block int
}{
	{"q4_0", 32}, {"q4_1", 32}, {"q5_0", 32}, {"q5_1", 32}, {"q8_0", 32}, {"q4_K", 256}, {"q5_K", 256}, {"q6_K", 256},
}

// randomMatrix has rows of different sizes and outliers within them, as
// weights and activations have.
func randomMatrix(seed uint64, rows, k int) []float32 {
	r := rand.New(rand.NewPCG(seed, 1))
	out := make([]float32, rows*k)
	for i := range rows {
		scale := math.Exp(r.NormFloat64())
		for j := range k {
			v := r.NormFloat64() * scale
			if r.IntN(64) == 0 {
				v *= 8
			}
			out[i*k+j] = float32(v)
		}
	}
	return out
}

// openProduct skips where a build or a CPU has no such kernels.
func openProduct(t testing.TB, typ string, k, rows, columns, threads int, where weightPlace, w []float32) *product {
	t.Helper()
	p, err := newProduct(typ, k, rows, columns, threads, where, w)
	if errors.Is(err, ErrUnsupported) {
		t.Skip(err)
	}
	require.NoError(t, err)
	t.Cleanup(p.close)
	return p
}

func TestKernelProducts(t *testing.T) {
	shapes := []struct{ k, rows int }{{256, 16}, {768, 48}, {1280, 80}, {1056, 32}} // rows of whole and odd groups
	for _, kt := range kernelTypes {
		for _, s := range shapes {
			if s.k%kt.block != 0 {
				continue
			}
			w := randomMatrix(uint64(s.k), s.rows, s.k)
			for n := 1; n <= 17; n++ {
				t.Run(fmt.Sprintf("%s/%dx%d/%d", kt.name, s.rows, s.k, n), func(t *testing.T) {
					checkProduct(t, kt.name, kt.block, s.k, s.rows, n, 1+n%2, w)
				})
			}
		}
		w := randomMatrix(3, 48, 768)
		for _, n := range []int{8, 64, 512} {
			for _, threads := range []int{1, 2, 3} {
				t.Run(fmt.Sprintf("%s/48x768/%d/%d", kt.name, n, threads), func(t *testing.T) {
					checkProduct(t, kt.name, kt.block, 768, 48, n, threads, w)
				})
			}
		}
	}
}

// checkProduct compares with ggml's own product, which quantises activations in
// the same way, and with the exact product of the unquantised activations.
func checkProduct(t *testing.T, typ string, block, k, rows, columns, threads int, w []float32) {
	x := randomMatrix(uint64(columns), columns, k)
	ours := openProduct(t, typ, k, rows, columns, threads, weightsKernels, w)
	plain := openProduct(t, typ, k, rows, columns, threads, weightsPlain, w)
	for _, p := range []*product{ours, plain} {
		p.input(x)
		require.NoError(t, p.run(1))
	}
	got, want, dequantised := ours.output(), plain.output(), ours.weights()
	for c := range columns {
		xc := x[c*k : (c+1)*k]
		for r := range rows {
			exact, size, slack, ties := exactProduct(dequantised[r*k:(r+1)*k], xc, block)
			at := c*rows + r
			if d := math.Abs(float64(got[at]) - float64(want[at])); !(d <= 2e-6*size+ties) {
				t.Fatalf("column %d row %d: %g, ggml has %g", c, r, got[at], want[at])
			}
			if d := math.Abs(float64(got[at]) - exact); !(d <= slack) {
				t.Fatalf("column %d row %d: %g, exactly %g", c, r, got[at], exact)
			}
		}
	}
}

// exactProduct is the product of two rows, the sum of its terms' sizes, how far
// it may move when x is quantised to 8 bits, and how far two quantisations may
// lie apart: where x falls midway between two steps a compiler that fuses the
// scaling with the rounding takes the other one.
func exactProduct(w, x []float32, block int) (product, size, slack, ties float64) {
	for b := 0; b < len(x); b += block {
		var most, weight float64
		for i := b; i < b+block; i++ {
			term := float64(w[i]) * float64(x[i])
			product += term
			size += math.Abs(term)
			weight += math.Abs(float64(w[i]))
			most = max(most, math.Abs(float64(x[i])))
		}
		slack += weight * most * (0.5/127 + 1.0/2048)
		step := most / 127
		for i := b; i < b+block; i++ {
			if _, part := math.Modf(math.Abs(float64(x[i])) / step); math.Abs(part-0.5) < 1e-4 {
				ties += math.Abs(float64(w[i])) * step
			}
		}
	}
	return product, size, slack, ties
}

const qwen = "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"

func TestKernelWeightBytes(t *testing.T) {
	w := randomMatrix(1, 64, 1280)
	for _, kt := range kernelTypes {
		ours := openProduct(t, kt.name, 1280, 64, 1, 1, weightsKernels, w)
		plain := openProduct(t, kt.name, 1280, 64, 1, 1, weightsPlain, w)
		require.InEpsilon(t, plain.weightBytes(), ours.weightBytes(), 0.03, kt.name)
	}
}

// Weights that aren't whole groups and blocks stay with ggml.
func TestKernelRefusals(t *testing.T) {
	for _, s := range []struct {
		typ     string
		k, rows int
	}{{"q8_0", 64, 24}, {"q8_0", 64, 8}, {"f16", 64, 16}} {
		_, err := newProduct(s.typ, s.k, s.rows, 1, 1, weightsKernels, randomMatrix(1, s.rows, s.k))
		require.ErrorIs(t, err, ErrUnsupported, "%v", s)
	}
}

// A model's next tokens stay as likely as with ggml's kernels. Greedy texts
// part at near ties, because float sums come in another order: what is compared
// is what each run thinks of the same text.
func TestKernelText(t *testing.T) {
	for _, name := range []string{smol, qwen} {
		t.Run(name, func(t *testing.T) {
			path := modelPath(t, name)
			with, text := thoughts(t, path, LoadOptions{}, nil)
			without, _ := thoughts(t, path, LoadOptions{NoKernels: true}, text)
			var sum, pairs float64
			same := 0
			for i := range with {
				if with[i][0].Token == without[i][0].Token {
					same++
				}
				for _, a := range with[i] {
					for _, b := range without[i] {
						if a.Token == b.Token {
							sum += math.Abs(float64(a.Logprob) - float64(b.Logprob))
							pairs++
						}
					}
				}
			}
			t.Logf("%d of %d tokens alike, log probabilities differ by %.4f", same, len(with), sum/pairs)
			require.GreaterOrEqual(t, same, len(with)*9/10)
			require.Less(t, sum/pairs, 0.2)
		})
	}
}

// thoughts are the likeliest tokens after each token of a text, which is the
// model's own if none is given.
func thoughts(t *testing.T, path string, o LoadOptions, text []int32) ([][]TopLogprob, []int32) {
	m, err := LoadModel(t.Context(), path, o)
	require.NoError(t, err)
	defer m.Close()
	c, err := NewContext(m, ContextParams{Ctx: 512, Threads: 1})
	require.NoError(t, err)
	defer c.Close()
	s, err := NewSampler(m, SamplerParams{})
	require.NoError(t, err)
	defer s.Close()
	prompt, err := m.Vocab().Tokenize("<|im_start|>user\nWrite a Go function that reverses a list.<|im_end|>\n<|im_start|>assistant\n", true)
	require.NoError(t, err)
	const alternatives = 4
	out := prefill(t, c, 0, 0, prompt, 1+alternatives, s)
	var tops [][]TopLogprob
	own := len(text) == 0
	for i := range 64 {
		require.NoError(t, out.Err)
		tops = append(tops, slices.Clone(out.Top))
		if own {
			text = append(text, out.Token)
		}
		b := c.Batch()
		b.N = 0
		b.Add(text[i], int32(len(prompt)+i), 0, 1+alternatives, s)
		require.NoError(t, c.Step())
		out = b.Out[0]
	}
	return tops, text
}
