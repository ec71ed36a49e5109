package cgo

import (
	"errors"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestGreedyText(t *testing.T) {
	c := newContext(t, ContextParams{})
	prompt := chatPrompt(t, "What is the capital of France?")
	a := complete(t, c, 0, prompt, 24, SamplerParams{})
	require.Contains(t, detok(t, a), "Paris")
	c.Clear()
	require.Equal(t, a, complete(t, c, 0, prompt, 24, SamplerParams{}))
}

// trace is a greedy generation and how far the best token was from the second.
type trace struct {
	tokens []int32
	gaps   []float32
}

func (x *trace) add(t testing.TB, o Out) {
	t.Helper()
	require.NoError(t, o.Err)
	require.Len(t, o.Top, 2)
	x.tokens = append(x.tokens, o.Token)
	x.gaps = append(x.gaps, o.Top[0].Logprob-o.Top[1].Logprob)
}

// requireSame compares two generations up to where the best two tokens were as
// good as equal: steps of one row and of many, and other cuts of a prompt, use
// other kernels or orders of addition, whose results differ in the last bits.
func requireSame(t testing.TB, want, got trace, msg ...any) {
	t.Helper()
	for i, k := range want.tokens {
		if i < len(got.tokens) && got.tokens[i] != k && want.gaps[i] < 0.15 {
			require.Positive(t, i, "not even one token alike")
			return
		}
	}
	require.Equal(t, want.tokens, got.tokens, msg...)
}

func traceOf(t testing.TB, c *Context, seq int32, prompt []int32, n int) trace {
	t.Helper()
	s := newSampler0(t, SamplerParams{})
	var x trace
	x.add(t, prefill(t, c, seq, c.SeqPosMax(seq)+1, prompt, 3, s))
	for len(x.tokens) < n && !c.model.Vocab().IsEOG(x.tokens[len(x.tokens)-1]) {
		b := c.Batch()
		b.N = 0
		b.Add(x.tokens[len(x.tokens)-1], int32(c.SeqPosMax(seq)+1), seq, 3, s)
		require.NoError(t, c.Step())
		x.add(t, b.Out[0])
	}
	return x
}

func TestPromptInPieces(t *testing.T) {
	prompt := chatPrompt(t, "Name three colours, please.")
	want := traceOf(t, newContext(t, ContextParams{}), 0, prompt, 12)
	for _, batch := range []int{16, 5} {
		c := newContext(t, ContextParams{Batch: batch, UBatch: batch})
		requireSame(t, want, traceOf(t, c, 0, prompt, 12), "batch %d", batch)
	}
}

func TestKVTypesAndModes(t *testing.T) {
	prompt := chatPrompt(t, "What is the capital of France?")
	sizes := map[string]int64{}
	for _, kv := range []string{"f16", "q8_0", "q4_0"} {
		for _, unified := range []bool{true, false} {
			c := newContext(t, ContextParams{Ctx: 1024, SeqMax: 2, KVType: kv, Unified: unified})
			require.Equal(t, kv, c.Params().KVType)
			require.Equal(t, "on", c.Params().FlashAttn)
			sizes[kv] = c.KVBytes()
			got := detok(t, complete(t, c, 1, prompt, 12, SamplerParams{}))
			require.NotEmpty(t, got)
			if kv != "q4_0" {
				require.Contains(t, got, "Paris", "%s unified=%v", kv, unified)
			}
		}
	}
	// 2 (K and V) x 30 layers x 192 values x 1024 cells.
	require.Equal(t, int64(2*30*192*1024*2), sizes["f16"])
	require.Equal(t, int64(2*30*192*1024*34/32), sizes["q8_0"])
	require.Equal(t, int64(2*30*192*1024*18/32), sizes["q4_0"])
	c := newContext(t, ContextParams{FlashAttn: "off"})
	require.Contains(t, detok(t, complete(t, c, 0, prompt, 12, SamplerParams{})), "Paris")
}

func TestContextArguments(t *testing.T) {
	m := smolModel(t)
	for _, p := range []ContextParams{
		{Ctx: -1}, {Ctx: 1 << 40}, {Ctx: 256, Batch: -1}, {Ctx: 256, SeqMax: 1000}, {Ctx: 256, Threads: 100000},
		{Ctx: 256, Poll: 101}, {Ctx: 256, KVType: "q5_0"}, {Ctx: 256, FlashAttn: "maybe"},
		{Ctx: 256, KVType: "q8_0", FlashAttn: "off"}, {Ctx: 512, SeqMax: 8},
	} {
		c, err := NewContext(m, p)
		require.Nil(t, c)
		require.Error(t, err, "%+v", p)
		require.True(t, errors.Is(err, ErrArgument) || errors.Is(err, ErrUnsupported), "%+v: %v", p, err)
	}
	c := newContext(t, ContextParams{Ctx: 300, Batch: 4096, UBatch: 8192, SeqMax: 3, Unified: true})
	require.Equal(t, 512, c.Params().Ctx, "rounded up")
	require.Equal(t, 3, c.Params().SeqMax)
	require.LessOrEqual(t, c.Params().Batch, 512)
	require.Equal(t, c.Params().Batch, c.Batch().Cap())
}

func TestOwnContextLength(t *testing.T) {
	c, err := NewContext(smolModel(t), ContextParams{KVType: "q4_0"})
	require.NoError(t, err)
	defer c.Close()
	require.Equal(t, 8192, c.Params().Ctx)
}

func TestStepArguments(t *testing.T) {
	c := newContext(t, ContextParams{SeqMax: 2, Batch: 8})
	s := newSampler0(t, SamplerParams{})
	nv := int32(smolModel(t).Vocab().Size())
	tests := []struct {
		name string
		add  func(b *Batch)
	}{
		{"no rows", func(*Batch) {}},
		{"too many rows", func(b *Batch) { b.N = 9 }},
		{"negative rows", func(b *Batch) { b.N = -1 }},
		{"token below", func(b *Batch) { b.Add(-1, 0, 0, -1, nil) }},
		{"token above", func(b *Batch) { b.Add(nv, 0, 0, -1, nil) }},
		{"sequence below", func(b *Batch) { b.Add(1, 0, -1, -1, nil) }},
		{"sequence above", func(b *Batch) { b.Add(1, 0, 2, -1, nil) }},
		{"does not begin at 0", func(b *Batch) { b.Add(1, 1, 0, -1, nil) }},
		{"negative position", func(b *Batch) { b.Add(1, -1, 0, -1, nil) }},
		{"gap", func(b *Batch) { b.Add(1, 0, 0, -1, nil); b.Add(1, 2, 0, -1, nil) }},
		{"twice the same", func(b *Batch) { b.Add(1, 0, 0, -1, nil); b.Add(1, 0, 0, -1, nil) }},
		{"huge position", func(b *Batch) { b.Add(1, math.MaxInt32, 0, -1, nil) }},
		{"want below", func(b *Batch) { b.Add(1, 0, 0, -2, s) }},
		{"want above", func(b *Batch) { b.Add(1, 0, 0, 2+MaxTop, s) }},
		{"no sampler", func(b *Batch) { b.Add(1, 0, 0, 0, nil) }},
		{"sampler twice", func(b *Batch) { b.Add(1, 0, 0, 0, s); b.Add(1, 0, 1, 0, s) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c.Batch().N = 0
			tt.add(c.Batch())
			require.ErrorIs(t, c.Step(), ErrArgument)
			require.Equal(t, -1, c.SeqPosMax(0))
			require.Equal(t, -1, c.SeqPosMax(1))
		})
	}
	require.False(t, func() bool { b := c.Batch(); b.N = 8; return b.Add(1, 0, 0, -1, nil) }(), "a full batch")
	c.Batch().N = 0
	c.Batch().Add(1, 0, 0, -1, nil)
	require.NoError(t, c.Step(), "no wanted row is fine")
	require.Equal(t, 0, c.SeqPosMax(0))
}

func TestNoCells(t *testing.T) {
	c := newContext(t, ContextParams{Ctx: 256, SeqMax: 3, Unified: true, Batch: 256})
	fill := make([]int32, 200)
	for i := range fill {
		fill[i] = 1000
	}
	prefill(t, c, 0, 0, fill, -1, nil)
	b := c.Batch()
	b.N = 0
	for i := range int32(60) {
		b.Add(1000, i, 1, -1, nil)
	}
	require.ErrorIs(t, c.Step(), ErrNoCells)
	require.Equal(t, 199, c.SeqPosMax(0))
	require.Equal(t, -1, c.SeqPosMax(1), "nothing was changed")
	require.NoError(t, c.SeqRemove(0, 100, math.MaxInt32))
	require.NoError(t, c.Step(), "the same batch fits now")
	require.Equal(t, 59, c.SeqPosMax(1))
}

// Several sequences in one step give what each gives alone.
func TestBatchedAsAlone(t *testing.T) {
	questions := []string{"What is the capital of France?", "Name three colours.", "What is 2+2?", "Say hello."}
	const n = 10
	var alone []trace
	for _, q := range questions {
		alone = append(alone, traceOf(t, newContext(t, ContextParams{}), 0, chatPrompt(t, q), n))
	}
	modes(t, func(t *testing.T, unified bool) {
		c := newContext(t, ContextParams{Ctx: 2048, SeqMax: 4, Unified: unified})
		out := make([]trace, len(questions))
		samplers := make([]*Sampler, len(questions))
		for i, q := range questions {
			samplers[i] = newSampler0(t, SamplerParams{})
			out[i].add(t, prefill(t, c, int32(i), 0, chatPrompt(t, q), 3, samplers[i]))
		}
		v := smolModel(t).Vocab()
		for range n - 1 {
			b := c.Batch()
			b.N = 0
			for i := range out {
				if last := out[i].tokens[len(out[i].tokens)-1]; !v.IsEOG(last) {
					b.Add(last, int32(c.SeqPosMax(int32(i))+1), int32(i), 3, samplers[i])
				}
			}
			if b.N == 0 {
				break
			}
			require.NoError(t, c.Step())
			for r := range b.N {
				out[b.Seq[r]].add(t, b.Out[r])
			}
		}
		for i := range out {
			requireSame(t, alone[i], out[i], questions[i])
		}
	})
}

// A long prefill stops soon after Abort, and the sequence is where it was.
func TestAbort(t *testing.T) {
	c := newContext(t, ContextParams{Ctx: 4096, Batch: 2048, UBatch: 256, SeqMax: 2, Unified: true})
	first := chatPrompt(t, "Hello")
	prefill(t, c, 0, 0, first, -1, nil)
	long := make([]int32, 2000)
	for i := range long {
		long[i] = int32(1000 + i)
	}
	b := c.Batch()
	for try := range 3 {
		b.N = 0
		for i, k := range long {
			b.Add(k, int32(len(first)+i), 0, -1, nil)
		}
		done := make(chan error, 1)
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			done <- c.Step()
		}()
		time.Sleep(time.Duration(10+150*try) * time.Millisecond)
		start := time.Now()
		c.Abort()
		err := <-done
		if err == nil {
			t.Skip("this machine is too fast to abort a prefill of 2000 tokens")
		}
		require.ErrorIs(t, err, ErrAborted)
		t.Logf("stopped after %v", time.Since(start))
		require.Equal(t, len(first)-1, c.SeqPosMax(0), "what the step had done is undone")
	}
	// The context is as good as before.
	s := newSampler0(t, SamplerParams{})
	got := generate(t, c, 0, first[len(first)-1], 4, s)
	require.Len(t, got, 4)
}

// Abort while nothing runs does nothing to the next step.
func TestAbortIdle(t *testing.T) {
	c := newContext(t, ContextParams{})
	c.Abort()
	c.Batch().Add(1, 0, 0, -1, nil)
	require.NoError(t, c.Step())
}

func TestStepAllocatesNothing(t *testing.T) {
	c := newContext(t, ContextParams{Ctx: 1024, SeqMax: 2, Unified: true})
	s := newSampler0(t, SamplerParams{Temperature: 1, TopK: 20, Repeat: 1.1})
	s2 := newSampler0(t, SamplerParams{})
	pos := int32(0)
	b := c.Batch()
	allocs := testing.AllocsPerRun(20, func() {
		b.N = 0
		b.Add(1000, pos, 0, 0, s)
		b.Add(1001, pos, 1, 0, s2)
		if err := c.Step(); err != nil {
			panic(err)
		}
		pos++
	})
	require.Zero(t, allocs)
}

func TestFewThreads(t *testing.T) {
	prompt := chatPrompt(t, "What is the capital of France?")
	for _, p := range []ContextParams{{Threads: 1, ThreadsBatch: 2}, {Threads: 2, ThreadsBatch: 1}, {Threads: 2, Poll: 5}} {
		c := newContext(t, p)
		require.Contains(t, detok(t, complete(t, c, 0, prompt, 10, SamplerParams{})), "Paris")
	}
}
