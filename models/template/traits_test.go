package template

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"quern/models/chat"
)

// Templates differ in how they want calls and contents handed over.
func TestTraits(t *testing.T) {
	const head = "{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}{{ c.function.name }}"
	chain := chat.Conversation{Messages: []chat.Message{says(chat.User, "u"), calls(chat.Call{ID: "call_1", Name: "f", Arguments: `{"a": 1.50}`}), result("call_1", "r")}}
	odd := chat.Conversation{Messages: []chat.Message{says(chat.User, "u"), calls(chat.Call{ID: "call_1", Name: "f", Arguments: `[1]`}), result("call_1", "r")}}
	for _, c := range []struct{ name, source, want, odd string }{
		{"mapping", head + "{{ c.function.arguments | tojson }}{% endfor %}{% endfor %}", `uf{"a": 1.50}r`, `uf"[1]"r`},
		{"tools listed in Python's spelling", "{{ tools or '' }}" + head + "{{ c.function.arguments | tojson }}{% endfor %}{% endfor %}", `uf{"a": 1.50}r`, `uf"[1]"r`},
		{"text", head + "{{ '' + c.function.arguments }}{% endfor %}{% endfor %}", `uf{"a": 1.50}r`, `uf[1]r`},
		{
			"mapping or nothing", head + "{% for k, v in c.function.arguments.items() %}<{{ k }}>{{ v }}{% endfor %}{% endfor %}{% endfor %}",
			`uf<a>1.50r`, `uf<arguments>[1]r`,
		},
		{
			"short ids", head + "{% if c.id | length != 9 %}{{ raise_exception('id') }}{% endif %}{{ c.function.arguments | tojson }}{% endfor %}{% endfor %}",
			`uf{"a": 1.50}r`, `uf"[1]"r`,
		},
		{
			"typed content", "{% for m in messages %}{% for p in m.content %}{{ p.text }}{% endfor %}{% for c in m.tool_calls or [] %}{{ c.function.name }}{{ c.function.arguments | tojson }}{% endfor %}{% endfor %}",
			`uf{"a": 1.50}r`, `uf"[1]"r`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			tm, err := New(c.source, Options{})
			require.NoError(t, err)
			require.True(t, tm.Caps().ToolCalls)
			require.Equal(t, c.want, text(t, tm, chain))
			require.Equal(t, c.odd, text(t, tm, odd))
		})
	}
}

func TestToolsUnderAnotherName(t *testing.T) {
	tm, err := New("{{ messages[0].content }}{{ xml_tools | tojson if xml_tools }}", Options{})
	require.NoError(t, err)
	require.True(t, tm.Caps().Tools)
	c := chat.Conversation{Messages: []chat.Message{says(chat.User, "u")}, Tools: []chat.Tool{{Name: "f", Parameters: json.RawMessage("null")}}}
	require.Equal(t, `u[{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}]`, text(t, tm, c))
}

// FireFunction takes its tools as JSON text, and asks for the time of day.
func TestToolsAsText(t *testing.T) {
	tm, err := New("{{ 'Functions: ' + functions + ', ' + datetime + '. ' if functions }}{{ messages[0].content }}", Options{})
	require.NoError(t, err)
	require.True(t, tm.Caps().Tools)
	c := chat.Conversation{Messages: []chat.Message{says(chat.User, "u")}, Tools: []chat.Tool{{Name: "f", Parameters: json.RawMessage("null")}}}
	require.Equal(t, `Functions: [{"name": "f", "parameters": {"type": "object", "properties": {}}}], 2026-03-05. u`, text(t, tm, c))
}

func TestContinued(t *testing.T) {
	c := chat.Conversation{Messages: []chat.Message{says(chat.User, "u"), says(chat.Assistant, "begun <|im_end|>")}, ContinueLast: true}
	for name, source := range map[string]string{
		"shown":       "{% for m in messages %}[{{ m.role }}]{{ m.content }}<end>{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}",
		"last unseen": "{% for m in messages[:-1] %}[{{ m.role }}]{{ m.content }}<end>{% endfor %}{% if messages[-1].role == 'user' %}[user]{{ messages[-1].content }}<end>{% endif %}{% if add_generation_prompt %}[assistant]{% endif %}",
	} {
		tm, err := New(source, Options{})
		require.NoError(t, err, name)
		require.Equal(t, "[user]u<end>[assistant]begun <|im_end|>", text(t, tm, c), name)
	}
}

func TestTuning(t *testing.T) {
	src := "{% for m in messages %}{% if m.role == 'tool' %}<tool_response>{{ m.content }}</tool_response>;{% else %}{{ m.content }}{{ m.tool_calls }};{% endif %}{% endfor %}"
	tm, err := New(src, Options{Name: "Some Coder 0.5B", Parameters: 5e8})
	require.NoError(t, err)
	tm.main.tuning = tuning{anchor: "</tool_response>", afterResults: "!"}
	c := chat.Conversation{Messages: []chat.Message{
		says(chat.User, "u"), calls(tideCall, busCall), result("call_1", "</tool_response>1"), result("call_2", "2"), says(chat.Assistant, "a"),
		says(chat.User, "v"), calls(tideCall), result("call_1", "3"),
	}}
	got := text(t, tm, c)
	require.Contains(t, got, "2</tool_response>!;a")
	require.Contains(t, got, "3</tool_response>!;")
	require.NotContains(t, got, "1</tool_response>!")
}

func TestTuningIsForItsModelOnly(t *testing.T) {
	row := tunings[0]
	require.Equal(t, row.tuning, tuningFor(row.fingerprint, Options{Name: "Qwen2.5 Coder 0.5B Instruct AWQ", Parameters: 630e6}))
	require.Zero(t, tuningFor(row.fingerprint, Options{Name: "Qwen2.5 Coder 7B Instruct", Parameters: 7e9}))
	require.Zero(t, tuningFor(row.fingerprint, Options{Name: "Qwen2.5 0.5B Instruct", Parameters: 630e6}))
	require.Zero(t, tuningFor("other", Options{Name: "Qwen2.5 Coder 0.5B", Parameters: 630e6}))
}

// A template that writes thoughts before calls only, and drops the text beside
// calls once an answer follows, gets that text as a turn of its own.
func TestTextBesideCallsIsNotDropped(t *testing.T) {
	tm, err := New("{% for m in messages %}{% set i = loop.index0 %}{% if m.tool_calls %}"+
		"{% if m.content and m.thinking %}{{ raise_exception('both') }}{% endif %}"+
		"{% if messages[i + 1:] | selectattr('role', 'equalto', 'assistant') | list | length == 0 %}({{ m.thinking or m.content }}){% endif %}"+
		"{{ m.tool_calls[0].function.name }}{{ m.tool_calls[0].function.arguments | tojson }}{% else %}[{{ m.content }}]{% endif %}{% endfor %}", Options{})
	require.NoError(t, err)
	require.False(t, tm.Caps().TextWithCalls)
	require.True(t, tm.Caps().Reasoning)
	chain := []chat.Message{
		says(chat.User, "u"), {Role: chat.Assistant, Reasoning: "th", Content: "wait"},
		calls(chat.Call{ID: "call_1", Name: "f", Arguments: `{}`}), result("call_1", "r"),
	}
	require.Equal(t, "[u][wait](th)f{}[r]", text(t, tm, chat.Conversation{Messages: chain}))
	require.Equal(t, "[u][wait]f{}[r][done]", text(t, tm, chat.Conversation{Messages: append(chain, says(chat.Assistant, "done"))}))
}
