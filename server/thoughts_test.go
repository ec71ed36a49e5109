package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"quern/models/template"
	"quern/models/toolcall"
	"quern/server/servertest"
	"quern/tokenizer"
)

// opensThoughts is a template that leaves the model no choice but to think.
var opensThoughts = strings.Replace(servertest.Template, `assistant\n' }}{%- endif %}`, `assistant\n<think>\n' }}{%- endif %}`, 1)

const longThoughts = "abcdefghijklmnopqrstuvwxyz</think>\n\nnever said"

// usageOf is input, output and reasoning tokens.
func usageOf(o object) [3]float64 {
	u := o["usage"].(object)
	return [3]float64{
		u["input_tokens"].(float64), u["output_tokens"].(float64), u["output_tokens_details"].(object)["reasoning_tokens"].(float64),
	}
}

func thoughtsOf(o object) string {
	text := ""
	for _, item := range items(o, "reasoning") {
		text += dig(item, "content", 0, "text").(string)
	}
	return text
}

func TestThoughtsEndAtTheirLimit(t *testing.T) {
	const answer = "So it is."
	n := newNode(t, longThoughts, nodeOptions{template: opensThoughts})
	n.SayThen(answer)
	one, s := n.both(`{"input":"hi","reasoning":{"max_tokens":5}}`)
	require.Equal(t, "abcde", thoughtsOf(one))
	require.Equal(t, answer, textOf(one))
	require.Equal(t, "completed", one["status"])
	input := float64(len(mustEncode(t, n, n.LastPrompt())))
	// A line break and the marker are thoughts still; two line breaks and the end of the turn are not.
	require.Equal(t, [3]float64{input, float64(5 + 4 + len(answer) + 1), 7}, usageOf(one))
	require.Equal(t, answer, s.Text())
	require.Equal(t, "abcde", joinDeltas(s, "response.reasoning_summary_text.delta"))
	require.EqualValues(t, 5, dig(one, "reasoning", "max_tokens"))

	l := n.dial()
	require.Equal(t, scrub(one), scrub(l.turn(`"input":"hi","reasoning":{"max_tokens":5}`).Final()))
	for _, field := range []string{`"reasoning":{"max_tokens":5}`, `"thinking_budget_tokens":5`} {
		body := `{"messages":[{"role":"user","content":"hi"}],` + field + `}`
		c := n.chat(body)
		require.Equal(t, "abcde", dig(c, "choices", 0, "message", "reasoning_content"))
		require.Equal(t, answer, dig(c, "choices", 0, "message", "content"))
		require.EqualValues(t, 7, dig(c, "usage", "completion_tokens_details", "reasoning_tokens"))
		content, thoughts, _, finish := join(t, n.chatStream(body))
		require.Equal(t, []any{answer, "abcde", "stop"}, []any{content, thoughts, finish})
	}
}

func mustEncode(t *testing.T, n *node, text string) []int32 {
	tokens, err := n.Tokenizer.EncodeText(text, tokenizer.TextOptions{ParseSpecial: true})
	require.NoError(t, err)
	return tokens
}

func joinDeltas(s *servertest.Stream, kind string) string {
	text := ""
	for _, e := range s.Of(kind) {
		text += e["delta"].(string)
	}
	return text
}

func TestThoughtLimits(t *testing.T) {
	for name, c := range map[string]struct {
		answer, reasoning string
		config            *int
		thoughts, text    string
	}{
		"reached after the marker":    {"<think>\nabcdef</think>x", `{"max_tokens":4}`, nil, "ab", "then"},
		"none, and the model does":    {"<think>abc</think>x", `{"max_tokens":0}`, nil, "", "then"},
		"none, by effort":             {"<think>abc</think>x", `{"effort":"none"}`, nil, "", "then"},
		"not reached":                 {"<think>abc</think>said", `{"max_tokens":40}`, nil, "abc", "said"},
		"just reached":                {"<think>abc</think>said", `{"max_tokens":5}`, nil, "abc", "said"},
		"no thoughts at all":          {"said", `{"max_tokens":1}`, nil, "", "said"},
		"a character is not cut":      {"<think>aé€</think>x", `{"max_tokens":3}`, nil, "aé", "then"},
		"no limit, as llama.cpp says": {"<think>abc</think>said", `{"max_tokens":-1}`, new(2), "abc", "said"},
		"the node's limit":            {"<think>abcdef</think>x", `{}`, new(3), "ab", "then"},
		"the node's limit of none":    {"<think>abcdef</think>x", `{"effort":"high"}`, new(0), "", "then"},
		"the request's goes before":   {"<think>abcdef</think>x", `{"max_tokens":2}`, new(5), "a", "then"},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t, c.answer)
			n.model.ThoughtLimit = c.config
			n.SayThen("then")
			one, _ := n.both(`{"input":"hi","reasoning":` + c.reasoning + `}`)
			require.Equal(t, c.thoughts, thoughtsOf(one))
			require.Equal(t, c.text, textOf(one))
		})
	}
}

// What may be a marker, where it is no token of its own, is not cut in two either.
func TestThoughtsEndBesideMarkers(t *testing.T) {
	for answer, want := range map[string][2]string{"[A]abc[/B]def[/A]x": {"abc[/B", "then"}, "[A]abc[/A]said": {"abc", "said"}} {
		n := newNode(t, answer)
		n.model.Format.Reasoning = []toolcall.Span{{Start: "[A]", End: "[/A]"}}
		n.SayThen("then")
		one, _ := n.both(`{"input":"hi","reasoning":{"max_tokens":7}}`)
		require.Equal(t, want, [2]string{thoughtsOf(one), textOf(one)})
	}
}

// What the answer is held to holds behind thoughts that were ended.
func TestConstraintsBehindEndedThoughts(t *testing.T) {
	n := newNode(t, longThoughts, nodeOptions{template: opensThoughts})
	n.SayThen("<tool_call>\n" + `{"name": "weather", "arguments": {"city":"Oslo"}}` + "\n</tool_call>")
	one, _ := n.both(`{"input":"hi","tool_choice":"required","reasoning":{"max_tokens":3},` + weatherTool + `}`)
	require.Equal(t, "abc", thoughtsOf(one))
	require.JSONEq(t, `{"city":"Oslo"}`, items(one, "function_call")[0]["arguments"].(string))
	require.Empty(t, items(one, "message"))

	n.SayThen(`{"x": 1}`)
	one, _ = n.both(`{"input":"hi","reasoning":{"max_tokens":3},"top_logprobs":1,"include":["message.output_text.logprobs"],` +
		`"text":{"format":{"type":"json_schema","name":"a","schema":{"type":"object","properties":{"x":{"type":"integer"}}}}}}`)
	require.Equal(t, "abc", thoughtsOf(one))
	require.JSONEq(t, `{"x":1}`, textOf(one))
	told := ""
	for _, p := range dig(items(one, "message")[0], "content", 0, "logprobs").([]any) {
		told += p.(object)["token"].(string)
	}
	require.Equal(t, textOf(one), told)
}

// The limit of the output holds over thoughts, their end and the answer.
func TestThoughtLimitWithinTheOutputLimit(t *testing.T) {
	n := newNode(t, longThoughts, nodeOptions{template: opensThoughts})
	n.SayThen("answer")
	for limit, want := range map[string][2]string{"3": {"abc", ""}, "5": {"abcde", ""}, "7": {"abcde", ""}, "9": {"abcde", ""}, "12": {"abcde", "ans"}} {
		one, _ := n.both(`{"input":"hi","reasoning":{"max_tokens":5},"max_output_tokens":` + limit + `}`)
		require.Equal(t, "incomplete", one["status"], limit)
		require.Equal(t, want, [2]string{thoughtsOf(one), textOf(one)}, limit)
	}
}

// A template that always opens the thoughts is answered for.
func TestThoughtsThatAreNotWanted(t *testing.T) {
	n := newNode(t, "said", nodeOptions{template: opensThoughts})
	for _, field := range []string{`"reasoning":{"effort":"none"}`, `"reasoning":{"max_tokens":0}`} {
		one, _ := n.both(`{"input":"hi",` + field + `}`)
		require.True(t, strings.HasSuffix(n.LastPrompt(), "<think>\n\n</think>\n\n"), n.LastPrompt())
		require.Equal(t, "said", textOf(one))
		require.Empty(t, items(one, "reasoning"))
		n.create(`{"input":"hi","tool_choice":"required",` + field + `,` + weatherTool + `}`)
		require.True(t, strings.HasSuffix(n.LastPrompt(), "</think>\n\n<tool_call>\n"), n.LastPrompt())
	}
	n.create(`{"input":"hi"}`)
	require.True(t, strings.HasSuffix(n.LastPrompt(), "<think>\n"))
}

func TestThoughtLimitIsRead(t *testing.T) {
	n := newNode(t, "ok")
	for _, v := range []string{`"5"`, `-2`, `1.5`, `{}`} {
		require.Equal(t, "reasoning.max_tokens", n.refused(400, "/v1/responses", `{"input":"hi","reasoning":{"max_tokens":`+v+`}}`)["param"])
		require.Equal(t, "reasoning.max_tokens", n.refused(400, "/v1/chat/completions", `{"messages":[{"role":"user","content":"x"}],"reasoning":{"max_tokens":`+v+`}}`)["param"])
	}
}

// A family without thoughts has nothing to end.
func TestNoThoughtsNoLimit(t *testing.T) {
	f, err := toolcall.ByName("json")
	require.NoError(t, err)
	require.Empty(t, f.EndThoughts())
	n := newNode(t, "<think>abc</think>", nodeOptions{template: plainTemplate})
	one, _ := n.both(`{"input":"hi","reasoning":{"max_tokens":2}}`)
	require.Equal(t, "<think>abc</think>", textOf(one))
}

// Real templates, if they lie beside the checkout: effort none leaves no thoughts
// open, whatever the template knows of that, every effort is rendered, and models
// that only think do so unless they are told not to.
func TestEffortsOfRealTemplates(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "shared", "templates", "*.jinja"))
	require.NoError(t, err)
	if len(files) == 0 {
		t.Skip("no real chat templates beside the checkout")
	}
	const without = `{"input":"Hi","reasoning":{"effort":"none"}}`
	can, closed := 0, 0
	for _, path := range files {
		src, err := os.ReadFile(path)
		require.NoError(t, err)
		tm, err := template.New(string(src), template.Options{BOS: "<s>", EOS: "</s>"})
		require.NoError(t, err)
		m := &Model{Template: tm}
		m.Format, _ = toolcall.Choose(string(src), tm.Try)
		name := strings.TrimSuffix(filepath.Base(path), ".jinja")
		prompt := func(body string) string {
			text, err := m.RenderText([]byte(body))
			require.NoError(t, err, name)
			return text
		}
		for _, effort := range efforts {
			prompt(`{"input":"Hi","reasoning":{"effort":"` + effort + `"}}`)
		}
		none := prompt(without)
		require.NotEqual(t, toolcall.InThoughts, m.Format.Thoughts(none), name)
		if tm.Caps().Thinking {
			can++
		}
		if open := prompt(`{"input":"Hi"}`); strings.HasPrefix(none, open) && none != open && m.Format.StartsInReasoning(open) {
			closed++
		}
		if name == "ByteDance-Seed-OSS" {
			require.Contains(t, prompt(`{"input":"Hi","reasoning":{"max_tokens":300}}`), "the thinking budget, which is 300")
		}
		if high := `{"input":"Hi","reasoning":{"effort":"high"}}`; name == "Qwen-QwQ-32B" || strings.Contains(name, "R1-Distill") {
			require.True(t, m.Format.StartsInReasoning(prompt(`{"input":"Hi"}`)), name)
			require.True(t, m.Format.StartsInReasoning(prompt(high)), name)
		}
	}
	t.Logf("of %d templates %d have a switch or an effort, %d opened their thoughts and have them closed", len(files), can, closed)
}

// Where messages have headers, thoughts end with theirs; a model that thinks again
// is led to its answer.
func TestThoughtLimitOfMessages(t *testing.T) {
	n := newMessageNode(t, "<|channel|>analysis<|message|>long thoughts<|end|>")
	n.SayThen("<|channel|>analysis<|message|>and more", "Now.")
	one, _ := n.both(`{"input":"hi","reasoning":{"max_tokens":15}}`)
	require.Contains(t, thoughtsOf(one), "long")
	require.NotContains(t, thoughtsOf(one), "thoughts")
	require.Equal(t, "Now.", textOf(one))
	require.Len(t, items(one, "message"), 1)
}

// A model that can't be kept from thinking is left to it in the end.
func TestThoughtsThatDoNotEnd(t *testing.T) {
	n := newNode(t, "<think>abc")
	n.SayThen("<think>def</think>ok")
	one, _ := n.both(`{"input":"hi","reasoning":{"max_tokens":2}}`)
	require.Equal(t, "completed", one["status"])
	require.Equal(t, "ok", textOf(one))
	n = newMessageNode(t, messageAnswer)
	one, _ = n.both(`{"input":"hi","reasoning":{"effort":"none"},` + weatherTool + `}`)
	require.Contains(t, thoughtsOf(one), "Need it.", "its family always thinks")
}
