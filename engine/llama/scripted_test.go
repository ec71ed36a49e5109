package llama

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"quern/engine"
	"quern/models/testmodel"
)

// The scripted model says what its package promises, at any temperature and
// with each type of KV cache.
func TestScriptedModel(t *testing.T) {
	path := filepath.Join(t.TempDir(), "scripted.gguf")
	require.NoError(t, testmodel.Write(path))
	const (
		tools  = "\n\n# Tools\n<tools>\n{\"name\": \"get_weather\"}\n</tools>"
		result = "Hi<|im_end|>\n<|im_start|>user\n<tool_response>\n18\n</tool_response>"
	)
	call := "<tool_call>\n{\"name\": \"" + testmodel.CallName + "\", \"arguments\": " + testmodel.CallArguments + "}\n</tool_call>"
	for _, kv := range []string{"f16", "q8_0"} {
		b, err := Open(t.Context(), path, Options{Cells: 2048, Parallel: 2, Threads: 1, Batch: 256, UBatch: 256, KVType: kv})
		require.NoError(t, err)
		e := engine.New(b, engine.Config{})
		for name, c := range map[string]struct{ system, user, want string }{
			"plain":  {"", "Hi", testmodel.Plain},
			"tools":  {tools, "Hi", call},
			"notool": {tools, "Hi /notool", testmodel.Plain},
			"result": {tools, result, testmodel.ToolAnswer},
			"long":   {"", "go /long", testmodel.Plain + testmodel.Plain},
		} {
			for _, temperature := range []float32{0, 1} {
				prompt, err := b.Vocab().Tokenize("<|im_start|>system\nx"+c.system+"<|im_end|>\n<|im_start|>user\n"+c.user+"<|im_end|>\n<|im_start|>assistant\n", true)
				require.NoError(t, err)
				sampler, err := e.NewSampler(engine.SamplerParams{Temperature: temperature, Seed: 7})
				require.NoError(t, err)
				s, err := e.Submit(t.Context(), engine.Request{Prompt: prompt, MaxTokens: 34, Sampler: sampler, Logprobs: -1})
				require.NoError(t, err)
				text := ""
				for _, tok := range collect(t, s) {
					text += string(b.Vocab().Piece(tok))
				}
				require.Equal(t, c.want, text, "%s, %s, temperature %v", name, kv, temperature)
			}
		}
		require.NoError(t, e.Close())
	}
}
