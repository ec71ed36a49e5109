package llama

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"quern/engine"
)

// modelPath finds a real model, or skips the test.
func modelPath(t testing.TB, name string) string {
	t.Helper()
	dir := os.Getenv("QUERN_MODELS")
	if dir == "" {
		cache, err := os.UserCacheDir()
		require.NoError(t, err)
		dir = filepath.Join(cache, "quern")
	}
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("%s is not there: make test fetches it", path)
	}
	return path
}

func open(t testing.TB, name string, o Options, c engine.Config) (*Backend, *engine.Engine) {
	t.Helper()
	b, err := Open(t.Context(), modelPath(t, name), o)
	require.NoError(t, err)
	e := engine.New(b, c)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return b, e
}

func collect(t testing.TB, s *engine.Stream) []engine.Token {
	t.Helper()
	var all []engine.Token
	for {
		out, err := s.Recv(context.Background())
		for _, o := range out {
			all = append(all, o.Token)
		}
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
	}
}

const smol = "SmolLM2-135M-Instruct.Q4_1.gguf"

func TestRealAnswer(t *testing.T) {
	b, e := open(t, smol, Options{Cells: 2048, Parallel: 4, Threads: 2, Batch: 512, UBatch: 512, KVType: "f16"}, engine.Config{})
	prompt, err := b.Vocab().Tokenize("<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n", true)
	require.NoError(t, err)
	for range 2 {
		sampler, err := e.NewSampler(engine.SamplerParams{})
		require.NoError(t, err)
		s, err := e.Submit(t.Context(), engine.Request{Prompt: prompt, MaxTokens: 32, Sampler: sampler, Logprobs: -1})
		require.NoError(t, err)
		text := ""
		for _, tok := range collect(t, s) {
			text += string(b.Vocab().Piece(tok))
		}
		require.Contains(t, text, "Paris")
		t.Log(text, s.Result())
	}
}
