package cgo

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// modelPath finds a real model, or skips the test.
func modelPath(t testing.TB, name string) string {
	t.Helper()
	dir := os.Getenv("QUERN_MODELS")
	if dir == "" {
		cache := os.Getenv("XDG_CACHE_HOME")
		if cache == "" {
			home, err := os.UserHomeDir()
			require.NoError(t, err)
			cache = filepath.Join(home, ".cache")
		}
		dir = filepath.Join(cache, "quern")
	}
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("no %s in %s: run make test, or set QUERN_MODELS", name, dir)
	}
	return path
}

const smol = "SmolLM2-135M-Instruct.Q4_1.gguf"

var loadSmol = sync.OnceValues(func() (*Model, error) {
	return LoadModel(context.Background(), smolPath, LoadOptions{})
})
var smolPath string

// smolModel is the shared small real model.
func smolModel(t testing.TB) *Model {
	t.Helper()
	smolPath = modelPath(t, smol)
	m, err := loadSmol()
	require.NoError(t, err)
	return m
}

func newContext(t testing.TB, p ContextParams) *Context {
	t.Helper()
	m := smolModel(t)
	if p.Ctx == 0 {
		p.Ctx = 512
	}
	if p.Threads == 0 {
		p.Threads = 1 // no waiting for one another where tests share the machine
	}
	c, err := NewContext(m, p)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func newSampler0(t testing.TB, p SamplerParams) *Sampler {
	t.Helper()
	s, err := NewSampler(smolModel(t), p)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

const chat = "<|im_start|>user\n%s<|im_end|>\n<|im_start|>assistant\n"

func chatPrompt(t testing.TB, text string) []int32 {
	t.Helper()
	toks, err := smolModel(t).Vocab().Tokenize(strings.Replace(chat, "%s", text, 1), true)
	require.NoError(t, err)
	return toks
}

// prefill decodes a prompt from position from on; the last row samples.
func prefill(t testing.TB, c *Context, seq int32, from int, prompt []int32, want int32, s *Sampler) Out {
	t.Helper()
	b := c.Batch()
	for i := 0; i < len(prompt); {
		b.N = 0
		for ; i < len(prompt) && b.N < b.Cap(); i++ {
			w := int32(-1)
			if i == len(prompt)-1 {
				w = want
			}
			require.True(t, b.Add(prompt[i], int32(from+i), seq, w, s))
		}
		require.NoError(t, c.Step())
	}
	return b.Out[b.N-1]
}

// generate continues a sequence by n tokens, or to the end of generation.
func generate(t testing.TB, c *Context, seq int32, first int32, n int, s *Sampler) []int32 {
	t.Helper()
	v := c.model.Vocab()
	out := []int32{first}
	for len(out) < n && !v.IsEOG(out[len(out)-1]) {
		b := c.Batch()
		b.N = 0
		b.Add(out[len(out)-1], int32(c.SeqPosMax(seq)+1), seq, 0, s)
		require.NoError(t, c.Step())
		require.NoError(t, b.Out[0].Err)
		out = append(out, b.Out[0].Token)
	}
	return out
}

// complete runs a prompt alone.
func complete(t testing.TB, c *Context, seq int32, prompt []int32, n int, p SamplerParams) []int32 {
	t.Helper()
	s := newSampler0(t, p)
	s.AcceptPrompt(prompt)
	o := prefill(t, c, seq, 0, prompt, 0, s)
	require.NoError(t, o.Err)
	return generate(t, c, seq, o.Token, n, s)
}

func detok(t testing.TB, toks []int32) string {
	t.Helper()
	v := smolModel(t).Vocab()
	var sb strings.Builder
	for _, k := range toks {
		if !v.IsControl(k) {
			sb.Write(v.Piece(k))
		}
	}
	return sb.String()
}
