package models

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"quern/models/gguf"
	"quern/models/testmodel"
)

// write makes a header-only model file.
func write(t *testing.T, fill func(w *gguf.Writer)) string {
	t.Helper()
	w := &gguf.Writer{}
	w.Text("general.architecture", "llama")
	fill(w)
	path := filepath.Join(t.TempDir(), "some-model.gguf")
	require.NoError(t, w.WriteFile(path))
	return path
}

func TestReadScriptedModel(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mech.gguf")
	require.NoError(t, testmodel.Write(path))
	c, err := Read(path, Options{})
	require.NoError(t, err)
	require.Equal(t, "mech", c.ID)
	require.Equal(t, "hermes", c.Format.Name)
	require.Equal(t, testmodel.ContextLength, c.Info.ContextLength)
	require.True(t, c.Template.Caps().Tools)
	require.InDelta(t, smallTemperature, c.Sampling.Temperature, 1e-9, "a small model")
}

func TestFormat(t *testing.T) {
	const mute = `{% for m in messages %}<|{{ m.role }}|>{{ m.content }}</s>{% endfor %}<|assistant|>`
	for _, tc := range []struct {
		name, template string
		option         string
		want, reason   string
	}{
		{"no template at all", "", "", "hermes", "offers no tools"},
		{"a template without tools", mute, "", "hermes", "offers no tools"},
		{"marks of a form that the template never offers tools in", mute + "{# [TOOL_CALLS] #}", "", "hermes", "offers no tools"},
		{"set by hand", mute, "mistral_v7", "mistral_v7", "configuration"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := write(t, func(w *gguf.Writer) {
				if tc.template != "" {
					w.Text("tokenizer.chat_template", tc.template)
				}
			})
			c, err := Read(path, Options{ToolFormat: tc.option})
			require.NoError(t, err)
			require.Equal(t, tc.want, c.Format.Name)
			require.Contains(t, c.FormatReason, tc.reason)
		})
	}
}

func TestErrors(t *testing.T) {
	good := write(t, func(*gguf.Writer) {})
	_, err := Read(good, Options{ToolFormat: "klingon"})
	require.ErrorContains(t, err, "klingon")
	_, err = Read(good, Options{TemplateFile: "/nowhere/t.jinja"})
	require.ErrorContains(t, err, "/nowhere/t.jinja")
	broken := filepath.Join(t.TempDir(), "t.jinja")
	require.NoError(t, os.WriteFile(broken, []byte("{% for %}"), 0o600))
	_, err = Read(good, Options{TemplateFile: broken})
	require.ErrorContains(t, err, "chat template")
	_, err = Read(filepath.Join(t.TempDir(), "none.gguf"), Options{})
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestSampling(t *testing.T) {
	path := write(t, func(w *gguf.Writer) {
		w.Float32("general.sampling.temp", 0.6)
		w.Float32("general.sampling.top_p", 0.95)
		w.Uint32("general.sampling.top_k", 20)
	})
	c, err := Read(path, Options{})
	require.NoError(t, err)
	require.InDelta(t, 0.6, c.Sampling.Temperature, 1e-6)
	require.InDelta(t, 0.95, c.Sampling.TopP, 1e-6)
	require.Equal(t, 20, c.Sampling.TopK)
	require.InDelta(t, plain.MinP, c.Sampling.MinP, 1e-9, "what the file leaves open stays")

	require.InDelta(t, plain.Temperature, samplingFor(gguf.Info{Parameters: 8e9}).Temperature, 1e-9)
}
