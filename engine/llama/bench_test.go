package llama

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"quern/engine"
)

const qwen = "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"

// benchModel is the default model, or the file that QUERN_BENCH_MODEL names.
func benchModel() string {
	if name := os.Getenv("QUERN_BENCH_MODEL"); name != "" {
		return name
	}
	return qwen
}

// BenchmarkDecode decodes n streams at once; an operation is a step.
func BenchmarkDecode(b *testing.B) {
	for _, n := range []int{1, 4, 8, 16} {
		b.Run(fmt.Sprint("streams=", n), func(b *testing.B) {
			be, e := open(b, benchModel(), Options{Cells: 16384, Parallel: 16, Threads: 2, Batch: 2048, UBatch: 512, KVType: "f16"},
				engine.Config{MaxRunning: 16})
			prompt, err := be.Vocab().Tokenize("<|im_start|>user\nWrite a very long story about the sea.<|im_end|>\n<|im_start|>assistant\n", true)
			require.NoError(b, err)
			b.ResetTimer()
			var all sync.WaitGroup
			for range n {
				sampler, err := e.NewSampler(engine.SamplerParams{})
				require.NoError(b, err)
				s, err := e.Submit(b.Context(), engine.Request{Prompt: prompt, MaxTokens: min(b.N, 900), Sampler: sampler, Logprobs: -1})
				require.NoError(b, err)
				all.Go(func() { collect(b, s) })
			}
			all.Wait()
			b.ReportMetric(float64(n*min(b.N, 900))/b.Elapsed().Seconds(), "tok/s")
		})
	}
}

// BenchmarkPrefill computes a prompt of n tokens; an operation is a prompt.
func BenchmarkPrefill(b *testing.B) {
	for _, n := range []int{64, 512, 1450} {
		b.Run(fmt.Sprint("tokens=", n), func(b *testing.B) {
			be, e := open(b, benchModel(), Options{Cells: 16384, Parallel: 8, Threads: 2, Batch: 2048, UBatch: 512, KVType: "f16"}, engine.Config{})
			i := 0
			for b.Loop() {
				i++
				text, err := be.Vocab().Tokenize(fmt.Sprint("Run ", i, strings.Repeat(" one more word of a long prompt", n/6)), true)
				require.NoError(b, err)
				sampler, err := e.NewSampler(engine.SamplerParams{})
				require.NoError(b, err)
				s, err := e.Submit(b.Context(), engine.Request{Prompt: text[:min(n, len(text))], MaxTokens: 1, Sampler: sampler, Logprobs: -1})
				require.NoError(b, err)
				collect(b, s)
			}
			b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "tok/s")
		})
	}
}
