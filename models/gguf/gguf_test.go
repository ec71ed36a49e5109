package gguf

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// small is a file with every kind of entry that the reader looks at.
func small(t testing.TB) []byte {
	t.Helper()
	var w Writer
	w.Text("general.architecture", "llama")
	w.Text("general.name", "tiny")
	w.Uint32("general.file_type", 15)
	w.Uint32("llama.context_length", 4096)
	w.Uint32("llama.embedding_length", 64)
	w.Uint32("llama.block_count", 2)
	w.Int32s("llama.attention.head_count", []int32{4, 8, 4})
	w.Uint32("llama.attention.head_count_kv", 2)
	w.Uint32("llama.attention.sliding_window", 512)
	w.Uint32("llama.expert_count", 8)
	w.Uint32("llama.expert_used_count", 2)
	w.Float32("general.sampling.temp", 0.25)
	w.Uint32("general.sampling.top_k", 20)
	w.Text("tokenizer.ggml.model", "gpt2")
	w.Text("tokenizer.ggml.pre", "qwen2")
	w.Texts("tokenizer.ggml.tokens", append([]string{"a", "<|end|>", "<|bos|>"}, make([]string, keepItems)...))
	w.Int32s("tokenizer.ggml.token_type", make([]int32, keepItems+3))
	w.Uint32("tokenizer.ggml.eos_token_id", 1)
	w.Uint32("tokenizer.ggml.bos_token_id", 2)
	w.Uint32("tokenizer.ggml.padding_token_id", 1<<31)
	w.Bool("tokenizer.ggml.add_bos_token", false)
	w.Text("tokenizer.chat_template", "plain")
	w.Text("tokenizer.chat_template.tool_use", "with tools")
	w.Tensor("token_embd.weight", make([]float32, 64*3), 64, 3)
	w.Tensor("norm.weight", make([]float32, 5), 5)
	var b bytes.Buffer
	_, err := w.WriteTo(&b)
	require.NoError(t, err)
	return b.Bytes()
}

func read(b []byte) (*File, error) { return Read(bytes.NewReader(b), int64(len(b))) }

func TestInfo(t *testing.T) {
	b := small(t)
	f, err := read(b)
	require.NoError(t, err)
	require.NoError(t, f.CheckTensors())
	i := f.Info()
	require.Equal(t, "tiny", i.Name)
	require.Equal(t, "llama", i.Architecture)
	require.Equal(t, "Q4_K_M", i.Quantization)
	require.Equal(t, uint64(64*3+5), i.Parameters)
	require.Equal(t, int64(len(b)), i.FileSize)
	require.Equal(t, []int{4096, 64, 2, 8, 2, 8, 8, 512, 8, 2}, []int{
		i.ContextLength, i.EmbeddingLength, i.Layers, i.Heads, i.HeadsKV,
		i.KeyLength, i.ValueLength, i.SlidingWindow, i.Experts, i.ExpertsUsed,
	})
	require.Equal(t, "gpt2", i.TokenizerModel)
	require.Equal(t, "qwen2", i.TokenizerPre)
	require.Equal(t, keepItems+3, i.VocabSize)
	require.False(t, *i.AddBOS)
	require.Nil(t, i.AddEOS)
	require.Equal(t, "plain", i.ChatTemplate)
	require.Equal(t, []NamedTemplate{{"tool_use", "with tools"}}, i.ChatTemplates)
	eos, ok := i.Special("eos")
	require.True(t, ok)
	require.Equal(t, Special{"eos", 1, "<|end|>"}, eos)
	bos, _ := i.Special("bos")
	require.Equal(t, "<|bos|>", bos.Text)
	pad, _ := i.Special("padding")
	require.Equal(t, Special{"padding", 1 << 31, ""}, pad)
	require.Len(t, i.Sampling, 2)
	require.Equal(t, "temp", i.Sampling[0].Key)
	temp, _ := i.Sampling[0].Value.Float()
	require.InDelta(t, 0.25, temp, 0)

	tokens, _ := f.Get("tokenizer.ggml.tokens")
	arr, _ := tokens.Array()
	require.Nil(t, arr.Items, "a vocabulary stays in the file")
	require.Equal(t, "[4099 × str]", tokens.String())
	heads, _ := f.Get("llama.attention.head_count")
	require.Equal(t, "[4 8 4]", heads.String())
}

// The state of a Qwen3-Next of 48 layers, each fourth of attention, and that of a
// model that lists its layers.
func TestRecurrentState(t *testing.T) {
	info := func(arch string, more func(w *Writer)) Info {
		var w Writer
		w.Text("general.architecture", arch)
		for key, v := range map[string]uint32{
			"block_count": 48, "ssm.conv_kernel": 4, "ssm.state_size": 128, "ssm.inner_size": 4096, "ssm.group_count": 16, "attention.head_count": 16,
		} {
			w.Uint32(arch+"."+key, v)
		}
		more(&w)
		var b bytes.Buffer
		_, err := w.WriteTo(&b)
		require.NoError(t, err)
		f, err := read(b.Bytes())
		require.NoError(t, err)
		return f.Info()
	}
	const layer = 3*(4096+2*16*128) + 128*4096
	i := info("qwen3next", func(w *Writer) {
		w.Uint32("qwen3next.full_attention_interval", 4)
		w.Uint32("qwen3next.attention.head_count_kv", 2)
	})
	require.Equal(t, 36*layer, i.StateValues)
	require.Equal(t, 24, i.HeadsKVAll)
	require.True(t, i.OddCache)
	i = info("nemotron_h", func(w *Writer) { w.Int32s("nemotron_h.attention.head_count_kv", []int32{0, 8, 0, 8, 0, 0}) })
	require.Equal(t, 4*layer, i.StateValues)
	require.Equal(t, 16, i.HeadsKVAll)
}

func TestDominantTensorTypeNamesTheQuantization(t *testing.T) {
	f := &File{Tensors: []Tensor{
		{Type: 0, Dims: []uint64{100}}, {Type: 12, Dims: []uint64{256, 4}}, {Type: 14, Dims: []uint64{256, 2}},
	}}
	require.Equal(t, "Q4_K", f.Info().Quantization)
}

func TestBadFiles(t *testing.T) {
	good := small(t)
	edit := func(at int, with ...byte) []byte {
		b := bytes.Clone(good)
		copy(b[at:], with)
		return b
	}
	kvs := len("GGUF") + 4 + 8 + 8
	firstType := kvs + 8 + len("general.architecture")
	header := func(version uint32, tensors, n uint64, rest string) []byte {
		b := binary.LittleEndian.AppendUint32([]byte("GGUF"), version)
		b = binary.LittleEndian.AppendUint64(b, tensors)
		return append(binary.LittleEndian.AppendUint64(b, n), rest...)
	}
	le := func(n uint64) string { return string(binary.LittleEndian.AppendUint64(nil, n)) }
	le4 := func(n uint32) string { return string(binary.LittleEndian.AppendUint32(nil, n)) }
	for name, c := range map[string]struct {
		file []byte
		says string
	}{
		"empty":          {nil, "only 0 bytes"},
		"other format":   {[]byte("hello world, this is text"), `begins with "hell"`},
		"lfs pointer":    {[]byte("version https://git-lfs.github.com/spec/v1"), "Git LFS pointer"},
		"html":           {[]byte("<!DOCTYPE html><html>"), "HTML page"},
		"big endian":     {edit(4, 0, 0, 0, 3), "big endian"},
		"version 1":      {edit(4, 1), "version 1 is not supported"},
		"version 99":     {edit(4, 99), "version 99 is not supported"},
		"tensor count":   {edit(8, 255, 255, 255, 255, 255, 255, 255, 255), "tensors claimed"},
		"kv count":       {edit(16, 255, 255, 255, 255, 255, 255), "metadata entries claimed"},
		"key length":     {edit(kvs, 255, 255, 255, 255, 255), "key of metadata entry 1"},
		"value type":     {edit(firstType, 77), `value of "general.architecture"`},
		"cut header":     {good[:252], "ends inside the header"},
		"array of array": {header(3, 0, 1, le(1)+"k"+le4(9)+le4(9)+le(1)), "unsupported element arr"},
		"array too long": {header(3, 0, 1, le(1)+"k"+le4(9)+le4(4)+le(1<<60)), "does not fit"},
		"strings":        {header(3, 0, 1, le(1)+"k"+le4(9)+le4(8)+le(1<<61)), "does not fit"},
		"string length":  {header(3, 0, 1, le(1)+"k"+le4(8)+le(1<<62)), "the limit is"},
		"alignment":      {header(3, 0, 1, le(17)+"general.alignment"+le4(4)+le4(3)), "power of two"},
		"key twice":      {header(3, 0, 2, strings.Repeat(le(1)+"k"+le4(7)+"\x01", 2)), "occurs twice"},
		"dimensions":     {header(3, 1, 0, le(1)+"t"+le4(9)), "9 dimensions"},
		"overflow":       {header(3, 1, 0, le(1)+"t"+le4(2)+le(1<<40)+le(1<<40)+le4(0)+le(0)), "overflow"},
		"ragged block":   {header(3, 1, 0, le(1)+"t"+le4(1)+le(33)+le4(2)+le(0)), "not whole Q4_0 blocks"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := read(c.file)
			require.ErrorContains(t, err, c.says)
		})
	}
}

func TestCheckTensors(t *testing.T) {
	b := small(t)
	f, err := read(b[:len(b)-20])
	require.NoError(t, err, "the header is whole")
	require.ErrorContains(t, f.CheckTensors(), `truncated: tensor "norm.weight"`)

	f, err = read(b)
	require.NoError(t, err)
	f.Tensors[0].Offset = 1<<63 - 1
	require.Error(t, f.CheckTensors())
	f.Tensors[0].Offset = 8
	require.ErrorContains(t, f.CheckTensors(), "multiple of 32")
	f.Tensors[0] = Tensor{Name: "t", Type: 4}
	require.ErrorContains(t, f.CheckTensors(), "unknown type 4")
}

func TestOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.gguf")
	_, err := Open(path)
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = Open(t.TempDir())
	require.ErrorContains(t, err, "not a regular file")
	require.NoError(t, os.WriteFile(path, small(t), 0o600))
	f, err := Open(path)
	require.NoError(t, err)
	require.Equal(t, "tiny", f.Info().Name)
}

// modelDir is where real models lie, if any were fetched.
func modelDir() string {
	if d := os.Getenv("QUERN_MODELS"); d != "" {
		return d
	}
	d, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(d, "quern")
}

func TestRealModel(t *testing.T) {
	path := filepath.Join(modelDir(), "SmolLM2-135M-Instruct.Q4_1.gguf")
	if _, err := os.Stat(path); err != nil {
		t.Skipf("model not fetched: %v", err)
	}
	f, err := Open(path)
	require.NoError(t, err)
	require.NoError(t, f.CheckTensors())
	i := f.Info()
	require.Equal(t, "llama", i.Architecture)
	require.Equal(t, "Q4_1", i.Quantization)
	require.Equal(t, 49152, i.VocabSize)
	require.InDelta(t, 135e6, float64(i.Parameters), 1e6)
	require.Contains(t, i.ChatTemplate, "<|im_start|>")
	eos, _ := i.Special("eos")
	require.Equal(t, "<|im_end|>", eos.Text)
}
