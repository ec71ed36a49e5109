package toolcall

import (
	"strings"
	"testing"

	"quern/models/chat"
	"quern/models/schema"
	"quern/models/schema/gbnf"

	"github.com/stretchr/testify/require"
)

// forEachRow runs a test for each row that writes calls.
func forEachRow(t *testing.T, test func(t *testing.T, f *Format)) {
	for i := range rows {
		if f := &rows[i]; len(f.Blocks) > 0 {
			t.Run(f.Name, func(t *testing.T) { test(t, f) })
		}
	}
}

var modeTools = []chat.Tool{
	toolOf("get_time", `{"type":"object","properties":{"zone":{"type":"string","enum":["UTC","CET"]},"days":{"type":"integer","minimum":1,"maximum":14}},"required":["zone"],"additionalProperties":false}`),
	toolOf("get_weather", `{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`),
}

// walk makes sentences of a grammar.
func walk(t *testing.T, f *Format, tools []chat.Tool, o GrammarOptions, n int) (g Grammar, texts []string) {
	t.Helper()
	g, parsed := mustGrammar(t, f, tools, o)
	d, endless := gbnf.NewDeriver(parsed, uint64(n))
	require.Empty(t, endless)
	for range n {
		texts = append(texts, d.Sentence(500))
	}
	return g, texts
}

// parallel_tool_calls and max_tool_calls bound the calls of the grammar itself,
// and a choice of tools leaves no others.
func TestGrammarsBoundTheCalls(t *testing.T) {
	forEachRow(t, func(t *testing.T, f *Format) {
		for most := 1; most <= 3; most++ {
			g, texts := walk(t, f, modeTools[:1], GrammarOptions{Require: true, MaxCalls: most}, 40)
			seen := 0
			for _, text := range texts {
				a := probe(t, f, Options{Tools: modeTools, Forced: true, Opening: g.Opening, Constrained: true}, []string{text}, false)
				require.Empty(t, a.Text+strings.Join(a.Malformed, ""), "%q", text)
				require.NotEmpty(t, a.Calls, "%q", text)
				require.LessOrEqual(t, len(a.Calls), most, "%q", text)
				for _, c := range a.Calls {
					require.Equal(t, "get_time", c.Name)
					require.True(t, schema.NewChecker(modeTools[0].Parameters).Fits([]byte(c.Args)), "%q", text)
				}
				seen = max(seen, len(a.Calls))
			}
			one := f.Messages != nil && f.Messages.OneCall || f.Messages == nil && f.Blocks[0].first() == "" && !f.Blocks[0].List
			require.True(t, seen == most || one && seen == 1, "%d of %d", seen, most)
		}
	})
}

// Thoughts stay whole and free in front of what a grammar demands, a call or
// JSON, whether the prompt or the model has begun them.
func TestGrammarsKeepTheThoughts(t *testing.T) {
	for i := range rows {
		f := &rows[i]
		if len(f.Reasoning) == 0 {
			continue
		}
		t.Run(f.Name, func(t *testing.T) {
			const thoughts = "So {\"a\": [1]} or <b>?\n\nI call get_time(zone='x') \\ \"then\"."
			for _, o := range []GrammarOptions{{Require: true, MaxCalls: 1}, {Answer: &Answer{Schema: modeTools[0].Parameters}}} {
				if len(f.Blocks) == 0 && o.Require {
					continue
				}
				tools := modeTools[:1]
				if o.Answer != nil {
					tools = nil
				}
				g, plain := walk(t, f, tools, o, 1)
				rest := g.Opening + plain[0]
				for _, thinking := range []Thinking{InThoughts, MayThink} {
					o.Thinking = thinking
					_, parsed := mustGrammar(t, f, tools, o)
					text := thoughts + f.EndThoughts() + rest
					if thinking == MayThink {
						text = f.Reasoning[0].Start + text
						require.True(t, parsed.Accepts(rest), "a model need not think: %q", rest)
					}
					require.True(t, parsed.Accepts(text), "%q", text)
					m := gbnf.NewMatcher(parsed)
					require.False(t, m.Feed(strings.TrimSuffix(text, rest)+"~"), "what follows the thoughts is held")
					a := probe(t, f, Options{
						Tools: tools, Forced: o.Require, JSON: o.Answer != nil, Constrained: true, StartInReasoning: thinking == InThoughts,
					}, strings.Split(text, ""), false)
					require.Equal(t, thoughts, strings.TrimSpace(a.Reasoning), "%q", text)
					if o.Require {
						require.Len(t, a.Calls, 1, "%q", text)
						require.Empty(t, a.Text, "%q", text)
					} else {
						require.True(t, schema.NewChecker(modeTools[0].Parameters).Fits([]byte(a.Text)), "%q", a.Text)
					}
				}
			}
		})
	}
}

// Without a required call a strict tool is held where a call begins, and text
// stays free.
func TestStrictToolsAreHeldWhereCallsBegin(t *testing.T) {
	tools := []chat.Tool{strictly(modeTools[0]), modeTools[1]}
	forEachRow(t, func(t *testing.T, f *Format) {
		if f.Messages != nil {
			return
		}
		if f.Blocks[0].first() == "" {
			checkUnmarked(t, f, tools)
			return
		}
		g, texts := walk(t, f, tools[:1], GrammarOptions{Require: true, MaxCalls: 1}, 12)
		if f.Bare == BareObject {
			checkBare(t, f, tools)
		}
		for _, most := range []int{0, 1} {
			_, auto := mustGrammar(t, f, tools, GrammarOptions{MaxCalls: most})
			for _, rest := range texts {
				call := g.Opening + rest
				for _, text := range []string{call, "Let me see: <b> {1} [x] \n" + call, "No call, but 1 < 2.", ""} {
					require.True(t, auto.Accepts(text), "%q", text)
				}
				require.Equal(t, most == 0, auto.Accepts(call+"\nThat was it."), "%q", call)
				require.Equal(t, most == 0, auto.Accepts(call+"\n"+call), "%q", call)
				for _, zone := range []string{"UTC", "CET"} {
					if wrong := strings.Replace(call, zone, "EST", 1); wrong != call {
						require.False(t, auto.Accepts(wrong), "%q", wrong)
					}
				}
				require.False(t, auto.Accepts(g.Opening+"~"), "no call behind its marker")
			}
		}
	})
}

// checkUnmarked: an answer that begins as a call does is one and right, any other
// is free.
func checkUnmarked(t *testing.T, f *Format, tools []chat.Tool) {
	g, texts := walk(t, f, tools[:1], GrammarOptions{Require: true, MaxCalls: 2}, 12)
	_, auto := mustGrammar(t, f, tools, GrammarOptions{})
	for _, text := range []string{"", "No call, but 1 < 2.", "{\"city\": [1]}", "[1, 2]", "{", "[get", " [x] {\"name\": 5}", "{\"nam", "{\"name\": \"Ada\"}", "{\"name\": \"get_timer\"}"} {
		require.True(t, auto.Accepts(text), "%q", text)
	}
	for _, rest := range texts {
		call := g.Opening + rest
		require.True(t, auto.Accepts(call), "%q", call)
		require.True(t, auto.Accepts("\n"+call), "%q", call)
		require.True(t, auto.Accepts("Like this: "+call+" or so."), "text is free")
		require.False(t, auto.Accepts(call+"\nThat was it."), "%q", call)
		for _, zone := range []string{"UTC", "CET"} {
			if wrong := strings.Replace(call, zone, "EST", 1); wrong != call {
				require.False(t, auto.Accepts(wrong), "%q", wrong)
			}
		}
	}
}

// checkBare: an object that names a tool is held to be a call where a family's
// models leave their markers out, too; others are text.
func checkBare(t *testing.T, f *Format, tools []chat.Tool) {
	_, auto := mustGrammar(t, f, tools, GrammarOptions{})
	call := `{"name": "get_time", "arguments": {"zone": "UTC"}}`
	require.True(t, auto.Accepts(call))
	require.True(t, auto.Accepts("\n"+call+"\n"))
	require.False(t, auto.Accepts(strings.Replace(call, "UTC", "EST", 1)))
	require.True(t, auto.Accepts(`{"name": "Ada", "arguments": {"zone": "EST"}}`))
	first := f.Blocks[0].first()
	require.True(t, auto.Accepts(`{"name": "get_tim`+"e"))
	for _, text := range []string{first + "~", "{" + first + "~", `{"name` + first + "~"} {
		require.False(t, auto.Accepts(text), "no call behind its marker: %q", text)
	}
}

// With tool_choice none no tools are offered, and what looks like a call is text.
func TestCallsWithoutToolsAreText(t *testing.T) {
	forEachRow(t, func(t *testing.T, f *Format) {
		g, texts := walk(t, f, modeTools, GrammarOptions{Require: true, MaxCalls: 1}, 12)
		for _, rest := range texts {
			text := g.Opening + rest
			a := probe(t, f, Options{Bare: true}, strings.Split(text, ""), false)
			require.Empty(t, a.Calls, "%q", text)
			if f.Messages == nil { // a header is none of the text
				require.Contains(t, a.Text, "get_", "%q", text)
			}
		}
	})
}
