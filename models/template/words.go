package template

import (
	"hash/fnv"
	"strings"
)

// worded writes the calls of an answer, or a result, in the Hermes form.
func (r *rendering) worded(t turn) string {
	if len(t.calls) == 0 {
		return "<tool_response>\n" + t.content + "\n</tool_response>"
	}
	parts := make([]string, len(t.calls))
	for i, c := range t.calls {
		parts[i] = "<tool_call>\n" + `{"name": ` + r.quoted(c.name) + `, "arguments": ` + r.argsText(c.args) + "}\n</tool_call>"
	}
	return strings.Join(parts, "\n")
}

func (r *rendering) quoted(s string) string {
	text, _ := r.json(dict("", s).AsDict().Data[""]) // a string always has a JSON form
	return text
}

func (r *rendering) argsText(args string) string {
	if v, ok := r.object(args); ok {
		if text, err := r.json(v); err == nil {
			return text
		}
	}
	return r.quoted(r.g.text(args))
}

// toolText describes the tools to a model whose template does not.
func (r *rendering) toolText() (string, error) {
	var b strings.Builder
	b.WriteString("# Tools\n\nYou can call the functions below. Each line is one of them, as JSON:\n<tools>\n")
	for _, t := range r.c.Tools {
		v, err := r.tool(t)
		if err != nil {
			return "", err
		}
		text, err := r.json(v)
		if err != nil {
			return "", err
		}
		b.WriteString(text)
		b.WriteByte('\n')
	}
	b.WriteString("</tools>\n\nTo call one, answer with a JSON object between these tags:\n" +
		"<tool_call>\n{\"name\": \"<function name>\", \"arguments\": {<its arguments>}}\n</tool_call>\n" +
		"Its result then comes between <tool_response> tags. Where no function is needed, answer in plain words.")
	return b.String(), nil
}

// callID is a call's id as the template wants it. Short ids are made from the
// client's, so that a call keeps its id from turn to turn.
func (r *rendering) callID(id string) string {
	if !r.v.traits.shortIDs || isShortID(id) {
		return id
	}
	const letters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	h := fnv.New64a()
	_, _ = h.Write([]byte(id)) // never fails
	short := make([]byte, shortIDLength)
	for n, i := h.Sum64(), 0; i < len(short); i++ {
		short[i] = letters[n%uint64(len(letters))]
		n /= uint64(len(letters))
	}
	return string(short)
}

const shortIDLength = 9

func isShortID(id string) bool {
	for _, c := range id {
		if (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return len(id) == shortIDLength
}
