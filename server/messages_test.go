package server

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// messageTemplate is of the harmony kind: what the model writes are messages,
// and the prompt ends in the header of the first.
const messageTemplate = `{%- for tool in tools or [] %}{{- tool | tojson }}{%- endfor %}
{%- for message in messages %}
{%- if message.role == 'assistant' and message.tool_calls %}
{%- if message.thinking %}{{- '<|start|>assistant<|channel|>analysis<|message|>' + message.thinking + '<|end|>' }}{%- endif %}
{{- '<|start|>assistant to=functions.' + message.tool_calls[0].function.name + '<|channel|>commentary json<|message|>' }}
{{- message.tool_calls[0].function.arguments | tojson }}{{- '<|call|>' }}
{%- elif message.role == 'assistant' %}{{- '<|start|>assistant<|channel|>final<|message|>' + message.content + '<|end|>' }}
{%- else %}{{- '<|start|>' + message.role + '<|message|>' + message.content + '<|end|>' }}{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|start|>assistant' }}{%- endif %}`

const messageAnswer = "<|channel|>analysis<|message|>Need it.<|end|>" +
	"<|start|>assistant<|channel|>commentary<|message|>I will look.<|end|>" +
	"<|start|>assistant<|channel|>analysis<|message|>Paris.<|end|>" +
	"<|start|>assistant<|channel|>commentary to=functions.weather <|constrain|>json<|message|>" + `{"city": "Paris"}`

func newMessageNode(t *testing.T, answer string) *node {
	t.Helper()
	return newNode(t, answer, nodeOptions{template: messageTemplate})
}

func TestMessagesBecomeItems(t *testing.T) {
	n := newMessageNode(t, messageAnswer)
	require.Equal(t, "harmony", n.model.Format.Name)
	one, s := n.both(`{"input":"weather?",` + weatherTool + `}`)
	var kinds []any
	for _, item := range one["output"].([]any) {
		kinds = append(kinds, dig(item, "type"))
	}
	require.Equal(t, []any{"reasoning", "message", "reasoning", "function_call"}, kinds)
	require.Equal(t, "Need it.", dig(one, "output", 0, "summary", 0, "text"))
	require.Equal(t, "I will look.", textOf(one))
	require.Equal(t, "Paris.", dig(one, "output", 2, "summary", 0, "text"))
	require.JSONEq(t, `{"city": "Paris"}`, dig(one, "output", 3, "arguments").(string))
	require.Greater(t, len(s.Of("response.function_call_arguments.delta")), 1, "arguments come in pieces")
	// Markers are tokens, the rest is one a byte: the first thoughts have no
	// <|start|>assistant, which stands in the prompt.
	thoughts := 3 + len("analysis") + len("Need it.") + 4 + len("assistant"+"analysis") + len("Paris.")
	require.EqualValues(t, thoughts, dig(one, "usage", "output_tokens_details", "reasoning_tokens"))
}

func TestTwoTextsAreTwoMessages(t *testing.T) {
	n := newMessageNode(t, "<|channel|>commentary<|message|>First.<|end|><|start|>assistant<|channel|>final<|message|>Last of all.")
	one, _ := n.both(`{"input":"hi","include":["message.output_text.logprobs"]}`)
	list := items(one, "message")
	require.Len(t, list, 2)
	require.Equal(t, "First.", dig(list[0], "content", 0, "text"))
	require.Equal(t, "Last of all.", dig(list[1], "content", 0, "text"))
	for _, m := range list { // the letters of a header are no text
		n.checkLogprobs(object{"output": []any{m}}, true)
	}
	content, _, _, _ := join(t, n.chatStream(`{"messages":[{"role":"user","content":"hi"}]}`))
	require.Equal(t, "First.\n\nLast of all.", content)
	require.Equal(t, content, dig(n.chat(`{"messages":[{"role":"user","content":"hi"}]}`), "choices", 0, "message", "content"))
}

func TestMessagesInChat(t *testing.T) {
	n := newMessageNode(t, messageAnswer)
	body := `{"messages":[{"role":"user","content":"weather?"}],"tools":[{"type":"function","function":{"name":"weather","parameters":{}}}]}`
	content, thoughts, calls, finish := join(t, n.chatStream(body))
	require.Equal(t, "I will look.", content)
	require.Equal(t, "Need it.Paris.", thoughts)
	require.Len(t, calls, 1)
	require.JSONEq(t, `{"city": "Paris"}`, dig(calls[0], "function", "arguments").(string))
	require.Equal(t, "tool_calls", finish)
	one := n.chat(body)
	require.Equal(t, content, dig(one, "choices", 0, "message", "content"))
	require.Equal(t, thoughts, dig(one, "choices", 0, "message", "reasoning_content"))
}

func TestMessagesThatAreCut(t *testing.T) {
	n := newMessageNode(t, messageAnswer)
	for tokens := 16; tokens < 147; tokens += 3 {
		one, _ := n.both(`{"input":"weather?","max_output_tokens":` + itoa(tokens) + `,` + weatherTool + `}`)
		require.Equal(t, "incomplete", one["status"])
		require.NotContains(t, textOf(one), "<|", "after %d tokens", tokens)
	}
}

// The model may begin to think again behind thoughts that were ended for it; then
// the answer is begun, too.
func TestThoughtsOfMessagesEndAtTheirLimit(t *testing.T) {
	const hm = "<|channel|>analysis<|message|>"
	n := newMessageNode(t, hm+"abcdefghijklmnopqrstuvwxyz")
	n.SayThen(hm+"again and again", "So it is.")
	limit := 1 + len("analysis") + 1 + 5
	one, _ := n.both(`{"input":"hi","reasoning":{"max_tokens":` + itoa(limit) + `}}`)
	require.Equal(t, "abcde", thoughtsOf(one))
	require.Equal(t, "So it is.", textOf(one))
	n.SayThen("<|channel|>final<|message|>So it is.")
	one, _ = n.both(`{"input":"hi","reasoning":{"max_tokens":` + itoa(limit) + `}}`)
	require.Equal(t, "abcde", thoughtsOf(one))
	require.Equal(t, "So it is.", textOf(one))
	require.EqualValues(t, limit+1, dig(one, "usage", "output_tokens_details", "reasoning_tokens"))
}

func TestForcedCallOfMessages(t *testing.T) {
	n := newMessageNode(t, "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary to=functions.weather <|constrain|>json<|message|>"+`{"city": "Paris"}`)
	body := `{"input":"weather?","tool_choice":"required",` + weatherTool
	one, _ := n.both(body + `}`)
	require.Equal(t, "Hm.", thoughtsOf(one))
	require.Len(t, items(one, "function_call"), 1)
	require.Contains(t, n.LastParams().Grammar, "<|channel|>commentary to=functions.")
	n.Say("weather <|constrain|>json<|message|>" + `{"city": "Rome"}`)
	one, _ = n.both(body + `,"reasoning":{"effort":"none"}}`)
	require.True(t, strings.HasSuffix(n.LastPrompt(), "<|start|>assistant<|channel|>commentary to=functions."), n.LastPrompt())
	require.JSONEq(t, `{"city": "Rome"}`, dig(items(one, "function_call")[0], "arguments").(string))
}
