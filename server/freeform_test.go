package server

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"quern/models/schema/gbnf"
)

func freeformTool(syntax, definition string) string {
	return `{"type":"custom","name":"note","format":{"type":"grammar","syntax":"` + syntax + `","definition":` +
		string(appendString(nil, definition)) + `}}`
}

// TestFreeformGrammars: a grammar holds the text of a custom tool, what can't be
// held is named, and the model is told in both cases.
func TestFreeformGrammars(t *testing.T) {
	n := newNode(t, `<tool_call>{"name": "note", "arguments": {"input": "ab-12"}}</tool_call>`)
	for _, row := range []struct {
		syntax, definition, ignored string
		yes, no                     string // texts
	}{
		{"regex", `[a-z]+-[0-9]{2}`, "", `ab-12`, `ab-1`},
		{"regex", `yes|no`, "", `yes`, `yesno`},
		{"regex", `(a)\1`, `tools[0].format=regex is not enforced: $.properties.input.pattern: "\\1": not supported in a grammar`, "", ""},
		{"lark", `start: /a+/`, "", `aa`, `ab`},
		{"lark", "start: \"say \" \"\\\"hi\\\"\" LF\n%import common.LF", "", `say \"hi\"\n`, `say \"hi\"n`},
		{"lark", `start: start "+" /[0-9]+/ | /[0-9]+/`, "", `1+23+4`, `1+`},
		{"lark", `start: /(?=a)a/`, `tools[0].format=lark is not enforced: line 1: the expression /(?=a)a/ is not held`, "", ""},
	} {
		for _, choice := range []string{`"required"`, `"auto"`, `{"type":"custom","name":"note"}`} {
			body := `{"input":"hi","tools":[` + freeformTool(row.syntax, row.definition) + `,{"type":"function","name":"f"}],"tool_choice":` + choice + `}`
			res, text := n.do("POST", "/v1/responses", body)
			require.Equal(t, 200, res.StatusCode, text)
			require.Equal(t, headerText(row.ignored), res.Header.Get(ignoredHeader))
			require.Contains(t, n.LastPrompt(), "The input follows this "+row.syntax+" grammar")
			grammar := n.LastParams().Grammar
			if row.ignored != "" && choice == `"auto"` {
				require.Empty(t, grammar)
			}
			if row.yes == "" {
				continue
			}
			g, err := gbnf.Parse(grammar)
			require.NoError(t, err, grammar)
			call := func(text string) string {
				return "<tool_call>\n" + `{"name": "note", "arguments": {"input": "` + text + `"}}` + "\n</tool_call>"
			}
			require.True(t, g.Accepts(call(row.yes)), "%s %s: %s", choice, row.definition, grammar)
			require.False(t, g.Accepts(call(row.no)), "%s %s", choice, row.definition)
			if choice == `"auto"` {
				require.True(t, g.Accepts("free text"))
			}
		}
	}
	require.Equal(t, "custom_tool_call", dig(n.create(`{"input":"hi","tools":[`+freeformTool("regex", "[a-z]+-[0-9]{2}")+`]}`), "output", 0, "type"))
}

// A grammar that is none is refused by the place where it stands, in both APIs.
func TestBrokenFreeformGrammars(t *testing.T) {
	n := newNode(t, "hi")
	for _, row := range []struct{ definition, message string }{
		{`start: "a`, `line 1: " is not closed`},
		{"start: other", "line 1: the rule other is not defined"},
		{"start: \"a\"\nstart: \"b\"", "line 2: start is defined twice"},
		{"other: \"a\"", "there is no rule start"},
		{`start: start "a"`, "no text follows the grammar"},
	} {
		body := `{"input":"hi","tools":[` + freeformTool("lark", row.definition) + `]}`
		res, text := n.do("POST", "/v1/responses", body)
		require.Equal(t, 400, res.StatusCode, text)
		require.Contains(t, text, `"param":"tools[0].format.definition"`)
		require.Contains(t, text, string(appendString(nil, row.message))[1:len(string(appendString(nil, row.message)))-1])
	}
	chat := `{"messages":[{"role":"user","content":"hi"}],"tools":[{"type":"custom","custom":{"name":"note","format":{"type":"grammar","grammar":{"syntax":"lark","definition":"start: x"}}}}]}`
	res, text := n.do("POST", "/v1/chat/completions", chat)
	require.Equal(t, 400, res.StatusCode, text)
	require.Contains(t, text, "custom.format.grammar.definition")
}

// Beyond a number of grammars the rest is only told to the model.
func TestManyFreeformGrammars(t *testing.T) {
	n := newNode(t, "hi")
	tools := make([]string, maxGrammars+1)
	for i := range tools {
		tools[i] = `{"type":"custom","name":"t` + strconv.Itoa(i) + `","format":{"type":"grammar","syntax":"regex","definition":"a"}}`
	}
	res, text := n.do("POST", "/v1/responses", `{"input":"hi","tool_choice":"none","tools":[`+strings.Join(tools, ",")+`]}`)
	require.Equal(t, 200, res.StatusCode, text)
	require.Equal(t, "tools[64].format=regex is not enforced: there are many", res.Header.Get(ignoredHeader))
}
