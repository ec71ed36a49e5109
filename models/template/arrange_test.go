package template

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var everything = Caps{
	SystemRole: true, DeveloperRole: true, MidSystem: true, Tools: true, ToolCalls: true, ToolRole: true, ParallelCalls: true,
	TextWithCalls: true, RepeatedUser: true, RepeatedAssistant: true, AssistantFirst: true, UserAfterResult: true,
}

func but(change func(*Caps)) Caps {
	c := everything
	change(&c)
	return c
}

// show writes turns on one line: role:content, calls in brackets.
func show(ts []turn) string {
	var parts []string
	for _, t := range ts {
		s := t.role[:1] + ":" + strings.ReplaceAll(t.content, "\n", "/")
		if t.reasoning != "" {
			s += "{" + t.reasoning + "}"
		}
		for _, c := range t.calls {
			s += "[" + c.name + "]"
		}
		if t.name != "" {
			s += "=" + t.name
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, " | ")
}

func TestArrange(t *testing.T) {
	s := func(c string) turn { return turn{role: system, content: c} }
	d := func(c string) turn { return turn{role: developer, content: c} }
	u := func(c string) turn { return turn{role: user, content: c} }
	a := func(c string, names ...string) turn {
		t := turn{role: assistant, content: c}
		for _, n := range names {
			t.calls = append(t.calls, call{id: "id-" + n, name: n})
		}
		return t
	}
	think := func(c string) turn { return turn{role: assistant, reasoning: c} }
	r := func(id, c string) turn { return turn{role: tool, callID: id, content: c} }
	worded := func(t turn) string {
		if len(t.calls) > 0 {
			return "<" + t.calls[0].name + ">"
		}
		return "(" + t.content + ")"
	}
	for _, c := range []struct {
		name  string
		caps  Caps
		tools string
		in    []turn
		want  string
	}{
		{"as it is", everything, "", []turn{s("S"), u("U"), a("A"), u("V")}, "s:S | u:U | a:A | u:V"},
		{"systems become one", everything, "", []turn{s("S"), d("D"), d("E"), u("U")}, "s:S//D//E | u:U"},
		{"system in the middle stays", everything, "", []turn{u("U"), d("D"), u("V")}, "u:U | s:D | u:V"},
		{"system in the middle as user", but(func(c *Caps) { c.MidSystem = false }), "", []turn{u("U"), d("D"), u("V")}, "u:U | u:D | u:V"},
		{"only developer known", but(func(c *Caps) { c.SystemRole = false }), "", []turn{s("S"), u("U")}, "d:S | u:U"},
		{"no system role", but(func(c *Caps) { c.SystemRole, c.DeveloperRole = false, false }), "", []turn{s("S"), u("U")}, "u:S//U"},
		{"no system role, no user", but(func(c *Caps) { c.SystemRole, c.DeveloperRole = false, false }), "", []turn{s("S"), a("A")}, "u:S | a:A"},
		{"tools in words", everything, "T", []turn{u("U")}, "s:T | u:U"},
		{"tools in words after a system message", everything, "T", []turn{s("S"), u("U")}, "s:S//T | u:U"},

		{"parts of an answer", everything, "", []turn{u("U"), think("th"), a("A"), a("", "f"), a("", "g")}, "u:U | a:A{th}[f][g]"},
		{"two answers stay two", everything, "", []turn{u("U"), a("A"), a("B")}, "u:U | a:A | a:B"},
		{"text after a call stays behind it", everything, "", []turn{u("U"), a("", "f"), a("B")}, "u:U | a:[f] | a:B"},
		{"an empty answer is dropped", everything, "", []turn{u("U"), a(""), u("V")}, "u:U | u:V"},
		{"unless it is the last", everything, "", []turn{u("U"), a("")}, "u:U | a:"},
		{"two calls in turn", everything, "", []turn{u("U"), a("", "f"), r("id-f", "1"), a("", "g"), r("id-g", "2")}, "u:U | a:[f] | t:1=f | a:[g] | t:2=g"},

		{"results follow their calls", everything, "", []turn{u("U"), a("", "f", "g"), r("id-g", "2"), r("id-f", "1")}, "u:U | a:[f][g] | t:1=f | t:2=g"},
		{"results without ids", everything, "", []turn{u("U"), a("", "f", "g"), r("", "1"), r("", "2")}, "u:U | a:[f][g] | t:1=f | t:2=g"},
		{"a result of no call", everything, "", []turn{u("U"), r("x", "1"), a("", "f"), r("y", "2"), r("id-f", "3")}, "u:U | t:1 | a:[f] | t:3=f | t:2"},
		{"two results of one call", everything, "", []turn{u("U"), a("", "f"), r("id-f", "1"), r("id-f", "2")}, "u:U | a:[f] | t:1=f | t:2=f"},

		{"one call a message", but(func(c *Caps) { c.ParallelCalls = false }), "", []turn{u("U"), a("A", "f", "g"), r("id-f", "1"), r("id-g", "2"), u("V")}, "u:U | a:A[f] | t:1=f | a:[g] | t:2=g | u:V"},
		{"text apart from calls", but(func(c *Caps) { c.TextWithCalls = false }), "", []turn{u("U"), a("A", "f"), r("id-f", "1")}, "u:U | a:A | a:[f] | t:1=f"},
		{
			"text apart from calls where turns alternate", but(func(c *Caps) { c.TextWithCalls, c.RepeatedAssistant = false, false }),
			"", []turn{u("U"), a("A", "f"), r("id-f", "1")}, "u:U | a:A | u:- | a:[f] | t:1=f",
		},
		{"calls in words", but(func(c *Caps) { c.ToolCalls = false }), "", []turn{u("U"), a("A", "f"), r("id-f", "1")}, "u:U | a:A/<f> | t:1=f"},
		{"results in words", but(func(c *Caps) { c.ToolRole = false }), "", []turn{u("U"), a("", "f", "g"), r("id-f", "1"), r("id-g", "2"), u("V")}, "u:U | a:[f][g] | u:(1)/(2) | u:V"},
		{"all in words, strict turns", plainest, "", []turn{u("U"), a("A", "f"), r("id-f", "1"), u("V"), a("B"), a("C")}, "u:U | a:A/<f> | u:(1)//V | a:B//C"},

		{"users in a row", but(func(c *Caps) { c.RepeatedUser = false }), "", []turn{u("U"), u("V"), a("A")}, "u:U//V | a:A"},
		{"answers in a row", but(func(c *Caps) { c.RepeatedAssistant = false }), "", []turn{u("U"), a("A"), a("B", "f")}, "u:U | a:A//B[f]"},
		{"an assistant begins", but(func(c *Caps) { c.AssistantFirst = false }), "", []turn{s("S"), a("A"), u("U")}, "s:S | u:- | a:A | u:U"},
		{"a user after a result", but(func(c *Caps) { c.UserAfterResult = false }), "", []turn{u("U"), a("", "f"), r("id-f", "1"), u("V")}, "u:U | a:[f] | t:1=f | a:- | u:V"},
		{"nobody asks", everything, "", []turn{s("S")}, "s:S | u:-"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tr := traits{filler: "-", needsUser: c.name == "nobody asks"}
			before := show(c.in)
			require.Equal(t, c.want, show(arrange(c.in, c.caps, tr, c.tools, worded)))
			require.Equal(t, before, show(c.in), "the input is left alone")
		})
	}
}
