package engine_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"quern/engine"
	"quern/engine/enginetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is an engine on a fake, closed and checked for leaks at the end.
type rig struct {
	*engine.Engine
	fake *enginetest.Fake
	t    testing.TB
}

func newRig(t testing.TB, l engine.Limits, c engine.Config, setup ...func(*enginetest.Fake)) *rig {
	t.Helper()
	return newRigOf(t, l, &c, setup...)
}

// newRigOf lets setup change the configuration.
func newRigOf(t testing.TB, l engine.Limits, c *engine.Config, setup ...func(*enginetest.Fake)) *rig {
	t.Helper()
	f := enginetest.New(t, l)
	for _, s := range setup {
		s(f)
	}
	r := &rig{engine.New(f, *c), f, t}
	t.Cleanup(r.close)
	return r
}

func (r *rig) close() {
	require.NoError(r.t, r.Close())
	require.Zero(r.t, r.fake.OpenSamplers(), "samplers not closed")
	require.Zero(r.t, r.fake.CellsUsed(), "cells in use after Close")
	require.Zero(r.t, r.fake.Sequences(), "sequences in use after Close")
}

// prompt makes n tokens that differ from those of any other seed.
func prompt(seed, n int) []engine.Token {
	p := make([]engine.Token, n)
	x := uint64(seed)*2654435761 + 12345
	for i := range p {
		x = x*6364136223846793005 + 1442695040888963407
		p[i] = engine.Token(x >> 33 % 1000)
	}
	return p
}

func join(parts ...[]engine.Token) []engine.Token {
	var p []engine.Token
	for _, x := range parts {
		p = append(p, x...)
	}
	return p
}

func (r *rig) submit(req engine.Request) *engine.Stream {
	r.t.Helper()
	if req.Logprobs == 0 {
		req.Logprobs = -1
	}
	s, err := r.Submit(context.Background(), req)
	require.NoError(r.t, err)
	return s
}

// collect reads a stream to its end.
func collect(s *engine.Stream) ([]engine.Token, error) {
	var out []engine.Token
	for {
		o, err := s.Recv(context.Background())
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		for _, x := range o {
			out = append(out, x.Token)
		}
	}
}

func (r *rig) run(req engine.Request) ([]engine.Token, engine.Result) {
	r.t.Helper()
	s := r.submit(req)
	out, err := collect(s)
	require.NoError(r.t, err)
	return out, s.Result()
}

func TestOneRequest(t *testing.T) {
	r := newRig(t, enginetest.Small, engine.Config{})
	p := prompt(1, 300)
	out, res := r.run(engine.Request{Prompt: p, MaxTokens: 20})
	require.Equal(t, r.fake.Alone(p, engine.SamplerParams{}, 20), out)
	require.Equal(t, engine.ReasonLength, res.Reason)
	require.Equal(t, 300, res.PromptTokens)
	require.Equal(t, 20, res.OutputTokens)
	require.Zero(t, res.CachedTokens)
	require.Positive(t, res.TTFT)
	require.GreaterOrEqual(t, res.Total, res.TTFT+res.Decode)
}

func TestStopIsCountedNotDelivered(t *testing.T) {
	r := newRig(t, enginetest.Small, engine.Config{}, func(f *enginetest.Fake) { f.EOG, f.EOGEvery = 7, 5 })
	p := prompt(1, 10)
	want := r.fake.Alone(p, engine.SamplerParams{}, 100)
	out, res := r.run(engine.Request{Prompt: p, MaxTokens: 100})
	require.Equal(t, want[:len(want)-1], out)
	require.Equal(t, engine.ReasonStop, res.Reason)
	require.Equal(t, len(want), res.OutputTokens)
}

// Inserted tokens stand in the output and in the KV cache as sampled ones do.
func TestInsert(t *testing.T) {
	r := newRig(t, enginetest.Small, engine.Config{})
	asked := 0
	insert := func(engine.Token) []engine.Token {
		if asked++; asked == 3 {
			return []engine.Token{501, 502, 503}
		}
		return nil
	}
	p := prompt(1, 30)
	out, res := r.run(engine.Request{Prompt: p, MaxTokens: 10, Insert: insert})
	require.Len(t, out, 10)
	require.Equal(t, []engine.Token{501, 502, 503}, out[3:6])
	require.Equal(t, r.fake.Alone(join(p, out[:6]), engine.SamplerParams{}, 4), out[6:], "the model goes on from them")
	require.Equal(t, engine.ReasonLength, res.Reason)
	require.Equal(t, 10, res.OutputTokens)
	require.Equal(t, 6, asked, "neither about inserted tokens nor about the last")
	_, res = r.run(engine.Request{Prompt: join(p, out), MaxTokens: 1})
	require.Equal(t, 39, res.CachedTokens)

	asked = 0
	out, res = r.run(engine.Request{Prompt: p, MaxTokens: 5, Insert: insert})
	require.Equal(t, []engine.Token{501, 502}, out[3:], "as far as there is room")
	require.Equal(t, engine.ReasonLength, res.Reason)
}

func TestTurnReusesTurn(t *testing.T) {
	r := newRig(t, enginetest.Small, engine.Config{})
	p := prompt(1, 200)
	for turn := range 4 {
		out, res := r.run(engine.Request{Prompt: p, MaxTokens: 30})
		require.Equal(t, r.fake.Alone(p, engine.SamplerParams{}, 30), out)
		if turn > 0 {
			// All but the last token of the turn before, which was never computed.
			require.Equal(t, len(p)-21, res.CachedTokens)
		}
		p = join(p, out, prompt(10+turn, 20))
	}
	require.Equal(t, 1, r.Stats().IdlePrefixes)
}

func TestSamePromptTwice(t *testing.T) {
	r := newRig(t, enginetest.Small, engine.Config{})
	p := prompt(1, 200)
	a, _ := r.run(engine.Request{Prompt: p, MaxTokens: 30})
	b, res := r.run(engine.Request{Prompt: p, MaxTokens: 30})
	require.Equal(t, a, b)
	require.Equal(t, 199, res.CachedTokens)
	// A strict prefix of what is cached.
	c, res := r.run(engine.Request{Prompt: p[:100], MaxTokens: 5})
	require.Equal(t, r.fake.Alone(p[:100], engine.SamplerParams{}, 5), c)
	require.Equal(t, 99, res.CachedTokens)
	// One that departs inside.
	q := join(p[:150], prompt(2, 50))
	d, res := r.run(engine.Request{Prompt: q, MaxTokens: 5})
	require.Equal(t, r.fake.Alone(q, engine.SamplerParams{}, 5), d)
	require.Equal(t, 150, res.CachedTokens)
}

func TestSharedHeadIsComputedOnce(t *testing.T) {
	r := newRig(t, enginetest.Small, engine.Config{}, func(f *enginetest.Fake) {
		f.Cost = func(*engine.Batch) time.Duration { return time.Millisecond }
	})
	head := prompt(1, 300)
	var streams []*engine.Stream
	for i := range 8 {
		streams = append(streams, r.submit(engine.Request{Prompt: join(head, prompt(100+i, 10)), MaxTokens: 10}))
	}
	cached := 0
	for i, s := range streams {
		out, err := collect(s)
		require.NoError(t, err)
		require.Equal(t, r.fake.Alone(join(head, prompt(100+i, 10)), engine.SamplerParams{}, 10), out)
		cached += s.Result().CachedTokens
	}
	require.Equal(t, 7*300, cached)
	require.Equal(t, 300+8*10+8*9, r.fake.Rows())
}
