package cgo

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func normals(r *rand.Rand, n int) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = float32(r.NormFloat64())
	}
	return out
}

// The kernel against the textbook formula in f64. Keys and values lose bits as
// f16, which bounds the difference.
func TestAttention(t *testing.T) {
	for _, s := range []attentionShape{
		{64, 14, 2, 1, 300, 2}, // decode of the default model
		{64, 14, 2, 33, 95, 2}, // cells that fill no vector
		{64, 4, 4, 5, 16, 1},   // a head of keys for each
		{128, 32, 1, 3, 257, 2},
		{128, 8, 2, 64, 64, 3},
		{96, 4, 2, 3, 40, 2},
		{256, 8, 1, 70, 130, 2},
		{64, 80, 1, 3, 70, 1}, // more heads of one key than go at once
		{40, 4, 2, 3, 40, 2},  // ggml's own
	} {
		for _, kind := range []string{"causal", "sliding", "sparse", "one", "none"} {
			t.Run(fmt.Sprintf("%+v/%s", s, kind), func(t *testing.T) { checkAttention(t, s, kind) })
		}
	}
}

func checkAttention(t *testing.T, s attentionShape, kind string) {
	r := rand.New(rand.NewPCG(uint64(s.dim), uint64(s.cells)))
	q, k, v := normals(r, s.heads*s.rows*s.dim), normals(r, s.headsKV*s.cells*s.dim), normals(r, s.headsKV*s.cells*s.dim)
	visible := make([]uint8, s.rows*s.cells)
	for i := range visible {
		row, cell := i/s.cells, i%s.cells
		see := map[string]bool{
			"causal":  cell <= s.cells-s.rows+row,
			"sliding": cell <= s.cells-s.rows+row && cell > s.cells-s.rows+row-20,
			"sparse":  r.IntN(8) == 0, "one": cell == (row*7)%s.cells,
		}[kind]
		if see {
			visible[i] = 1
		}
	}
	got, err := attention(s, q, k, v, visible)
	require.NoError(t, err)
	for row := range s.rows {
		for h := range s.heads {
			want := exactAttention(s, q, k, v, visible[row*s.cells:][:s.cells], row, h)
			for d, w := range want {
				g := got[(row*s.heads+h)*s.dim+d]
				require.InDelta(t, w, float64(g), 4e-3, "row %d head %d dim %d", row, h, d)
			}
		}
	}
}

func exactAttention(s attentionShape, q, k, v []float32, visible []uint8, row, h int) []float64 {
	kv := h / (s.heads / s.headsKV)
	sum, total := make([]float64, s.dim), 0.0
	for c, see := range visible {
		if see == 0 {
			continue
		}
		dot := 0.0
		for d := range s.dim {
			dot += float64(q[(h*s.rows+row)*s.dim+d]) * float64(k[(kv*s.cells+c)*s.dim+d])
		}
		w := math.Exp(dot / math.Sqrt(float64(s.dim)))
		total += w
		for d := range s.dim {
			sum[d] += w * float64(v[(kv*s.cells+c)*s.dim+d])
		}
	}
	for d := range sum {
		if total > 0 {
			sum[d] /= total
		}
	}
	return sum
}

// A row's result does not depend on the rows that are computed beside it.
func TestAttentionAloneOrTogether(t *testing.T) {
	s := attentionShape{dim: 64, heads: 14, headsKV: 2, rows: 150, cells: 400, threads: 2}
	r := rand.New(rand.NewPCG(1, 2))
	q, k, v := normals(r, s.heads*s.rows*s.dim), normals(r, s.headsKV*s.cells*s.dim), normals(r, s.headsKV*s.cells*s.dim)
	visible := make([]uint8, s.rows*s.cells)
	for row := range s.rows {
		for cell := range s.cells - s.rows + row + 1 {
			visible[row*s.cells+cell] = 1
		}
	}
	together, err := attention(s, q, k, v, visible)
	require.NoError(t, err)

	one := s
	one.rows = 1
	for _, row := range []int{0, 1, 63, 64, 149} {
		var own []float32
		for h := range s.heads {
			own = append(own, q[(h*s.rows+row)*s.dim:][:s.dim]...)
		}
		alone, err := attention(one, own, k, v, visible[row*s.cells:][:s.cells])
		require.NoError(t, err)
		require.Equal(t, alone, together[row*s.heads*s.dim:][:s.heads*s.dim], "row %d", row)
	}
}
