package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"quern/models/gguf"
	"quern/models/testmodel"
)

// quern runs a command line as main does.
func quern(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return quernReading(t, "", args...)
}

// quernReading gives the command a standard input.
func quernReading(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), args, strings.NewReader(stdin), &out, &errs)
	return code, out.String(), errs.String()
}

func TestUsageErrors(t *testing.T) {
	for _, tc := range []struct {
		name string
		args []string
		want []string
	}{
		{"unknown command", []string{"sevre"}, []string{`unknown command "sevre"`, "Did you mean this?", "serve", "See quern --help"}},
		{"unknown flag", []string{"show", "--colour"}, []string{"--colour", "See quern show --help"}},
		{"no model to show", []string{"show"}, []string{"quern show takes one argument"}},
		{"two models", []string{"serve", "a", "b"}, []string{"serves one model"}},
		{"model twice", []string{"serve", "a", "--model", "b"}, []string{"given twice"}},
		{"no model", []string{"serve"}, []string{"no model", "make run"}},
		{"flag out of its limits", []string{"serve", "m.gguf", "--parallel", "0"}, []string{"parallel: 0", "1 to 256"}},
		{"argument to version", []string{"version", "x"}, []string{"takes no arguments"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			code, stdout, stderr := quern(t, tc.args...)
			require.Equal(t, exitUsage, code)
			require.Empty(t, stdout)
			for _, want := range tc.want {
				require.Contains(t, stderr, want)
			}
		})
	}
}

func TestUnknownVariable(t *testing.T) {
	t.Setenv("QUERN_CTXSIZE", "1")
	code, _, stderr := quern(t, "serve", "m.gguf")
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "QUERN_CTXSIZE")
}

func TestVersion(t *testing.T) {
	code, stdout, _ := quern(t, "version", "--json")
	require.Equal(t, exitOK, code)
	var v provenance
	require.NoError(t, json.Unmarshal([]byte(stdout), &v))
	require.NotEmpty(t, v.Version)
	require.NotEmpty(t, v.Features)

	code, stdout, _ = quern(t, "version")
	require.Equal(t, exitOK, code)
	require.Contains(t, stdout, "quern "+v.Version)
}

func TestCPUOf(t *testing.T) {
	require.Equal(t, "znver3", cpuOf("-O3 -march=znver3 -mavx2 -DX"))
	require.Equal(t, "native", cpuOf("-O3 -mcpu=native"))
	require.Empty(t, cpuOf("-O2 -g"))
}

func TestShow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.gguf")
	w := gguf.Writer{}
	w.Text("general.architecture", "llama")
	w.Text("general.name", "evil \x1b[31m name")
	w.Text("tokenizer.chat_template", "{{ '<b>' }}")
	require.NoError(t, w.WriteFile(path))

	code, stdout, stderr := quern(t, "show", path)
	require.Equal(t, exitOK, code, stderr)
	require.Contains(t, stdout, "evil ·[31m name", "a file cannot steer the terminal")

	code, stdout, _ = quern(t, "show", "--template", path)
	require.Equal(t, exitOK, code)
	require.Equal(t, "{{ '<b>' }}\n", stdout)

	code, stdout, _ = quern(t, "show", "--json", path)
	require.Equal(t, exitOK, code)
	require.Contains(t, stdout, `"chat_template": "{{ '<b>' }}"`)
	require.True(t, json.Valid([]byte(stdout)))

	code, stdout, _ = quern(t, "show", "--metadata", "--tensors", path)
	require.Equal(t, exitOK, code)
	require.Contains(t, stdout, "general.architecture")

	require.NoError(t, os.WriteFile(path, []byte("PK\x03\x04"), 0o600))
	code, _, stderr = quern(t, "show", path)
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "zip archive")
}

func TestRenderWithoutAModel(t *testing.T) {
	dir := t.TempDir()
	template := filepath.Join(dir, "t.jinja")
	require.NoError(t, os.WriteFile(template, []byte("{% for m in messages %}[{{ m.role }}: {{ m.content }}]{% endfor %}"), 0o600))
	code, stdout, stderr := quernReading(t, `{"input":"a <b>"}`, "render", "--template", template)
	require.Equal(t, exitOK, code, stderr)
	require.Equal(t, "[user: a <b>]\n", stdout)

	lines := `{"id":"one","template":"t.jinja","request":{"instructions":"Be <brief>.","input":"x"}}` + "\n" +
		`{"id":"two","template":"t.jinja","request":{"input":[{"type":"none"}]}}` + "\n"
	code, stdout, stderr = quernReading(t, lines, "render", "--jsonl", "--templates", dir)
	require.Equal(t, exitOK, code, stderr)
	got := strings.Split(stdout, "\n")
	require.Len(t, got, 3)
	require.JSONEq(t, `{"id":"one","prompt":"[system: Be <brief>.][user: x]"}`, got[0])
	require.Contains(t, got[0], "<brief>", "no HTML escapes")
	require.Contains(t, got[1], `{"id":"two","status":400,"error":"input[0].type`)

	for _, row := range []struct {
		stdin string
		code  int
		want  string
		args  []string
	}{
		{"{", exitFailed, "request 1", []string{"--jsonl"}},
		{`{"id":"x","template":"none","request":{}}`, exitFailed, "left out", []string{"--jsonl", "--templates", dir}},
		{"", exitUsage, "m.gguf", []string{"--jsonl", "m.gguf"}},
		{"", exitUsage, "one argument", nil},
	} {
		code, _, stderr := quernReading(t, row.stdin, append([]string{"render"}, row.args...)...)
		require.Equal(t, row.code, code, row.args)
		require.Contains(t, stderr, row.want)
	}
}

func TestRender(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tiny.gguf")
	require.NoError(t, testmodel.Write(path))

	code, stdout, stderr := quernReading(t, `{"input":"good <b> day"}`, "render", path)
	require.Equal(t, exitOK, code, stderr)
	require.Contains(t, stdout, "good <b> day")
	require.Regexp(t, `-- \d+ tokens\n`, stdout)

	code, stdout, stderr = quernReading(t, `{"input":"good <b> day"}`, "render", "--json", path)
	require.Equal(t, exitOK, code, stderr)
	var r struct {
		Prompt   string  `json:"prompt"`
		TokenIDs []int32 `json:"token_ids"`
	}
	require.NoError(t, json.Unmarshal([]byte(stdout), &r))
	require.Contains(t, stdout, "good <b> day", "no HTML escapes")
	require.NotEmpty(t, r.TokenIDs)

	template := filepath.Join(t.TempDir(), "t.jinja")
	require.NoError(t, os.WriteFile(template, []byte("{% for m in messages %}[{{ m.content }}]{% endfor %}"), 0o600))
	code, stdout, stderr = quernReading(t, `{"input":"x"}`, "render", path, "--chat-template", template)
	require.Equal(t, exitOK, code, stderr)
	require.Contains(t, stdout, "[x]")

	for stdin, want := range map[string]string{"{": "request: ", `{"input":3}`: "input", `{"input":"x","temperature":"hot"}`: "temperature"} {
		code, _, stderr = quernReading(t, stdin, "render", path)
		require.Equal(t, exitFailed, code, stdin)
		require.Contains(t, stderr, want)
	}
}

// The table of flags in the README names each flag, and no other.
func TestReadmeHasEveryFlag(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	flags := serveCommand().Flags()
	flags.VisitAll(func(f *pflag.Flag) {
		if !strings.Contains(string(readme), "| `--"+f.Name+"` |") {
			t.Errorf("--%s is not in the table", f.Name) // not all of the README
		}
	})
	for line := range strings.Lines(string(readme)) {
		if rest, ok := strings.CutPrefix(line, "| `--"); ok {
			name, _, _ := strings.Cut(rest, "`")
			require.NotNil(t, flags.Lookup(name), "the table has a flag that is not there: %s", name)
		}
	}
}
