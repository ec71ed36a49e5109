package cgo

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"quern/models/testmodel"
)

// tinyModel is the bytes of a small valid file.
func tinyModel(t testing.TB) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tiny.gguf")
	require.NoError(t, testmodel.Write(path))
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return b
}

func edit(b []byte, old, with string) []byte {
	return bytes.Replace(bytes.Clone(b), []byte(old), []byte(with), 1)
}

func put(b []byte, at int, v uint64) []byte {
	b = bytes.Clone(b)
	binary.LittleEndian.PutUint64(b[at:], v)
	return b
}

func TestWrongFiles(t *testing.T) {
	tiny := tinyModel(t)
	tokens := bytes.Index(tiny, []byte("tokenizer.ggml.tokens")) + len("tokenizer.ggml.tokens") + 8
	tests := []struct {
		name string
		data []byte
		want string
	}{
		{"empty", nil, "the file is empty"},
		{"text", []byte("<!DOCTYPE html><html>"), `not a GGUF file: it begins with "<!DO"`},
		{"short", []byte("GG"), "not a GGUF file"},
		{"magic only", tiny[:4], "truncated: the file ends in the header"},
		{"header only", tiny[:24], "corrupt header"},
		{"random after magic", append([]byte("GGUF\x03\x00\x00\x00"), randomBytes(4096)...), "corrupt header"},
		{"version 1", edit(tiny, "GGUF\x03", "GGUF\x01"), "version 1 is no longer supported"},
		{"version 9", edit(tiny, "GGUF\x03", "GGUF\x09"), "version 9 is not supported"},
		{"big endian", edit(tiny, "GGUF\x03\x00\x00\x00", "GGUF\x00\x00\x00\x03"), "big-endian"},
		{"absurd tensors", put(tiny, 8, 1<<60), "tensors in a file of"},
		{"absurd keys", put(tiny, 16, 1<<60), "keys in a file of"},
		{"absurd array", put(tiny, tokens, 1<<50), "an array of 1125899906842624 elements"},
		{"cut in the tokens", tiny[:tokens+200], `truncated: the file ends in key "tokenizer.ggml.tokens"`},
		{"cut in the tensor table", tiny[:bytes.Index(tiny, []byte("token_embd.weight"))+30], "truncated: the file ends in tensor"},
		{"cut in the data", tiny[:len(tiny)-1], "truncated: tensor"},
		{"cut at half", tiny[:len(tiny)/2], "truncated: tensor"},
		{"unknown architecture", edit(tiny, "\x05\x00\x00\x00\x00\x00\x00\x00llama", "\x05\x00\x00\x00\x00\x00\x00\x00lamma"), "unknown model architecture: 'lamma'"},
		{"missing tensor", edit(tiny, "output_norm.weight", "output_narm.weight"), "tensor 'output_norm.weight'"},
		{"missing key", edit(tiny, "llama.block_count", "llama.block_caunt"), "key not found in model: llama.block_count"},
		{"no tokenizer", edit(tiny, "tokenizer.ggml.model", "tokenizer.ggml.madel"), "tokenizer.ggml.model"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "m.gguf")
			require.NoError(t, os.WriteFile(path, tt.data, 0o600))
			m, err := LoadModel(context.Background(), path, LoadOptions{})
			require.Nil(t, m)
			require.ErrorContains(t, err, tt.want)
			require.NotContains(t, err.Error(), "llama_model_load")
		})
	}
	_, err := LoadModel(context.Background(), filepath.Join(t.TempDir(), "none"), LoadOptions{})
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = LoadModel(context.Background(), t.TempDir(), LoadOptions{})
	require.ErrorContains(t, err, "not a regular file")
}

func randomBytes(n int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func TestTruncatedAnywhere(t *testing.T) {
	tiny := tinyModel(t)
	path := filepath.Join(t.TempDir(), "m.gguf")
	for n := 0; n < len(tiny); n += 1 + n/7 {
		require.NoError(t, os.WriteFile(path, tiny[:n], 0o600))
		_, err := LoadModel(context.Background(), path, LoadOptions{})
		require.Error(t, err, "cut to %d bytes", n)
	}
}

func TestSplitNeedsItsParts(t *testing.T) {
	// An unused key of the tiny model becomes split.count = 3.
	tiny := tinyModel(t)
	key := "llama.context_length"
	at := bytes.Index(tiny, []byte(key))
	require.Positive(t, at)
	old := tiny[at-8 : at+len(key)+8]
	with := fmt.Appendf(binary.LittleEndian.AppendUint64(nil, uint64(len("split.count"))), "split.count\x04\x00\x00\x00\x03\x00\x00\x00")
	dir := t.TempDir()
	data := append(bytes.Replace(tiny, old, with, 1), make([]byte, 64)...)
	path := filepath.Join(dir, "m-00001-of-00003.gguf")
	require.NoError(t, os.WriteFile(path, data, 0o600))
	_, err := LoadModel(context.Background(), path, LoadOptions{})
	require.ErrorContains(t, err, "part 2 of 3")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "m.gguf"), data, 0o600))
	_, err = LoadModel(context.Background(), filepath.Join(dir, "m.gguf"), LoadOptions{})
	require.ErrorContains(t, err, "first of 3 parts")
}

// Whatever stands in a header, loading it and one step end in a result or an
// error. (Run long with more rounds when the check or llama.cpp changes.)
func TestHostileHeaders(t *testing.T) {
	tiny := tinyModel(t)
	regions := [][2]int{
		{0, bytes.Index(tiny, []byte("tokenizer.ggml.tokens"))},
		{bytes.Index(tiny, []byte("tokenizer.ggml.token_type")), bytes.Index(tiny, []byte("tokenizer.ggml.merges"))},
		{bytes.Index(tiny, []byte("token_embd.weight")), bytes.Index(tiny, []byte("token_embd.weight")) + 800},
	}
	values := []uint32{0, 1, 2, 3, 7, 255, 65535, 1 << 20, 1 << 31, 0xffffffff, 0x7f800000, 0x7fc00000}
	r := rand.New(rand.NewPCG(3, 4))
	path := filepath.Join(t.TempDir(), "m.gguf")
	loaded := 0
	for range 400 {
		b := bytes.Clone(tiny)
		reg := regions[r.IntN(len(regions))]
		for range 1 + r.IntN(3) {
			at := reg[0] + r.IntN(reg[1]-reg[0])
			if r.IntN(2) == 0 {
				binary.LittleEndian.PutUint32(b[at:], values[r.IntN(len(values))])
			} else {
				b[at] = byte(r.Uint32())
			}
		}
		require.NoError(t, os.WriteFile(path, b, 0o600))
		m, err := LoadModel(context.Background(), path, LoadOptions{})
		if err == nil {
			loaded++
			exercise(t, m)
			m.Close()
		}
	}
	require.Positive(t, loaded)
}

// exercise takes whatever model through one step.
func exercise(t *testing.T, m *Model) {
	t.Helper()
	toks, err := m.Vocab().Tokenize("Hello there, <|im_end|> 42", true)
	if err != nil || len(toks) == 0 {
		return
	}
	c, err := NewContext(m, ContextParams{Ctx: 256, Batch: 64})
	if err != nil {
		return
	}
	defer c.Close()
	s, err := NewSampler(m, SamplerParams{})
	require.NoError(t, err)
	defer s.Close()
	b := c.Batch()
	for i, k := range toks {
		w := int32(-1)
		if i == len(toks)-1 {
			w = 0
		}
		b.Add(k, int32(i), 0, w, s)
	}
	_ = c.Step()
}

func FuzzCheckHeader(f *testing.F) {
	tiny := tinyModel(f)
	f.Add(tiny[:200])
	f.Add(tiny[:13000])
	f.Add([]byte("GGUF"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := checkHeader(bytes.NewReader(b), int64(len(b))); err != nil {
			require.NotEmpty(t, strings.TrimSpace(err.Error()))
		}
	})
}
