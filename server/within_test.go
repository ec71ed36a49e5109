package server

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLimitsAreNamed(t *testing.T) {
	n := newNode(t, "hi", nodeOptions{config: Config{Limits: Limits{Depth: 10, Items: 3, Tools: 2, Text: 200, Images: 30}}})
	items := func(k int) string {
		return `[` + strings.Repeat(`{"role":"user","content":"x"},`, k-1) + `{"role":"user","content":"x"}]`
	}
	tools := func(k int) string {
		return `[{"type":"namespace","name":"n","tools":[` + strings.Repeat(`{"type":"function","name":"a"},`, k-1) + `{"type":"function","name":"b"}]}]`
	}
	image := func(k int) string {
		return `{"input":[{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,` + strings.Repeat("AAAA", k) + `"}]}]}`
	}
	long := strings.Repeat("y", 150)
	for _, row := range []struct{ body, param, code, says string }{
		{`{"input":` + strings.Repeat("[", 10) + strings.Repeat("]", 10) + `}`, "", codeInvalidJSON, "10 levels"},
		{`{"input":` + items(4) + `}`, "input", codeTooLarge, "4 items, the limit of this node is 3 (--max-items)"},
		{`{"input":"hi","tools":` + strings.Replace(tools(3), `"a"`, `"c"`, 1) + `}`, "tools", codeTooLarge, "3 tools, those of namespaces counted; the limit of this node is 2 (--max-tools)"},
		{`{"input":["` + long + `"]}`, "input[0]", codeInvalidType, ""},
		{`{"input":"` + long + `","instructions":"` + long + `"}`, "input", codeTooLarge, "300 bytes of text, the limit of this node is 200 (--max-text)"},
		{`{"input":[{"role":"user","content":"` + long + `"},{"role":"user","content":"` + long + `"}]}`, "input[1]", codeTooLarge, "--max-text"},
		{`{"input":"hi","tools":[{"type":"function","name":"f","description":"` + long + long + `"}]}`, "tools[0]", codeTooLarge, "--max-text"},
		{`{"input":"hi","instructions":"` + long + long + `"}`, "instructions", codeTooLarge, "--max-text"},
		{image(11), "input[0].content[0]", codeTooLarge, "33 bytes of images, the limit of this node is 30 (--max-images)"},
		{image(10), "input[0].content[0]", codeUnsupported, `the model "test-model" takes no image input`},
	} {
		e := n.refused(400, "/v1/responses", row.body)
		require.Equal(t, row.code, e["code"], "%v", e)
		require.Contains(t, e["message"], row.says)
		if row.param != "" {
			require.Equal(t, row.param, e["param"])
		}
	}
	e := n.refused(400, "/v1/chat/completions", `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,`+strings.Repeat("AAAA", 11)+`"}}]}]}`)
	require.Equal(t, "messages[0].content[0]", e["param"])
	require.Contains(t, e["message"], "33 bytes of images, the limit of this node is 30 (--max-images)")
	e = n.refused(400, "/tokenize", `{"messages":`+items(4)+`}`)
	require.Contains(t, e["message"], "--max-items")
	n.create(`{"input":` + items(3) + `,"tools":` + tools(2) + `}`)
	e = n.refused(400, "/v1/chat/completions", `{"messages":`+items(4)+`}`)
	require.Equal(t, "messages", e["param"])

	l := n.dial()
	first := l.turn(`"input":` + items(2)).Final()
	e = l.refused(400, `{"type":"response.create","input":"x","previous_response_id":"`+first["id"].(string)+`"}`)
	require.Contains(t, e["message"], "4 items", "what a socket remembers counts")
}
