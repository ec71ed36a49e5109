package server

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"quern/server/servertest"
)

// plainTemplate is that of a model that does not think.
const plainTemplate = servertest.Template + "{#- plain -#}"

// noTemplate stands for a model that has none.
const noTemplate = "none"

const weatherTool = `"tools":[{"type":"function","name":"weather","description":"d","parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}]`

func call(args string) string {
	return "<tool_call>\n{\"name\": \"weather\", \"arguments\": " + args + "}\n</tool_call>"
}

func TestText(t *testing.T) {
	n := newNode(t, "Hello there, wörld.")
	one, s := n.both(`{"model":"test-model","input":"hi"}`)
	require.Equal(t, "completed", one["status"])
	require.Equal(t, "Hello there, wörld.", textOf(one))
	require.Equal(t, "Hello there, wörld.", s.Text())
	require.Equal(t, []string{
		"response.created", "response.in_progress", "response.output_item.added", "response.content_part.added",
		"response.output_text.delta", "response.output_text.done", "response.content_part.done",
		"response.output_item.done", "response.completed",
	}, s.Types())
	require.EqualValues(t, len("Hello there, wörld.")+1, dig(one, "usage", "output_tokens"), "the end token counts")
	require.Equal(t, "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n", n.LastPrompt())
}

func TestReasoningThenText(t *testing.T) {
	n := newNode(t, "<think>\nIt is 21.\n</think>\n\n21")
	one, s := n.both(`{"input":"17+4?"}`)
	require.Equal(t, "21", textOf(one))
	r := items(one, "reasoning")
	require.Len(t, r, 1)
	require.Contains(t, dig(r[0], "summary", 0, "text"), "It is 21.")
	require.Equal(t, dig(r[0], "summary", 0, "text"), dig(r[0], "content", 0, "text"))
	require.NotZero(t, dig(one, "usage", "output_tokens_details", "reasoning_tokens"))
	require.Equal(t, "21", s.Text())
}

func TestCall(t *testing.T) {
	n := newNode(t, "I will look.\n"+call(`{"city": "Paris"}`))
	one, s := n.both(`{"input":"weather?",` + weatherTool + `}`)
	require.Equal(t, "I will look.", textOf(one))
	calls := items(one, "function_call")
	require.Len(t, calls, 1)
	require.Equal(t, "weather", calls[0]["name"])
	require.JSONEq(t, `{"city":"Paris"}`, calls[0]["arguments"].(string))
	require.Greater(t, len(s.Of("response.function_call_arguments.delta")), 1, "arguments come in pieces")
}

func TestBlanksBeforeACallAreNoMessage(t *testing.T) {
	n := newNode(t, "\n\n"+call(`{"city": "Paris"}`)+"\n"+call(`{"city": "Rome"}`)+"\n")
	one, _ := n.both(`{"input":"weather?",` + weatherTool + `}`)
	require.Empty(t, items(one, "message"))
	require.Len(t, items(one, "function_call"), 2)
}

func TestOneCallWhereParallelIsOff(t *testing.T) {
	n := newNode(t, call(`{"city": "Paris"}`)+"\n"+call(`{"city": "Rome"}`)+"and so on")
	one, _ := n.both(`{"input":"weather?","parallel_tool_calls":false,` + weatherTool + `}`)
	require.Len(t, items(one, "function_call"), 1)
	require.Empty(t, items(one, "message"))
	require.Equal(t, "completed", one["status"])
}

func TestMaxToolCalls(t *testing.T) {
	n := newNode(t, call(`{"city": "Paris"}`)+"\n"+call(`{"city": "Rome"}`)+call(`{"city": "Oslo"}`))
	for _, row := range []struct {
		limit string
		calls int
	}{{`1`, 1}, {`2`, 2}, {`1000000`, 3}, {`null`, 3}, {`2,"parallel_tool_calls":false`, 1}} {
		for _, choice := range []string{"auto", "required"} {
			one, _ := n.both(`{"input":"weather?","tool_choice":"` + choice + `","max_tool_calls":` + row.limit + `,` + weatherTool + `}`)
			require.Len(t, items(one, "function_call"), row.calls, row.limit)
			require.Equal(t, "completed", one["status"])
		}
	}
}

func TestToolChoiceIsEchoedWhole(t *testing.T) {
	n := newNode(t, "ok")
	for sent, want := range map[string]string{
		`{"type":"function","function":{"name":"weather"}}`:                        `{"type":"function","name":"weather"}`,
		`{"type": "function", "name": "weather"}`:                                  `{"type":"function","name":"weather"}`,
		`{"type":"allowed_tools","tools":[{"type": "function","name":"weather"}]}`: `{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"weather"}]}`,
	} {
		raw, err := json.Marshal(n.create(`{"input":"hi","tool_choice":` + sent + `,` + weatherTool + `}`)["tool_choice"])
		require.NoError(t, err)
		require.JSONEq(t, want, string(raw))
	}
}

func TestCutAnswerIsIncomplete(t *testing.T) {
	n := newNode(t, "one two three four five")
	one, s := n.both(`{"input":"count","max_output_tokens":8}`)
	require.Equal(t, "incomplete", one["status"])
	require.Equal(t, "max_output_tokens", dig(one, "incomplete_details", "reason"))
	require.Equal(t, "incomplete", dig(one, "output", 0, "status"))
	require.Equal(t, "one two ", textOf(one))
	require.EqualValues(t, 8, dig(one, "usage", "output_tokens"))
	require.Len(t, s.Of("response.incomplete"), 1)
}

func TestCutThoughtsAreIncomplete(t *testing.T) {
	n := newNode(t, "<think>\nlong thoughts about primes</think>\nok")
	one, _ := n.both(`{"input":"?","max_output_tokens":12}`)
	require.Equal(t, "incomplete", one["status"])
	require.Len(t, one["output"], 1)
	require.Equal(t, "reasoning", dig(one, "output", 0, "type"))
	require.Equal(t, "incomplete", dig(one, "output", 0, "status"))
}

func TestAnEmptyAnswerStillHasAMessage(t *testing.T) {
	for name, answer := range map[string]string{"nothing": "", "thoughts only": "<think>\nhm\n</think>", "blanks": "\n \n"} {
		t.Run(name, func(t *testing.T) {
			one, _ := newNode(t, answer).both(`{"input":"?"}`)
			require.Equal(t, "completed", one["status"])
			require.Len(t, items(one, "message"), 1)
		})
	}
}

func TestStopStrings(t *testing.T) {
	n := newNode(t, "<think>\nalpha STOP beta\n</think>\n\ngamma S STO STOP delta")
	for _, stop := range []string{`"STOP"`, `["never","STOP"]`} {
		one, s := n.both(`{"input":"?","stop":` + stop + `}`)
		require.Equal(t, "gamma S STO ", textOf(one))
		require.Equal(t, "gamma S STO ", s.Text())
		require.Equal(t, "completed", one["status"])
		require.Contains(t, dig(one, "output", 0, "summary", 0, "text"), "STOP beta", "thoughts are not searched")
	}
	n.Say(call(`{"city": "STOP"}`))
	one, _ := n.both(`{"input":"?","stop":"STOP",` + weatherTool + `}`)
	require.JSONEq(t, `{"city":"STOP"}`, items(one, "function_call")[0]["arguments"].(string), "nor arguments")
}

func TestLogprobsJoinToTheText(t *testing.T) {
	n := newNode(t, "<think>\nso\n</think>\n\nhé STOP more")
	one, s := n.both(`{"input":"?","stop":"STOP","top_logprobs":2,"include":["message.output_text.logprobs"]}`)
	entries := dig(items(one, "message")[0], "content", 0, "logprobs").([]any)
	var joined []byte
	for _, e := range entries {
		for _, b := range dig(e, "bytes").([]any) {
			joined = append(joined, byte(b.(float64)))
		}
		require.Len(t, dig(e, "top_logprobs"), 2)
	}
	require.Equal(t, "hé ", string(joined))
	streamed := 0
	for _, d := range s.Of("response.output_text.delta") {
		streamed += len(d["logprobs"].([]any))
	}
	require.Equal(t, len(entries), streamed)
}

func TestNamespacesAndCustomToolsComeBackAsTheyWere(t *testing.T) {
	n := newNode(t, `<tool_call>{"name": "mcp__demo__add", "arguments": {"a": 1}}</tool_call><tool_call>{"name": "apply_patch", "arguments": {"input": "*** Begin\n+é"}}</tool_call>`)
	tools := `"tools":[{"type":"namespace","name":"mcp__demo","description":"d","tools":[{"type":"function","name":"add","parameters":{"type":"object","properties":{"a":{"type":"integer"}}}}]},{"type":"custom","name":"apply_patch","format":{"type":"grammar","syntax":"lark","definition":"start: /.+/"}},{"type":"web_search"}]`
	one, s := n.both(`{"input":"?",` + tools + `}`)
	f := items(one, "function_call")
	require.Len(t, f, 1)
	require.Equal(t, "add", f[0]["name"])
	require.Equal(t, "mcp__demo", f[0]["namespace"])
	c := items(one, "custom_tool_call")
	require.Len(t, c, 1)
	require.Equal(t, "*** Begin\n+é", c[0]["input"])
	require.NotEmpty(t, s.Of("response.custom_tool_call_input.delta"))
	require.NotContains(t, n.LastPrompt(), "web_search")
	require.Len(t, one["tools"], 3, "all tools are echoed")

	n.Say("done")
	n.create(`{"input":[{"role":"user","content":"?"},
		{"type":"function_call","call_id":"c1","name":"add","namespace":"mcp__demo","arguments":"{\"a\":1}"},
		{"type":"function_call_output","call_id":"c1","output":[{"type":"input_text","text":"one"},{"type":"input_text","text":"two"}]},
		{"type":"custom_tool_call","call_id":"c2","name":"apply_patch","input":"say \"hi\""},
		{"type":"custom_tool_call_output","call_id":"c2","output":"ok"}],` + tools + `}`)
	p := n.LastPrompt()
	require.Contains(t, p, "mcp__demo__add")
	require.Contains(t, p, "one\ntwo")
	require.Contains(t, p, `say \"hi\"`)
}
