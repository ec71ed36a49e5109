package toolcall

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"quern/models/chat"
)

// writer is a template that writes calls between five texts. With tagged set the
// arguments stand between d and e each.
func writer(head, before, a, b, c, d, e, after string, tagged bool) Renderer {
	return func(messages []chat.Message, _ []chat.Tool, open bool) (string, error) {
		var out strings.Builder
		for _, m := range messages {
			out.WriteString(head + string(m.Role) + ":" + m.Content)
			if len(m.Calls) > 0 {
				out.WriteString(before)
			}
			for _, call := range m.Calls {
				out.WriteString(a + call.Name + b)
				if !tagged {
					out.WriteString(call.Arguments)
				} else if !tags(&out, call.Arguments, d, e) {
					return "", errors.New("no object")
				}
				out.WriteString(c)
			}
			if len(m.Calls) > 0 {
				out.WriteString(after)
			}
			out.WriteString("\n")
		}
		if open {
			out.WriteString(head + "assistant:")
		}
		return out.String(), nil
	}
}

func tags(out *strings.Builder, arguments, d, e string) bool {
	var args map[string]json.RawMessage
	if json.Unmarshal([]byte(arguments), &args) != nil {
		return false
	}
	keys := make([]string, 0, len(args))
	for k := range args {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		out.WriteString(d + k + e + strings.Trim(string(args[k]), `"`) + d)
	}
	return true
}

func TestProbe(t *testing.T) {
	f, why, err := Probe(writer("|", "<all>", "<one>", "<with>", "</one>", "", "", "</all>", false))
	require.NoError(t, err)
	require.Equal(t, "JSON behind a name between <all> and </all>", why)
	require.Equal(t, Block{
		Style: ArgsAfterName, Section: "<all>", SectionEnd: "</all>", Start: "<one>", NameEnd: "<with>", End: "</one>",
	}, f.Blocks[0])
	_, _, err = Probe(writer("", "", "", " ", "", "", "", "", false))
	require.Error(t, err, "a name in plain text")
	_, _, err = Probe(func([]chat.Message, []chat.Tool, bool) (string, error) { return "", errors.New("refused") })
	require.ErrorIs(t, err, errNoCall)
	_, why = Choose("tools", writer("|", "<all>", "<one>", "<with>", "</one>", "", "", "</all>", false))
	require.Contains(t, why, "read off")
	f, why = Choose("tools <function=", writer("|", "<all>", "<one>", "<with>", "</one>", "", "", "</all>", false))
	require.Equal(t, Probed, f.Name)
	require.Contains(t, why, "not as that family does")
	_, why = Choose("tools", writer("", "", "", " ", "", "", "", "", false))
	require.Contains(t, why, "generic")
}

func TestChooseForcesWhatTheTemplateWrites(t *testing.T) {
	for mark, rest := range map[string]string{
		"<|message_sep|>\n\nfunction call<|role_sep|>\n": "<|function_call|>",
		"<|function_call|>": "<|message_sep|>\n\nfunction call<|role_sep|>",
	} {
		f, _ := Choose("tools <|role_sep|> function call", writer("|", "", mark+`{"name": "`, `", "arguments": `, "}", "", "", "", false))
		require.Equal(t, "gigachat3", f.Name)
		require.Equal(t, strings.TrimSpace(mark), f.Blocks[0].Start)
		require.Contains(t, f.Markers(), rest, "what the family writes besides is read")
		require.Len(t, f.Blocks, len(row("gigachat3").Blocks))
	}
	require.Equal(t, "<|message_sep|>\n\nfunction call<|role_sep|>", row("gigachat3").Blocks[0].Start, "the row itself")
}

// Whatever a template writes, what is read off it reads what it writes.
func FuzzProbe(f *testing.F) {
	f.Add("|", "<all>", "<one>", "<with>", "</one>", "", "", "</all>", false)
	f.Add("<s>", "", "\n<f name=\"", "\">\n", "</f>\n", "<p>", "</p><v>", "", true)
	f.Add("", "[", "{\"name\": \"", "\", \"arguments\": ", "}", "", "", "]", false)
	f.Add("[A]", " ", "call(", "=", ")", ",", ":", "<|x|>", true)
	f.Fuzz(func(t *testing.T, head, before, a, b, c, d, e, after string, tagged bool) {
		render := writer(head, before, a, b, c, d, e, after, tagged)
		format, _, err := Probe(render)
		if err == nil {
			require.Equal(t, Probed, format.Name)
			require.Len(t, format.Blocks, 1)
		}
		Choose("tools", render)
	})
}
