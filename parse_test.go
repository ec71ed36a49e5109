package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const weatherTool = `{"type":"function","name":"weather","parameters":{"type":"object","properties":{"city":{"type":"string"}}}}`

func TestParse(t *testing.T) {
	dir := t.TempDir()
	tools := filepath.Join(dir, "tools.json")
	require.NoError(t, os.WriteFile(tools, []byte("["+weatherTool+"]"), 0o600))
	template := filepath.Join(dir, "t.jinja")
	require.NoError(t, os.WriteFile(template, []byte("{% for t in tools %}<tool_call>{% endfor %}<think>"), 0o600))
	raw := "<think>\nhm\n</think>\nSo:\n<tool_call>\n" + `{"name":"weather","arguments":{"city":"a<b"}}` + "\n</tool_call>"
	for _, args := range [][]string{{"--format", "hermes"}, {"--template", template}, {"--template", template, "--chunk", "1"}} {
		code, stdout, stderr := quernReading(t, raw, append([]string{"parse", "--tools", tools}, args...)...)
		require.Equal(t, exitOK, code, stderr)
		require.Contains(t, stdout, "a<b", "no HTML escapes")
		var got struct {
			Status string
			Output []parsedItem
		}
		require.NoError(t, json.Unmarshal([]byte(stdout), &got))
		require.Equal(t, completed, got.Status)
		require.Len(t, got.Output, 3)
		require.Equal(t, "hm", strings.TrimSpace(got.Output[0].Content[0].Text))
		require.Equal(t, "So:", got.Output[1].Content[0].Text)
		require.JSONEq(t, `{"city":"a<b"}`, *got.Output[2].Arguments)
	}
	for _, tc := range []struct {
		args []string
		code int
		want string
	}{
		{nil, exitUsage, "one of a model"},
		{[]string{"m.gguf", "--format", "hermes"}, exitUsage, "got 2"},
		{[]string{"--format", "hermes", "--chunk", "-1"}, exitUsage, "--chunk -1"},
		{[]string{"--jsonl", "m.gguf"}, exitUsage, "from each line"},
		{[]string{"--format", "x"}, exitFailed, "there are hermes"},
		{[]string{"--format", "hermes", "--tools", template}, exitFailed, "t.jinja"},
		{[]string{"--template", filepath.Join(dir, "none")}, exitFailed, "chat template"},
	} {
		code, _, stderr := quernReading(t, raw, append([]string{"parse"}, tc.args...)...)
		require.Equal(t, tc.code, code, tc.args)
		require.Contains(t, stderr, tc.want)
	}
}

func TestParseLines(t *testing.T) {
	const call = `<tool_call>{\"name\":\"weather\",\"arguments\":{\"city\":\"Oslo\"}}</tool_call>`
	for _, tc := range []struct{ name, line, want string }{
		{"call", `"format":"hermes","raw":"` + call + `"`,
			`"reasoning":null,"text":"","calls":[{"name":"weather","arguments":"{\"city\":\"Oslo\"}"}],"status":"completed","last_item_status":"completed"`},
		{"one call", `"format":"hermes","parallel":false,"raw":"` + call + call + `"`,
			`"reasoning":null,"text":"","calls":[{"name":"weather","arguments":"{\"city\":\"Oslo\"}"}],"status":"completed","last_item_status":"completed"`},
		{"a limit", `"format":"hermes","finish":"length","raw":"half an"`,
			`"reasoning":null,"text":"half an","calls":[],"status":"incomplete","last_item_status":"incomplete"`},
		{"thoughts", `"format":"hermes","starts_in_reasoning":true,"raw":"hm</think>yes"`,
			`"reasoning":"hm","text":"yes","calls":[],"status":"completed","last_item_status":"completed"`},
		{"no thoughts", `"format":"hermes","thinking":"none","raw":"<think>x"`,
			`"reasoning":null,"text":"<think>x","calls":[],"status":"completed","last_item_status":"completed"`},
		{"a stop string", `"format":"hermes","stop":["STOP"],"raw":"one STOP two"`,
			`"reasoning":null,"text":"one ","calls":[],"status":"completed","last_item_status":"completed"`},
		{"half a stop string", `"format":"hermes","stop":["STOP"],"raw":"one STO` + call + `"`,
			`"reasoning":null,"text":"one STO","calls":[{"name":"weather","arguments":"{\"city\":\"Oslo\"}"}],"status":"completed","last_item_status":"completed"`},
		{"a marker in letters", `"format":"hermes","starts_in_reasoning":true,"plain_at":[2],"raw":"é </think> b</think>c"`,
			`"reasoning":"é </think> b","text":"c","calls":[],"status":"completed","last_item_status":"completed"`},
	} {
		for _, chunk := range []string{"0", "1", "3"} {
			in := `{"id":"x","tools":[` + weatherTool + `],` + tc.line + "}\n"
			code, stdout, stderr := quernReading(t, in+"\n"+in, "parse", "--jsonl", "--chunk", chunk)
			require.Equal(t, exitOK, code, stderr)
			lines := strings.Split(strings.TrimSpace(stdout), "\n")
			require.Len(t, lines, 2, tc.name)
			require.JSONEq(t, `{"id":"x",`+tc.want+"}", lines[1], tc.name)
		}
	}
	code, stdout, stderr := quernReading(t, `{"id":"a","format":"nope","raw":"x"}`+"\n"+`{"id":"b","format":"plain","raw":"x"}`, "parse", "--jsonl")
	require.Equal(t, exitFailed, code)
	require.Contains(t, stdout, `"id":"b"`, "the other lines are answered")
	require.Contains(t, stderr, "no tool format nope")
	code, _, stderr = quernReading(t, "{", "parse", "--jsonl")
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "line 1")
}
