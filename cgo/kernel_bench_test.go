package cgo

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// One thread: two that wait for each other measure who else wants their cores.
const benchThreads = 1

// BenchmarkMulMat compares the kernels with ggml's on the shapes of
// Qwen2.5-0.5B. The runs of the two are interleaved and the fastest counts, so
// that what else the machine does weighs on both alike.
func BenchmarkMulMat(b *testing.B) {
	for _, s := range []struct {
		typ     string
		k, rows int
	}{
		{"q5_0", 896, 4864}, {"q5_0", 896, 896}, {"q5_0", 4864, 896}, {"q5_0", 896, 128},
		{"q8_0", 896, 151936}, {"q8_0", 896, 4864}, {"q8_0", 4864, 896},
		{"q4_0", 896, 4864}, {"q4_1", 576, 1536}, {"q5_1", 896, 4864},
		{"q4_K", 4864, 896}, {"q5_K", 4864, 896}, {"q6_K", 4864, 896},
	} {
		w := randomMatrix(1, s.rows, s.k)
		for _, n := range []int{1, 2, 4, 8, 16, 64, 512} {
			if s.rows*n > 151936*64 {
				continue
			}
			b.Run(fmt.Sprintf("%s/%dx%d/%d", s.typ, s.k, s.rows, n), func(b *testing.B) {
				benchProduct(b, s.typ, s.k, s.rows, n, w)
			})
		}
	}
}

func benchProduct(b *testing.B, typ string, k, rows, columns int, w []float32) {
	const threads = benchThreads
	x := randomMatrix(2, columns, k)
	places := []weightPlace{weightsKernels, weightsPlain}
	if p, err := newProduct(typ, k, rows, columns, threads, weightsRepacked, w); err == nil {
		p.close()
		places[1] = weightsRepacked
	}
	products := make([]*product, len(places))
	best := make([]time.Duration, len(places))
	for i, where := range places {
		products[i] = openProduct(b, typ, k, rows, columns, threads, where, w)
		products[i].input(x)
		require.NoError(b, products[i].run(1))
	}
	for b.Loop() {
		for i, p := range products {
			start := time.Now()
			_ = p.run(1)
			if d := time.Since(start); best[i] == 0 || d < best[i] {
				best[i] = d
			}
		}
	}
	macs := float64(k) * float64(rows) * float64(columns)
	b.ReportMetric(float64(best[0].Nanoseconds())/1e3, "us")
	b.ReportMetric(float64(best[1].Nanoseconds())/1e3, "ggml-us")
	b.ReportMetric(float64(best[1])/float64(best[0]), "ratio")
	b.ReportMetric(macs/float64(best[0].Nanoseconds()), "GMAC/s")
}

// processorTime is what this process has used: others on the machine hardly
// change what a step takes of it.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkStep compares whole steps of real models in the same way, by
// processor time. For the other engine add -tags llamacpp.
func BenchmarkStep(b *testing.B) {
	for _, name := range []string{qwen, smol} {
		path := modelPath(b, name)
		contexts := make([]*Context, 2)
		samplers := make([][]*Sampler, 2)
		for i, o := range []LoadOptions{{}, {NoKernels: true}} {
			m, err := LoadModel(b.Context(), path, o)
			require.NoError(b, err)
			contexts[i], err = NewContext(m, ContextParams{Ctx: 1024, Batch: 512, UBatch: 512, SeqMax: 16, Threads: benchThreads, Unified: true})
			require.NoError(b, err)
			b.Cleanup(m.Close)
			b.Cleanup(contexts[i].Close)
			for range 16 {
				s, err := NewSampler(m, SamplerParams{})
				require.NoError(b, err)
				b.Cleanup(s.Close)
				samplers[i] = append(samplers[i], s)
			}
		}
		for _, s := range []struct{ seqs, rows int }{{1, 1}, {4, 1}, {8, 1}, {16, 1}, {1, 64}, {1, 512}} {
			b.Run(fmt.Sprintf("%s/%dx%d", name[:4], s.seqs, s.rows), func(b *testing.B) {
				benchStep(b, contexts, samplers, s.seqs, s.rows)
			})
		}
	}
}

// benchStep computes rows tokens of each of seqs sequences, whose last row asks
// for a token: with one row it is a decode step.
func benchStep(b *testing.B, contexts []*Context, samplers [][]*Sampler, seqs, rows int) {
	best := make([]time.Duration, len(contexts))
	step := func(i int) {
		c := contexts[i]
		c.Clear()
		batch := c.Batch()
		batch.N = 0
		for q := range seqs {
			for r := range rows {
				want := int32(-1)
				if r == rows-1 {
					want = 0
				}
				batch.Add(int32(1000+r*7), int32(r), int32(q), want, samplers[i][q])
			}
		}
		start := processorTime()
		require.NoError(b, c.Step())
		if d := processorTime() - start; best[i] == 0 || d < best[i] {
			best[i] = d
		}
	}
	for b.Loop() {
		step(0)
		step(1)
	}
	b.ReportMetric(best[0].Seconds()*1e3, "ms")
	b.ReportMetric(best[1].Seconds()*1e3, "ggml-ms")
	b.ReportMetric(float64(best[1])/float64(best[0]), "ratio")
}
