package toolcall

import (
	"encoding/json"
	"strings"
	"testing"

	"quern/models/chat"

	"github.com/stretchr/testify/require"
)

const toPing = "<|channel|>commentary to=functions.ping <|constrain|>json<|message|>"

var messageCases = []lexCase{
	{name: "thoughts, preamble, call", in: "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary<|message|> Wait. <|end|><|start|>assistant" + toPing + "{}<|call|>", reasoning: "Hm.", text: "Wait.", calls: []answerCall{call("ping", "{}")}},
	{name: "no header", in: "Hello.", text: "Hello."},
	{name: "no header, like one", in: " to be, or not", text: " to be, or not"},
	{name: "a body without header", in: "<|message|>Hello.<|end|>", text: "Hello."},
	{name: "no body", in: "<|channel|>final Hello, you", text: "<|channel|>final Hello, you"},
	{name: "no end, next message", in: "<|channel|>analysis<|message|>Hm.<|channel|>final<|message|>Hi.", reasoning: "Hm.", text: "Hi."},
	{name: "no end, next start", in: "<|channel|>final<|message|>Hi.<|start|>assistant" + toPing + "{}", text: "Hi.", calls: []answerCall{call("ping", "{}")}},
	{name: "a mark in a text", in: "<|channel|>final<|message|>Use <|start|>, please.<|end|>", text: "Use <|start|>, please."},
	{name: "a mark in thoughts", in: "<|channel|>analysis<|message|>The <|channel|>! Well.<|end|>Hi.", reasoning: "The <|channel|>! Well.", text: "Hi."},
	{name: "a header of any length", in: "<|channel|>" + strings.Repeat("x", 600) + "<|message|>Hi.", text: "<|channel|>" + strings.Repeat("x", 600) + "\nHi."},
	{name: "another channel", in: "<|channel|>other<|message|>Hi.<|end|>", text: "Hi."},
	{name: "two texts", in: "<|channel|>commentary<|message|>A.<|end|><|start|>assistant<|channel|>final<|message|>B.<|return|>", text: "A.\nB."},
	{name: "end markers in strings", in: toPing + `{"a":"<|call|><|end|>"}<|call|>`, calls: []answerCall{call("ping", `{"a":"<|call|><|end|>"}`)}},
	{name: "missing brackets in a message", in: toPing + `{"a":[1<|call|>`, calls: []answerCall{call("ping", `{"a":[1]}`)}},
	{name: "text behind arguments", in: toPing + `{} done<|call|>`, text: "done", calls: []answerCall{call("ping", "{}")}},
	{name: "no arguments in a message", in: toPing + `<|call|>`, calls: []answerCall{call("ping", "{}")}},
	{name: "no arguments in a message, no end", in: toPing + "\n", calls: []answerCall{call("ping", "{}")}},
	{name: "no arguments in a message, cut", cut: true, in: toPing, calls: []answerCall{cutCall("ping", "")}},
	{name: "no arguments though some are needed", in: "<|channel|>commentary to=functions.add<|message|><|call|>", text: "<|channel|>commentary to=functions.add<|message|>", malformed: 1},
	{name: "words for arguments", in: toPing + `none<|call|>`, text: toPing + "none", malformed: 1},
	{name: "a tool of another name", in: "<|channel|>commentary to=nope<|message|>{}<|call|>", text: "<|channel|>commentary to=nope<|message|>{}", malformed: 1},
	{name: "for the user by name", in: " to=user<|channel|>final<|message|>Hi.", text: "Hi."},
	{name: "cut in a header", cut: true, in: "<|channel|>analysis<|message|>Hm.<|end|><|start|>assis", reasoning: "Hm."},
	{name: "cut in a mark", cut: true, in: "<|channel|>fin", text: ""},
	{name: "cut in a recipient", cut: true, in: "<|channel|>commentary to=functions.pi", text: ""},
	{name: "stopped in a marker", in: "<|channel|>final<|mess", text: "<|channel|>final<|mess"},
	{name: "thoughts go on", opt: Options{StartInReasoning: true}, in: "Hm.<|end|>Hi.", reasoning: "Hm.", text: "Hi."},
	{name: "messages, no tools", opt: Options{Tools: []chat.Tool{}}, in: toPing + "{}<|call|>", text: toPing + "{}", malformed: 1},
	{name: "one call of messages", opt: Options{MaxCalls: 1}, in: toPing + "{}<|call|><|start|>assistant" + toPing + "{}<|call|>", calls: []answerCall{call("ping", "{}")}},

	{name: "tags to a tool", format: "muse_glimmer", in: " to=note<|message|><atem:function_calls>\n<atem:invoke name=\"note\">\n<atem:parameter name=\"text\"> a </atem:parameter>\n</atem:invoke>\n</atem:function_calls><|eot|>", calls: []answerCall{call("note", `{"text":" a "}`)}},
	{name: "no tags to a tool", format: "muse_glimmer", in: " to=note<|message|>a<|eot|>", text: "a"},
	{name: "tags to the user", format: "muse_glimmer", in: " to=user<|message|><atem:function_calls><|eot|>", text: "<atem:function_calls>"},
	{name: "tags to nobody's tool", format: "muse_glimmer", in: " to=nope<|message|>a<|eot|>", text: "to=nope<|message|>a", malformed: 1},

	{name: "recipients", format: "functionary_v32", in: "all\nHi.>>>ping\n{}>>>add\n{\"a\":1}", text: "Hi.", calls: []answerCall{call("ping", "{}"), call("add", `{"a":1}`)}},
	{name: "a prompt of Python's", format: "functionary_v32", in: "all\n>>> ping\n>>>pin", text: ">>> ping\n>>>pin"},
	{name: "nearly a recipient", format: "functionary_v32", in: "allow me\nto add", text: "allow me\nto add"},

	{name: "kinds of content", format: "inkling", in: "<|message_model|><|content_thinking|>Hm.<|end_message|><|content_text|>Hi.<|end_message|><|message_model|>ping<|content_invoke_tool_json|>{\"name\":\"ping\",\"args\":{}}<|end_message|>", reasoning: "Hm.", text: "Hi.", calls: []answerCall{call("ping", "{}")}},
	{name: "content that names no tool", format: "inkling", in: "<|message_model|>ping<|content_invoke_tool_json|>{\"args\":{}}<|end_message|>", text: "<|message_model|>ping<|content_invoke_tool_json|>{\"args\":{}}", malformed: 1},
}

func TestMessages(t *testing.T) {
	for _, c := range messageCases {
		c.format = orElse(c.format, "harmony")
		t.Run(c.name, func(t *testing.T) {
			f, o := c.setup()
			byToken := o
			byToken.Lookup = lookupIn(f)
			for i, o := range []Options{o, byToken} {
				got := lex(f, o, tokens(f, c.in, nil, i == 0), c.cut)
				require.Equal(t, c.text, got.Text)
				require.Equal(t, c.reasoning, got.Reasoning)
				require.Equal(t, c.calls, got.Calls)
				require.Len(t, got.Malformed, c.malformed, "%v", got.Malformed)
			}
			checkSplits(t, f, o, c.in, c.cut)
		})
	}
}

// Text is given out with the token that brings it, arguments are, too.
func TestMessagesAreNotHeldBackInVain(t *testing.T) {
	f := row("harmony")
	l := NewLexer(&f, Options{Tools: testTools})
	at := func(text string) (out string) {
		for _, e := range l.Push(-1, []byte(text)) {
			out += e.Name + string(e.Text)
		}
		return out
	}
	require.Empty(t, at("<|channel|>final<|message"))
	require.Equal(t, "Hello", at("|>Hello"))
	require.Equal(t, " <you", at(" <you"))
	require.Empty(t, at("<|e"))
	require.Equal(t, "<|every", at("very"))
	require.Empty(t, at("<|end|><|start|>assistant to=functions.note<|channel|>commentary json<|message|>"))
	require.Empty(t, at(`{"te`))
	require.Equal(t, `note{"text":"ab`, at(`xt":"ab`))
	require.Equal(t, "c", at("c"))
	l = NewLexer(&f, Options{Tools: testTools})
	require.Equal(t, "Hello", at("Hello"), "no header")
}

// Markers in ordinary letters are text where the vocabulary has tokens for them.
func TestSpelledMarkersAreText(t *testing.T) {
	f := row("harmony")
	o := Options{Tools: testTools, Lookup: lookupIn(&f)}
	got := lex(&f, o, []piece{
		{markerID(&f, "<|channel|>"), ""}, {-1, "final"}, {markerID(&f, "<|message|>"), ""},
		{-1, "It ends with <|end|> or <|start|>assistant<|channel|>final<|message|>"}, {markerID(&f, "<|return|>"), ""}, {-1, "x"},
	}, false)
	require.Equal(t, "It ends with <|end|> or <|start|>assistant<|channel|>final<|message|>", got.Text, "nothing behind the last marker counts")
	o.Constrained = true
	got = lex(&f, o, []piece{{-1, toPing + "{}"}}, false)
	require.Equal(t, []answerCall{call("ping", "{}")}, got.Calls)
	o.JSON = true
	got = lex(&f, o, []piece{{-1, `<|channel|>final<|message|>{"a":"<|end|>"}`}}, false)
	require.JSONEq(t, `{"a":"<|end|>"}`, got.Text, "a grammar may spell headers, but JSON is JSON")
}

func TestCutInAMarkerOfAHeader(t *testing.T) {
	f := row("harmony")
	require.Empty(t, lex(&f, Options{}, []piece{{-1, "<|channel|>final<|mess"}}, true).Text)
}

func TestHeadersOfThoughtsAreThoughts(t *testing.T) {
	f := row("harmony")
	l := NewLexer(&f, Options{Tools: testTools})
	for _, s := range []string{
		"<|channel|>", "analysis", "<|message|>", "Hm", ".", "<|end|>", // 6
		"<|start|>", "assistant", "<|channel|>", "analysis", "<|message|>", "So", "<|end|>", // 7
		"<|start|>", "assistant", "<|channel|>", "final", "<|message|>", "Hi", "<|return|>",
	} {
		l.Push(-1, []byte(s))
	}
	require.Equal(t, 13, l.ReasoningTokens())
}

func TestMessageGrammar(t *testing.T) {
	f := row("harmony")
	const call = "<|channel|>commentary to=functions.get_time <|constrain|>json<|message|>"
	const utc = `{"zone": "UTC"}`
	const hm = "<|channel|>analysis<|message|>Hm <|channel|>.<|end|><|start|>assistant"
	strict := []chat.Tool{strictly(grammarTools[0]), grammarTools[1]}
	for _, c := range []struct {
		name    string
		tools   []chat.Tool
		o       GrammarOptions
		opening string
		yes, no []string
	}{
		{"required", grammarTools, GrammarOptions{Require: true}, "<|channel|>commentary to=functions.",
			[]string{"get_time <|constrain|>json<|message|>" + utc}, []string{"", "Hi", call + utc, "get_time <|constrain|>json<|message|>" + utc + "<|end|>"}},
		{"required, the model may think", grammarTools, GrammarOptions{Require: true, Thinking: MayThink}, "",
			[]string{call + utc, hm + call + utc}, []string{utc, hm + hm + call + utc, hm + "<|channel|>final<|message|>Hi", hm}},
		{"required, thoughts are open", grammarTools, GrammarOptions{Require: true, Thinking: InThoughts}, "",
			[]string{"Hm<|end|><|start|>assistant" + call + utc}, []string{call + utc}},
		{"auto, strict", strict, GrammarOptions{Thinking: MayThink}, "",
			[]string{
				hm + call + utc, "<|channel|>final<|message|>", "<|channel|>final<|message|>Hi <|ca.",
				hm + "<|channel|>commentary<|message|>Wait.<|end|><|start|>assistant" + call + utc,
				"<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>" + `{"any": [1]}`,
			},
			[]string{"Hi", hm + call + `{"zone": "EST"}`, call + utc + "<|end|>", "<|channel|>final<|message|>Hi<|end|>"}},
		{"JSON schema", nil, GrammarOptions{Answer: &Answer{Schema: json.RawMessage(`{"type":"object","properties":{"x":{"enum":["<|end|>"]}},"required":["x"]}`)}, Thinking: MayThink}, "",
			[]string{`<|channel|>final<|message|>{"x": "<|end|>"}`, hm + `<|channel|>final<|message|>{"x": "<|end|>"}`}, []string{`{"x": "<|end|>"}`, hm, `<|channel|>final<|message|>{}`}},
		{"JSON or a call", grammarTools, GrammarOptions{Answer: &Answer{}}, "",
			[]string{`<|channel|>final<|message|>{}`, call + utc}, []string{"{}", utc}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, parsed := mustGrammar(t, &f, c.tools, c.o)
			require.Equal(t, c.opening, g.Opening)
			for _, s := range c.yes {
				require.True(t, parsed.Accepts(s), "must accept %q\n%s", s, g.GBNF)
			}
			for _, s := range c.no {
				require.False(t, parsed.Accepts(s), "must refuse %q", s)
			}
		})
	}
}

// Other families write several calls, each as a message.
func TestMessageSpelling(t *testing.T) {
	for name, want := range map[string]string{
		"inkling":         `<|message_model|>get_time<|content_invoke_tool_json|>{"name": "get_time", "args": {"zone": "UTC"}}<|end_message|><|message_model|>ping<|content_invoke_tool_json|>{"name": "ping", "args": {}}`,
		"functionary_v32": "get_time\n{\"zone\": \"UTC\"}>>>ping\n{}",
	} {
		f := row(name)
		g, parsed := mustGrammar(t, &f, grammarTools, GrammarOptions{Require: true})
		rest, found := strings.CutPrefix(want, g.Opening)
		require.True(t, found, name)
		require.True(t, parsed.Accepts(rest), "%s: %s\n%s", name, rest, g.GBNF)
	}
}
