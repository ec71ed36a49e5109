package servertest

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// good reads a recorded stream with ids as the server makes them.
func good(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile("../testdata/" + name + ".sse")
	require.NoError(t, err)
	return strings.ReplaceAll(string(raw), `"call_ID"`, `"call_1"`)
}

func TestGoodStreamsPass(t *testing.T) {
	for _, name := range []string{"text", "reasoning", "call", "custom", "incomplete", "empty", "logprobs"} {
		require.Empty(t, Check(Read(good(t, name))), name)
	}
}

// TestEveryFaultIsFound breaks a good stream in one place each.
func TestEveryFaultIsFound(t *testing.T) {
	for _, row := range []struct{ stream, old, new, want string }{
		{"text", "data: [DONE]\n\n", "", "no [DONE]"},
		{"text", "data: [DONE]\n\n", "data: [DONE]\n\nevent: a\ndata: {\"type\":\"a\"}\n\n", "after [DONE]"},
		{"text", "event: response.output_text.delta\n", "event: response.other\n", "is not type"},
		{"text", "event: response.output_text.delta\n", "", "not one event line"},
		{"text", `"sequence_number":4`, `"sequence_number":5`, "sequence_number"},
		{"text", `"type":"response.created"`, `"type":"response.in_progress"`, "begins with"},
		{"text", `"delta":"H"`, `"delta":"h"`, "deltas"},
		{"text", `"delta":"H"`, `"delta":""`, "is empty"},
		{"text", `"logprobs":[]}` + "\n\nevent: response.output_text.delta", `"x":[]}` + "\n\nevent: response.output_text.delta", "without logprobs"},
		{"text", `"content_index":0`, `"content_index":1`, "content_index"},
		{"text", `"output_index":0,"item":{"id":"msg_ID","type":"message","status":"in_progress"`, `"output_index":1,"item":{"id":"msg_ID","type":"message","status":"in_progress"`, "output_index"},
		{"text", `"item":{"id":"msg_ID","type":"message","status":"in_progress"`, `"item":{"id":"msg_X","type":"message","status":"in_progress"`, "changed"},
		{"text", `"item":{"id":"msg_ID","type":"message","status":"in_progress"`, `"item":{"id":"msg_ID","type":"message","status":"completed"`, "added with status"},
		{"text", `"status":"completed","completed_at"`, `"status":"failed","completed_at"`, "carries status"},
		{"text", `"annotations":[]`, `"annotation":[]`, "part is"},
		{"text", `,"service_tier":"default"`, "", "service_tier is missing"},
		{"text", `"usage":null`, `"usage":{}`, "in progress with"},
		{"text", `"total_tokens":`, `"total_tokens":1`, "usage is"},
		{"text", `"type":"response.output_item.done"`, `"type":"response.output_item.gone"`, "unknown event"},
		{"incomplete", `"incomplete_details":{"reason":"max_output_tokens"}`, `"incomplete_details":null`, "incomplete_details"},
		{"call", `"id":"fc_ID"`, `"id":"call_ID"`, "id is"},
		{"call", `"call_id":"call_1","name":"weather","arguments":""`, `"call_id":"call_1","name":"weather","arguments":"{}"`, "with content"},
		{"call", `"call_id":"call_1"`, `"call_id":"call_2"`, "call_id changed"},
		{"custom", `"input":"a\nb"}`, `"input":"a"}`, "deltas"},
		{"reasoning", `"type":"response.reasoning_summary_text.delta"`, `"type":"response.output_text.delta"`, "within a reasoning"},
	} {
		t.Run(fmt.Sprintf("%.50s", row.new), func(t *testing.T) {
			body := good(t, row.stream)
			require.Contains(t, body, row.old)
			faults := strings.Join(Check(Read(strings.Replace(body, row.old, row.new, 1))), "\n")
			require.Contains(t, faults, row.want)
		})
	}
}

func TestMissingEventsAreFound(t *testing.T) {
	frames := strings.SplitAfter(good(t, "text"), "\n\n")
	for i := range frames[:len(frames)-1] {
		without := strings.Join(frames[:i], "") + strings.Join(frames[i+1:], "")
		require.NotEmpty(t, Check(Read(without)), "without %.60q", frames[i])
		twice := strings.Join(frames[:i+1], "") + strings.Join(frames[i:], "")
		require.NotEmpty(t, Check(Read(twice)), "twice %.60q", frames[i])
	}
}
