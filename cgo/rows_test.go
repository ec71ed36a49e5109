package cgo

import (
	"fmt"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// Rows that threads share get what each would get alone.
func TestSharedRows(t *testing.T) {
	c := newContext(t, ContextParams{Ctx: 1024, SeqMax: 16, Threads: 3, Unified: true})
	params := []SamplerParams{
		{},
		{Temperature: 1, Seed: 5},
		{Temperature: 1.3, Seed: 6, TopK: 40, TopP: 0.9},
		{Temperature: 0.8, Seed: 7, Presence: 0.5, Repeat: 1.2},
		{Temperature: 1, Seed: 8, Grammar: `root ::= [a-z ]+`},
		{Temperature: 1, Seed: 9, Grammar: `root ::= ("[" [0-9]+ "]")+`},
		{Temperature: 0.9, Seed: 10, MinP: 0.05},
	}
	last := make([]int32, len(params))
	shared, alone := make([]*Sampler, len(params)), make([]*Sampler, len(params))
	for k, p := range params {
		shared[k], alone[k] = newSampler0(t, p), newSampler0(t, p)
		prefill(t, c, int32(k), 0, chatPrompt(t, fmt.Sprint("Say ", k, " and why.")), -1, nil)
		last[k] = 198
	}
	b := c.Batch()
	for range 8 {
		b.N = 0
		for k, s := range shared {
			b.Add(last[k], int32(c.SeqPosMax(int32(k))+1), int32(k), 1+int32(k), s)
		}
		require.NoError(t, c.Step())
		samplers := unsafe.Slice(b.c.sampler, b.N)
		for k, s := range alone {
			got := b.Out[k]
			got.Top = append([]TopLogprob{}, got.Top...)
			require.NoError(t, got.Err)
			samplers[k], b.Sampler[k] = s.s, s
			want := c.resample(k)
			want.Top = append([]TopLogprob{}, want.Top...)
			require.Equal(t, want, got, "row %d", k)
			last[k] = got.Token
		}
	}
}
