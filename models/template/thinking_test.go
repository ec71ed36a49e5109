package template

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"quern/models/chat"
)

func TestThinkingSwitches(t *testing.T) {
	on, off := true, false
	const source = "{{ messages[0].content }} {{ enable_thinking if enable_thinking is defined else 'unset' }}" +
		" {{ reasoning_effort | default('unset') }}{{ 'minimal' if false }}"
	tm, err := New(source, Options{})
	require.NoError(t, err)
	require.True(t, tm.Caps().Thinking)
	for name, c := range map[string]struct {
		c    chat.Conversation
		want string
	}{
		"nothing said":     {chat.Conversation{}, "unset unset"},
		"on":               {chat.Conversation{Thinking: &on}, "True unset"},
		"off":              {chat.Conversation{Thinking: &off}, "False minimal"},
		"effort":           {chat.Conversation{Effort: "high"}, "True high"},
		"effort none":      {chat.Conversation{Effort: "none"}, "False minimal"},
		"effort too high":  {chat.Conversation{Effort: "xhigh"}, "True high"},
		"effort ultra":     {chat.Conversation{Effort: "ultra"}, "True high"},
		"effort minimal":   {chat.Conversation{Effort: "minimal"}, "True minimal"},
		"unknown effort":   {chat.Conversation{Effort: "weird"}, "True weird"},
		"off despite":      {chat.Conversation{Thinking: &off, Effort: "high"}, "False minimal"},
		"kwargs have more": {chat.Conversation{Thinking: &on, Kwargs: []chat.KV{{Key: "enable_thinking", Value: json.RawMessage(`"maybe"`)}}}, "maybe unset"},
	} {
		t.Run(name, func(t *testing.T) {
			c.c.Messages = []chat.Message{says(chat.User, "Hi")}
			require.Equal(t, "Hi "+c.want, text(t, tm, c.c))
		})
	}
}

func TestThoughtLimitIsTold(t *testing.T) {
	tm, err := New("{{ messages[0].content }}{{ thinking_budget }}", Options{})
	require.NoError(t, err)
	c := chat.Conversation{Messages: []chat.Message{says(chat.User, "Hi")}, ThoughtLimit: 512}
	require.Equal(t, "Hi512", text(t, tm, c))
	off := false
	c.Thinking = &off
	require.Equal(t, "Hi0", text(t, tm, c))
	c.Thinking = nil
	require.Equal(t, text(t, load(t, "chatml"), chat.Conversation{Messages: c.Messages}), text(t, load(t, "chatml"), c))
}

// A template that closes the thoughts unless it is told otherwise is told, as long
// as it doesn't say itself what nobody's saying means.
func TestThinkingByDefault(t *testing.T) {
	on, off := true, false
	const head = "{{ messages[0].content }} <think>"
	for source, want := range map[string][3]string{
		head + "{% if not enable_thinking %}</think>{% endif %}":                                                          {"", "", "</think>"},
		head + "{% if not enable_thinking | default(false) %}</think>{% endif %}":                                         {"</think>", "", "</think>"},
		head + "{% if enable_thinking is not defined or not enable_thinking %}</think>{% endif %}":                        {"</think>", "", "</think>"},
		head + "{% if not thinking %}</think>{% endif %}":                                                                 {"", "", "</think>"},
		"{{ messages[0].content }} <think>{% if enable_thinking %}hm{% else %}</think>{% endif %}":                        {"</think>", "hm", "</think>"},
		"{{ messages[0].content }} <think>{% if enable_thinking is defined and not enable_thinking %}</think>{% endif %}": {"", "", "</think>"},
	} {
		tm, err := New(source, Options{})
		require.NoError(t, err)
		for i, thinking := range []*bool{nil, &on, &off} {
			c := chat.Conversation{Messages: []chat.Message{says(chat.User, "Hi")}, Thinking: thinking}
			require.Equal(t, "Hi <think>"+want[i], text(t, tm, c), source)
		}
	}
}

func TestNoSwitchNoThinking(t *testing.T) {
	require.False(t, load(t, "chatml").Caps().Thinking)
}

func TestReasoningKeys(t *testing.T) {
	for _, key := range reasoningKeys {
		tm, err := New("{% for m in messages %}{{ m.content }}<{{ m."+key+" }}>{% endfor %}", Options{})
		require.NoError(t, err)
		require.True(t, tm.Caps().Reasoning, key)
		c := chat.Conversation{Messages: []chat.Message{says(chat.User, "q"), {Role: chat.Assistant, Content: "a", Reasoning: "why"}}}
		require.Equal(t, "q<>a<why>", text(t, tm, c))
	}
}
