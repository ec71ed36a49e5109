package server

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func (n *node) chat(body string) object {
	n.t.Helper()
	res, out := n.do("POST", "/v1/chat/completions", body)
	require.Equal(n.t, 200, res.StatusCode, out)
	var o object
	require.NoError(n.t, json.Unmarshal([]byte(out), &o))
	return o
}

// chatStream returns the chunks of a streamed completion.
func (n *node) chatStream(body string) []object {
	n.t.Helper()
	res, out := n.do("POST", "/v1/chat/completions", `{"stream":true,`+strings.TrimPrefix(body, "{"))
	require.Equal(n.t, 200, res.StatusCode, out)
	require.Equal(n.t, "text/event-stream", res.Header.Get("Content-Type"))
	return chunksOf(n.t, out)
}

// join adds chunks up to the message that they tell.
func join(t *testing.T, chunks []object) (content, thoughts string, calls []object, finish any) {
	t.Helper()
	for _, c := range chunks {
		require.Equal(t, chunks[0]["id"], c["id"])
		require.Equal(t, "chat.completion.chunk", c["object"])
		for _, choice := range c["choices"].([]any) {
			delta := dig(choice, "delta").(object)
			if s, ok := delta["content"].(string); ok {
				content += s
			}
			if s, ok := delta["reasoning_content"].(string); ok {
				thoughts += s
			}
			if f := dig(choice, "finish_reason"); f != nil {
				finish = f
			}
			list, _ := delta["tool_calls"].([]any)
			for _, call := range list {
				index := int(dig(call, "index").(float64))
				if index == len(calls) {
					calls = append(calls, call.(object))
					continue
				}
				for kind, field := range map[string]string{"function": "arguments", "custom": "input"} {
					if more, ok := call.(object)[kind]; ok {
						f := dig(calls[index], kind).(object)
						f[field] = f[field].(string) + dig(more, field).(string)
					}
				}
			}
		}
	}
	return content, thoughts, calls, finish
}

func TestChatHasThePromptOfResponses(t *testing.T) {
	n := newNode(t, "red")
	for _, pair := range [][2]string{
		{`{"instructions":"Be brief.","input":"colours?"}`, `{"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"colours?"}]}`},
		{`{"input":[{"role":"user","content":"w?"},{"type":"function_call","call_id":"c1","name":"weather","arguments":"{\"city\":\"Paris\"}"},{"type":"function_call_output","call_id":"c1","output":"sun"}],` + weatherTool + `}`,
			`{"messages":[{"role":"user","content":[{"type":"text","text":"w?"}]},{"role":"assistant","content":null,"tool_calls":[{"id":"c1","function":{"name":"weather","arguments":"{\"city\":\"Paris\"}"}}]},{"role":"tool","tool_call_id":"c1","content":"sun"}],"tools":[{"type":"function","function":{"name":"weather","description":"d","parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}}]}`},
	} {
		one := n.create(pair[0])
		prompt := n.LastPrompt()
		c := n.chat(pair[1])
		require.Equal(t, prompt, n.LastPrompt())
		require.Equal(t, textOf(one), dig(c, "choices", 0, "message", "content"))
		require.Equal(t, dig(one, "usage", "input_tokens"), dig(c, "usage", "prompt_tokens"))
		require.Equal(t, dig(one, "usage", "output_tokens"), dig(c, "usage", "completion_tokens"))
	}
}

func TestChatStreamAddsUpToTheCompletion(t *testing.T) {
	n := newNode(t, "<think>\nhm\n</think>\n\nLook:"+call(`{"city": "Paris"}`)+call(`{"city": "Rome"}`))
	body := `{"messages":[{"role":"user","content":"w?"}],"stream_options":{"include_usage":true},"logprobs":true,"top_logprobs":1,` + weatherTool + `}`
	one := n.chat(body)
	m := dig(one, "choices", 0, "message").(object)
	chunks := n.chatStream(body)
	content, thoughts, calls, finish := join(t, chunks)
	require.Equal(t, m["content"], content)
	require.Equal(t, "Look:", content)
	require.Equal(t, m["reasoning_content"], thoughts)
	require.Equal(t, "tool_calls", finish)
	require.Equal(t, "tool_calls", dig(one, "choices", 0, "finish_reason"))
	require.Len(t, calls, 2)
	for i, c := range m["tool_calls"].([]any) {
		require.Equal(t, dig(c, "function"), dig(calls[i], "function"))
		require.NotEqual(t, dig(calls[0], "id"), dig(calls[1], "id"))
	}
	require.Equal(t, "assistant", dig(chunks[0], "choices", 0, "delta", "role"))
	last := chunks[len(chunks)-1]
	require.Empty(t, last["choices"])
	require.Equal(t, dig(one, "usage", "total_tokens"), dig(last, "usage", "total_tokens"))
	require.Nil(t, chunks[0]["usage"])
	require.NotEmpty(t, dig(one, "choices", 0, "logprobs", "content"))
}

func TestChatEnds(t *testing.T) {
	n := newNode(t, "one two three")
	require.Equal(t, "length", dig(n.chat(`{"messages":[{"role":"user","content":"x"}],"max_tokens":3}`), "choices", 0, "finish_reason"))
	require.Equal(t, "length", dig(n.chat(`{"messages":[{"role":"user","content":"x"}],"max_completion_tokens":3}`), "choices", 0, "finish_reason"))
	c := n.chat(`{"messages":[{"role":"user","content":"x"}],"stop":[" three"]}`)
	require.Equal(t, "stop", dig(c, "choices", 0, "finish_reason"))
	require.Equal(t, "one two", dig(c, "choices", 0, "message", "content"))
}

func TestChatRefusals(t *testing.T) {
	n := newNode(t, "hi")
	for _, row := range []struct{ body, param string }{
		{`{}`, "messages"}, {`{"messages":"x"}`, "messages"}, {`{"messages":[5]}`, "messages[0]"}, {`{"messages":[null]}`, "messages[0]"},
		{`{"messages":[{"role":"wizard","content":"x"}]}`, "messages[0].role"},
		{`{"messages":[{"role":"user"}]}`, "messages[0].content"},
		{`{"messages":[{"role":"tool","content":"x"}]}`, "messages[0].tool_call_id"},
		{`{"messages":[{"role":"tool","tool_call_id":"c","content":"x"}]}`, "messages[0].tool_call_id"},
		{`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}]}`, "messages[0].content[0]"},
		{`{"messages":[{"role":"assistant","tool_calls":[{"id":"c"}]}]}`, "messages[0].tool_calls[0].function"},
		{`{"messages":[]}`, "messages"},
		{`{"messages":[{"role":"user","content":"x"},{"role":"assistant","tool_calls":[{"id":"","function":{"name":"f"}}]}]}`, "messages[1].tool_calls[0].id"},
		{`{"messages":[{"role":"user","content":"x"}],"n":2}`, "n"},
		{`{"messages":[{"role":"user","content":"x"}],"logit_bias":{"1":2}}`, "logit_bias"},
		{`{"messages":[{"role":"user","content":"x"}],"functions":[{"name":"f"}]}`, "functions"},
		{`{"messages":[{"role":"user","content":"x"}],"modalities":["text","audio"]}`, "modalities[1]"},
		{`{"messages":[{"role":"user","content":"x"}],"stream_options":[]}`, "stream_options"},
		{`{"messages":[{"role":"user","content":"x"}],"metadata":[]}`, "metadata"},
		{`{"messages":[{"role":"user","content":"x"}],"user":5}`, "user"},
		{`{"messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":{}}]}`, "tools[0].function.name"},
		{`{"messages":[{"role":"user","content":"x"}],"response_format":{"type":"json_schema","json_schema":{"name":"a"}}}`, "response_format.json_schema.schema"},
		{`{"messages":[{"role":"user","content":"` + strings.Repeat("x", 3000) + `"}]}`, "messages"},
		{`{"messages":[{"role":"user","content":"x"}],"max_tokens":5000}`, "max_completion_tokens"},
	} {
		require.Equal(t, row.param, n.refused(400, "/v1/chat/completions", row.body)["param"], row.body[:min(80, len(row.body))])
	}
}
