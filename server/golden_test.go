package server

import (
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"quern/engine"
	"quern/server/servertest"
)

var update = flag.Bool("update", false, "write the golden files anew")

// What differs from run to run.
var volatile = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`"(resp|msg|fc|call|rs|ctc)_[0-9a-f]{32}"`), `"${1}_ID"`},
	{regexp.MustCompile(`"chatcmpl-[0-9a-f]{32}"`), `"chatcmpl-ID"`},
	{regexp.MustCompile(`"cmpl-[0-9a-f]{32}"`), `"cmpl-ID"`},
	{regexp.MustCompile(`"obfuscation":"[\w-]+"`), `"obfuscation":"PAD"`},
	{regexp.MustCompile(`"(created|created_at|completed_at)":\d+`), `"$1":0`},
}

// TestTranscripts holds whole streams against files, byte for byte.
func TestTranscripts(t *testing.T) {
	custom := `"tools":[{"type":"custom","name":"note"}]`
	for _, row := range []struct{ name, answer, path, body string }{
		{"text", "Hi.", "/v1/responses", `{"stream":true,"input":"hi"}`},
		{"reasoning", "<think>\nso\n</think>\n\nHi.", "/v1/responses", `{"stream":true,"input":"hi","reasoning":{"effort":"low","summary":"auto"}}`},
		{"call", call(`{"city": "Paris"}`), "/v1/responses", `{"stream":true,"input":"hi",` + weatherTool + `}`},
		{"custom", `<tool_call>{"name": "note", "arguments": {"input": "a\nb"}}</tool_call>`, "/v1/responses", `{"stream":true,"input":"hi",` + custom + `}`},
		{"failed", "one two", "/v1/responses", `{"stream":true,"input":"hi"}`},
		{"incomplete", "one two", "/v1/responses", `{"stream":true,"input":"hi","max_output_tokens":2}`},
		{"empty", "", "/v1/responses", `{"stream":true,"input":"hi"}`},
		{"logprobs", "Hi", "/v1/responses", `{"stream":true,"input":"hi","top_logprobs":1}`},
		{"chat", "<think>\nso\n</think>\n\nHi." + call(`{"city": "Paris"}`), "/v1/chat/completions", `{"stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hi"}],` + weatherTool + `}`},
		{"obfuscated", "Hi.", "/v1/responses", `{"stream":true,"input":"hi","stream_options":{"include_obfuscation":true}}`},
		{"namespace", `<tool_call>{"name": "mcp__demo__add", "arguments": {"a": 1}}</tool_call>`, "/v1/responses", `{"stream":true,"input":"hi","tools":[{"type":"namespace","name":"mcp__demo","tools":[{"type":"function","name":"add"}]},{"type":"web_search"}]}`},
		{"completion", "Hi.", "/v1/completions", `{"stream":true,"stream_options":{"include_usage":true},"prompt":"hi","logprobs":1}`},
	} {
		t.Run(row.name, func(t *testing.T) {
			n := newNode(t, row.answer)
			if row.name == "failed" {
				n.Fake.Fail = func(step int, _ *engine.Batch) error {
					if step > 2 {
						return io.ErrUnexpectedEOF
					}
					return nil
				}
			}
			_, got := n.do("POST", row.path, row.body)
			if row.path == "/v1/responses" {
				servertest.Valid(t, got)
			}
			for _, v := range volatile {
				got = v.pattern.ReplaceAllString(got, v.with)
			}
			file := filepath.Join("testdata", row.name+".sse")
			if *update {
				require.NoError(t, os.MkdirAll("testdata", 0o755))
				require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, string(want), got)
		})
	}
}
