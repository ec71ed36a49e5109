package server

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func freeformTool(syntax, definition string) string {
	return `{"type":"custom","name":"note","format":{"type":"grammar","syntax":"` + syntax + `","definition":` +
		string(appendString(nil, definition)) + `}}`
}

// TestFreeformGrammars: a regular expression holds the text of a custom tool,
// what can't be held is named, and the model is told in both cases.
func TestFreeformGrammars(t *testing.T) {
	n := newNode(t, `<tool_call>{"name": "note", "arguments": {"input": "ab-12"}}</tool_call>`)
	for _, row := range []struct {
		syntax, definition, ignored string
		rule                        string // of the grammar
	}{
		{"regex", `[a-z]+-[0-9]{2}`, "", `[a-z]`},
		{"regex", `yes|no`, "", `[y] "es"`},
		{"regex", `(a)\1`, "tools[0].format=regex is not enforced", ""},
		{"lark", `start: /a+/`, "tools[0].format=lark is not enforced", ""},
	} {
		for _, choice := range []string{"required", "auto"} {
			body := `{"input":"hi","tools":[` + freeformTool(row.syntax, row.definition) + `],"tool_choice":"` + choice + `"}`
			res, text := n.do("POST", "/v1/responses", body)
			require.Equal(t, 200, res.StatusCode, text)
			require.Equal(t, row.ignored, res.Header.Get(ignoredHeader))
			require.Contains(t, n.LastPrompt(), "The input follows this "+row.syntax+" grammar")
			grammar := n.LastParams().Grammar
			if row.rule != "" {
				require.Contains(t, grammar, row.rule, "%s %s", choice, row.definition)
			} else if choice == "auto" {
				require.Empty(t, grammar)
			}
		}
	}
	require.Equal(t, "custom_tool_call", dig(n.create(`{"input":"hi","tools":[`+freeformTool("regex", "[a-z]+-[0-9]{2}")+`]}`), "output", 0, "type"))
}
