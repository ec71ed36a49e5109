package server

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"quern/models/chat"
)

func TestOverlongInputIsRefusedOrShortened(t *testing.T) {
	n := newNode(t, "ok")
	turns := []string{`{"role":"system","content":"SYS"}`}
	for i := range 30 {
		turns = append(turns,
			fmt.Sprintf(`{"role":"user","content":"question %02d %s"}`, i, strings.Repeat("x", 60)),
			fmt.Sprintf(`{"type":"function_call","call_id":"c%d","name":"f","arguments":"{}"}`, i),
			fmt.Sprintf(`{"type":"function_call_output","call_id":"c%d","output":"result %02d"}`, i, i),
			fmt.Sprintf(`{"role":"assistant","content":"answer %02d"}`, i))
	}
	turns = append(turns, `{"role":"user","content":"last question"}`)
	body := `{"max_output_tokens":50,"input":[` + strings.Join(turns, ",") + `]`
	e := n.refused(400, "/v1/responses", body+`}`)
	require.Equal(t, codeContextLength, e["code"])
	require.Equal(t, "input", e["param"])
	require.Regexp(t, `\d+ tokens .* window of 2000 tokens`, e["message"])

	one := n.create(body + `,"truncation":"auto"}`)
	p := n.LastPrompt()
	require.Contains(t, p, "SYS")
	require.Contains(t, p, "last question")
	require.NotContains(t, p, "question 00")
	require.Contains(t, p, "answer 29")
	require.LessOrEqual(t, dig(one, "usage", "input_tokens").(float64), 1950.0)
	require.Greater(t, dig(one, "usage", "input_tokens").(float64), 1600.0, "no more is dropped than must be")
	first := strings.Index(p, "<|im_start|>user\nquestion")
	require.Positive(t, first)
	require.NotContains(t, p[:first], "result", "no output without its call")

	e = n.refused(400, "/v1/responses", `{"truncation":"auto","input":"`+strings.Repeat("y", 3000)+`"}`)
	require.Equal(t, codeContextLength, e["code"])
	e = n.refused(400, "/v1/responses", `{"input":"hi","max_output_tokens":1990}`)
	require.Equal(t, "max_output_tokens", e["param"])
}

func TestCutPoints(t *testing.T) {
	m := func(roles string) []chat.Message {
		var out []chat.Message
		for _, r := range roles {
			out = append(out, chat.Message{Role: map[rune]chat.Role{'s': chat.System, 'u': chat.User, 'a': chat.Assistant, 't': chat.ToolRole}[r]})
		}
		return out
	}
	for _, row := range []struct {
		roles string
		want  []string // what is left after each cut
	}{
		{"u", nil},
		{"su", nil},
		{"suau", []string{"su"}},
		{"uauau", []string{"uau", "u"}},
		{"suatatau", []string{"su"}},
		{"suatata", []string{"suata", "sua"}},
		{"uauatat", []string{"uatat", "uat"}},
		{"aatat", []string{"atat", "at"}},
	} {
		messages := m(row.roles)
		var got []string
		for _, c := range cutPoints(messages) {
			left := ""
			for _, k := range c.apply(messages) {
				left += string(k.Role[0])
			}
			got = append(got, left)
		}
		require.Equal(t, row.want, got, row.roles)
	}
}
