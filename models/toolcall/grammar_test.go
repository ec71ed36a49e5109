package toolcall

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"quern/models/chat"
	"quern/models/schema"
	"quern/models/schema/gbnf"

	"github.com/stretchr/testify/require"
)

func toolOf(name, parameters string) chat.Tool {
	return chat.Tool{Name: name, Parameters: json.RawMessage(parameters)}
}

var grammarTools = []chat.Tool{
	toolOf("get_time", `{"type":"object","properties":{"zone":{"type":"string","enum":["UTC","CET"]}},"required":["zone"],"additionalProperties":false}`),
	toolOf("get_weather", `{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer","minimum":1,"maximum":14}},"required":["city"]}`),
	toolOf("ping", ``),
}

func strictly(t chat.Tool) chat.Tool {
	t.Strict = true
	return t
}

func mustGrammar(t *testing.T, f *Format, tools []chat.Tool, o GrammarOptions) (Grammar, *gbnf.Grammar) {
	t.Helper()
	g, diags, err := f.Grammar(tools, o)
	require.NoError(t, err)
	require.Empty(t, diags)
	parsed, err := gbnf.Parse(g.GBNF)
	require.NoError(t, err, g.GBNF)
	return g, parsed
}

func TestGrammar(t *testing.T) {
	hermes := row("hermes")
	const utc = `{"name": "get_time", "arguments": {"zone": "UTC"}}`
	const end = "\n</tool_call>"
	for _, c := range []struct {
		name    string
		tools   []chat.Tool
		o       GrammarOptions
		opening string
		yes, no []string
	}{
		{"required", grammarTools, GrammarOptions{Require: true}, "<tool_call>\n",
			[]string{utc + end, utc + end + "\n<tool_call>\n" + utc + end, `{"name": "ping", "arguments": {}}` + end, `{"name": "get_weather", "arguments": {"city": "Oslo","days":14}}` + end},
			[]string{"", "Hi", utc, utc + end + " done", `{"name": "get_date", "arguments": {}}` + end, `{"name": "get_time", "arguments": {"zone": "EST"}}` + end, `{"name": "get_weather", "arguments": {"city": "Oslo", "x": 1}}` + end}},
		{"named, one call", grammarTools[:1], GrammarOptions{Require: true, MaxCalls: 1}, "<tool_call>\n",
			[]string{utc + end}, []string{utc + end + "\n<tool_call>\n" + utc + end}},
		{"required, the model may think", grammarTools, GrammarOptions{Require: true, Thinking: MayThink}, "",
			[]string{"<tool_call>\n" + utc + end, "<think>\nSo </thin <tool_call> {\n</think>\n\n<tool_call>\n" + utc + end},
			[]string{utc + end, "<think>x", "<think>x</think>Hi", "Hi"}},
		{"required, thoughts are open", grammarTools, GrammarOptions{Require: true, Thinking: InThoughts}, "",
			[]string{"so\n</think>\n\n<tool_call>\n" + utc + end, "</think><tool_call>\n" + utc + end},
			[]string{"<tool_call>\n" + utc + end, "x</think>y"}},
		{"auto, strict", []chat.Tool{strictly(grammarTools[0]), grammarTools[1]}, GrammarOptions{}, "",
			[]string{"", "Hi <tool_cal", "<tool_call>\n" + utc + end, "a <tool_call>\n" + utc + end + " b\n<tool_call>\n" + utc + end + "c", "<tool_call>\n" + `{"name": "get_weather", "arguments": {"any": [1]}}` + end},
			[]string{"<tool_call>\n" + `{"name": "get_time", "arguments": {"zone": "EST"}}` + end, "a <tool_call> b", "<tool_call>\n" + utc}},
		{"auto, strict, one call", []chat.Tool{strictly(grammarTools[0])}, GrammarOptions{MaxCalls: 1}, "",
			[]string{"Hi <tool_call>\n" + utc + end}, []string{"<tool_call>\n" + utc + end + "x"}},
		{"JSON object", nil, GrammarOptions{Answer: &Answer{}}, "",
			[]string{`{"a": 1}`, "{\n  \"a\": [1, {}]\n}"}, []string{"1", "[]", "{} x", "Hi"}},
		{"JSON schema", nil, GrammarOptions{Answer: &Answer{Schema: json.RawMessage(`{"type":"object","properties":{"x":{"enum":["<think>"]}},"required":["x"]}`)}}, "",
			[]string{`{"x": "<think>"}`}, []string{`{}`, `{"x": "y"}`, `{"x": "<think>", "y": 1}`}},
		{"JSON after thoughts", nil, GrammarOptions{Answer: &Answer{}, Thinking: InThoughts}, "",
			[]string{"{}</think>{}", "hm\n</think>\n\n{}"}, []string{"{}", "</think>x"}},
		{"JSON or a call", grammarTools, GrammarOptions{Answer: &Answer{}}, "",
			[]string{`{"a":1}`, "<tool_call>\n" + utc + end}, []string{"x", utc + end}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, parsed := mustGrammar(t, &hermes, c.tools, c.o)
			require.Equal(t, c.opening, g.Opening)
			for _, s := range c.yes {
				require.True(t, parsed.Accepts(s), "must accept %q", s)
			}
			for _, s := range c.no {
				require.False(t, parsed.Accepts(s), "must refuse %q", s)
			}
		})
	}
}

func TestNoGrammarWhereNothingIsDemanded(t *testing.T) {
	hermes, plain := row("hermes"), row("plain")
	for _, c := range []struct {
		f     *Format
		tools []chat.Tool
		o     GrammarOptions
	}{
		{&hermes, nil, GrammarOptions{}},
		{&hermes, grammarTools, GrammarOptions{MaxCalls: 1, Thinking: MayThink}},
		{&hermes, nil, GrammarOptions{Require: true}},
		{&plain, grammarTools, GrammarOptions{Require: true}},
	} {
		g, diags, err := c.f.Grammar(c.tools, c.o)
		require.NoError(t, err)
		require.Empty(t, diags)
		require.Empty(t, g)
	}
}

func TestOneBadToolLeavesTheOthers(t *testing.T) {
	hermes := row("hermes")
	bad := toolOf("bad", `{"type":"object","properties":{"x":{"type":"string","pattern":"^[unclosed((("}}}`)
	odd := toolOf("odd", `{"type":"object","properties":{"x":{"type":"array","uniqueItems":true}}}`)
	tools := append([]chat.Tool{bad, odd}, grammarTools...)
	g, diags, err := hermes.Grammar(tools, GrammarOptions{Require: true})
	require.NoError(t, err)
	require.Len(t, diags, 2)
	require.Equal(t, 0, diags[0].Tool)
	require.Equal(t, "$.properties.x.pattern", diags[0].Path)
	require.Equal(t, "$.properties.x.uniqueItems", diags[1].Path)
	parsed, err := gbnf.Parse(g.GBNF)
	require.NoError(t, err)
	require.True(t, parsed.Accepts(`{"name": "bad", "arguments": {"free": [1]}}`+"\n</tool_call>"))
	require.False(t, parsed.Accepts(`{"name": "get_time", "arguments": {"free": [1]}}`+"\n</tool_call>"))

	var se *SchemaError
	_, _, err = hermes.Grammar([]chat.Tool{grammarTools[0], strictly(odd)}, GrammarOptions{})
	require.ErrorAs(t, err, &se)
	require.Equal(t, 1, se.Tool)
	require.Equal(t, "$.properties.x.uniqueItems", se.Err.Path)
	require.Contains(t, err.Error(), `tool "odd"`)

	_, _, err = hermes.Grammar(nil, GrammarOptions{Answer: &Answer{Schema: bad.Parameters}})
	require.ErrorAs(t, err, &se)
	require.Equal(t, -1, se.Tool)
}

func TestSchemasTooLargeTogether(t *testing.T) {
	hermes := row("hermes")
	var props []string
	for i := range 90 {
		props = append(props, `"`+strings.Repeat(string(rune('a'+i%26)), 4000+i)+`":{"type":"string"}`)
	}
	var tools []chat.Tool
	for i := range 8 {
		tools = append(tools, toolOf("t"+string(rune('0'+i)), `{"type":"object","title":"`+string(rune('0'+i))+`","properties":{`+strings.Join(props, ",")+`}}`))
	}
	g, diags, err := hermes.Grammar(tools, GrammarOptions{Require: true, Schemas: schema.NewCache(1 << 20)})
	require.NoError(t, err)
	require.NotEmpty(t, diags)
	require.Less(t, len(g.GBNF), maxGrammarText+1<<20)
}

// What a grammar lets a model write is what the lexer of the same row reads:
// only calls, of declared tools, with arguments that fit, and no diagnostics.
func TestGrammarAndLexerAgree(t *testing.T) {
	for i := range rows {
		f := &rows[i]
		if len(f.Blocks) == 0 {
			continue
		}
		for _, o := range []GrammarOptions{
			{Require: true}, {Require: true, MaxCalls: 1},
			{Require: true, MaxCalls: 3, Thinking: MayThink}, {Require: true, MaxCalls: 3, Thinking: InThoughts},
		} {
			t.Run(f.Name, func(t *testing.T) {
				g, parsed := mustGrammar(t, f, grammarTools, o)
				d, endless := gbnf.NewDeriver(parsed, uint64(i))
				require.Empty(t, endless)
				for range 60 {
					s := d.Sentence(80)
					lo := Options{
						Tools: grammarTools, Forced: true, Opening: g.Opening, MaxCalls: o.MaxCalls, Constrained: true,
						StartInReasoning: o.Thinking == InThoughts,
					}
					a := probe(t, f, lo, strings.Split(s, ""), false)
					require.Empty(t, a.Text, s)
					require.Empty(t, a.Malformed, s)
					require.NotEmpty(t, a.Calls, s)
					for _, c := range a.Calls {
						require.False(t, c.Cut)
						for _, tool := range grammarTools {
							if tool.Name == c.Name {
								require.True(t, schema.NewChecker(tool.Parameters).Fits([]byte(c.Args)), "%s %s", c.Name, c.Args)
							}
						}
					}
				}
			})
		}
	}
}

// A forced call is spelled as the family's template spells it in the history.
func TestCanonicalSpelling(t *testing.T) {
	for name, want := range map[string]string{
		"hermes":          "<tool_call>\n{\"name\": \"get_time\", \"arguments\": {\"zone\": \"UTC\"}}\n</tool_call>\n<tool_call>\n{\"name\": \"get_time\", \"arguments\": {\"zone\": \"UTC\"}}\n</tool_call>",
		"nemotron_v2":     `<TOOLCALL>[{"name": "get_time", "arguments": {"zone": "UTC"}}, {"name": "get_time", "arguments": {"zone": "UTC"}}]</TOOLCALL>`,
		"jamba":           "<tool_calls>[\n    {\"name\": \"get_time\", \"arguments\": {\"zone\": \"UTC\"}}\n]</tool_calls>",
		"minimax_m1":      "<tool_calls>\n{\"name\": \"get_time\", \"arguments\": {\"zone\": \"UTC\"}}\n{\"name\": \"get_time\", \"arguments\": {\"zone\": \"UTC\"}}\n</tool_calls>",
		"phi4_mini":       `functools[{"name": "get_time", "arguments": {"zone": "UTC"}}]`,
		"apertus":         `<|tools_prefix|>[{"get_time": {"zone": "UTC"}}]<|tools_suffix|>`,
		"cohere":          "<|START_ACTION|>[\n    {\"tool_call_id\": \"0\", \"tool_name\": \"get_time\", \"parameters\": {\"zone\": \"UTC\"}}\n]<|END_ACTION|>",
		"mistral":         `[TOOL_CALLS]get_time[ARGS]{"zone": "UTC"}[TOOL_CALLS]get_time[ARGS]{"zone": "UTC"}`,
		"mistral_v7":      `[TOOL_CALLS][{"name": "get_time", "arguments": {"zone": "UTC"}}]`,
		"deepseek_v3":     "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_time\n```json\n{\"zone\": \"UTC\"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
		"deepseek_v31":    "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_time<｜tool▁sep｜>{\"zone\": \"UTC\"}<｜tool▁call▁end｜><｜tool▁call▁begin｜>get_time<｜tool▁sep｜>{\"zone\": \"UTC\"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
		"kimi_k2":         "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_time:0<|tool_call_argument_begin|>{\"zone\": \"UTC\"}<|tool_call_end|><|tool_calls_section_end|>",
		"functionary_v31": `<function=get_time>{"zone": "UTC"}</function>`,
		"llama3":          `{"name": "get_time", "parameters": {"zone": "UTC"}}`,
		"qwen3_coder":     "<tool_call>\n<function=get_time>\n<parameter=zone>\nUTC\n</parameter>\n</function>\n</tool_call>\n<tool_call>\n<function=ping>\n</function>\n</tool_call>",
		"seed_oss":        "<seed:tool_call>\n<function=get_time>\n<parameter=zone>UTC</parameter>\n</function>\n</seed:tool_call>",
		"glm45":           "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Oslo</arg_value>\n<arg_key>days</arg_key>\n<arg_value>2</arg_value>\n</tool_call>\n<tool_call>ping\n</tool_call>",
		"glm47":           "<tool_call>get_time<arg_key>zone</arg_key><arg_value>UTC</arg_value></tool_call><tool_call>ping</tool_call>",
		"hy3":             "<tool_calls:opensource>\n<tool_call:opensource>get_time<tool_sep:opensource>\n<arg_key:opensource>zone</arg_key:opensource>\n<arg_value:opensource>UTC</arg_value:opensource>\n</tool_call:opensource>\n</tool_calls:opensource>",
		"minimax_m2":      "<minimax:tool_call>\n<invoke name=\"get_time\">\n<parameter name=\"zone\">UTC</parameter>\n</invoke>\n<invoke name=\"ping\">\n</invoke>\n</minimax:tool_call>",
		"deepseek_v32":    "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"get_weather\">\n<｜DSML｜parameter name=\"city\" string=\"true\">Oslo</｜DSML｜parameter>\n<｜DSML｜parameter name=\"days\" string=\"false\">2</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>",
		"step3":           `<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="get_time"><steptml:parameter name="zone">UTC</steptml:parameter></steptml:invoke><｜tool_call_end｜><｜tool_calls_end｜>`,
		"lfm2":            `<|tool_call_start|>[get_time(zone='UTC'), get_weather(days=2, city="Oslo"), ping()]<|tool_call_end|>`,
		"pythonic":        `[get_time(zone='UTC'), ping()]`,
		"olmo3":           "<function_calls>get_time(zone=\"UTC\")\nping()</function_calls>",
		"gemma4":          `<|tool_call>call:get_weather{city:<|"|>Oslo<|"|>,days:2}<tool_call|><|tool_call>call:ping{}<tool_call|>`,
		"functiongemma":   `<start_function_call>call:get_time{zone:<escape>UTC<escape>}<end_function_call>`,
	} {
		f := row(name)
		g, parsed := mustGrammar(t, &f, grammarTools, GrammarOptions{Require: true})
		rest, found := strings.CutPrefix(want, g.Opening)
		require.True(t, found, name)
		require.True(t, parsed.Accepts(rest), "%s: %s\n%s", name, rest, g.GBNF)
	}
}

// Free text under a grammar costs the sampler next to nothing.
func TestFreeTextHasOnePath(t *testing.T) {
	hermes := row("hermes")
	_, parsed := mustGrammar(t, &hermes, []chat.Tool{strictly(grammarTools[0])}, GrammarOptions{})
	m := gbnf.NewMatcher(parsed)
	require.True(t, m.Feed(strings.Repeat("Some <tool text. ", 20)))
	require.LessOrEqual(t, m.Peak(), 6)
}

// Thoughts that are ended for the model leave the grammar where it can go on.
func TestGrammarGoesOnBehindEndedThoughts(t *testing.T) {
	for _, name := range Names() {
		f := row(name)
		if len(f.Reasoning) == 0 {
			require.Empty(t, f.EndThoughts(), name)
			continue
		}
		say := ""
		if f.Messages != nil {
			say = f.Messages.Say
		}
		for thinking, begun := range map[Thinking]string{InThoughts: "", MayThink: f.Reasoning[0].Start} {
			_, parsed := mustGrammar(t, &f, nil, GrammarOptions{Answer: &Answer{}, Thinking: thinking})
			m := gbnf.NewMatcher(parsed)
			require.True(t, m.Feed(begun+"so < \n"+f.EndThoughts()+say+"{}"), name)
			require.True(t, m.CanEnd(), name)
		}
	}
}

func TestByName(t *testing.T) {
	f, err := ByName("kimi_k2")
	require.NoError(t, err)
	require.Equal(t, "kimi_k2", f.Name)
	_, err = ByName("nope")
	require.ErrorContains(t, err, "hermes")
	for _, p := range fingerprints {
		require.True(t, p.row == "" || slices.Contains(Names(), p.row), p.row)
	}
}

func TestForTemplate(t *testing.T) {
	for _, c := range []struct {
		src, name, why string
		thinks         bool
	}{
		{"", "hermes", "offers no tools", false},
		{"{% for t in tools %}<tool_call>{% endfor %}", "hermes", "<tool_call> with JSON", false},
		{"{% for t in tools %}<tool_call>{% endfor %}<think>", "hermes", "<tool_call> with JSON", true},
		{"tools <tool_call><function=x>", "qwen3_coder", "tagged parameters", false},
		{"tools <|channel|> <|message|>", "harmony", "harmony", true},
		{"tools <invoke name=", "hermes", "not supported yet", false},
		{"tools <arg_key{}> :opensource <think{}>", "hy3", "Hunyuan 3", true},
		{"tools [TOOL_CALLS] [ARGS] [THINK] [/THINK]", "mistral", "[ARGS]", true},
		{"tools and nothing else", "hermes", "no known marker", false},
	} {
		f, why := ForTemplate(c.src)
		require.Equal(t, c.name, f.Name, c.src)
		require.Contains(t, why, c.why)
		require.Equal(t, c.thinks, len(f.Reasoning) > 0, c.src)
	}
}

func TestForTemplateOnRealTemplates(t *testing.T) {
	dir := filepath.Join("..", "..", "..", "shared", "templates")
	for name, want := range map[string]string{
		"Qwen-Qwen2.5-7B-Instruct": "hermes", "Qwen-Qwen3-0.6B": "hermes", "Qwen-QwQ-32B": "hermes",
		"NousResearch-Hermes-3-Llama-3.1-8B-tool_use": "hermes", "ibm-granite-granite-4.0": "hermes", "MiMo-VL": "hermes",
		"HuggingFaceTB-SmolLM3-3B": "hermes", "NVIDIA-Nemotron-Nano-v2": "nemotron_v2", "MiniMax-M1": "minimax_m1",
		"Apriel-1.6-15b-Thinker-fixed": "apriel", "unsloth-Apriel-1.5": "apriel", "ibm-granite-granite-3.3-2B-Instruct": "granite3",
		"Apertus-8B-Instruct": "apertus", "CohereForAI-c4ai-command-r7b-12-2024-tool_use": "cohere",
		"CohereForAI-c4ai-command-r-plus-tool_use": "command_r_plus", "mistralai-Mistral-Nemo-Instruct-2407": "mistral_v7",
		"Mistral-Small-3.2-24B-Instruct-2506": "mistral", "mistralai-Ministral-3-14B-Reasoning-2512": "mistral",
		"llama-cpp-deepseek-r1": "deepseek_v3", "moonshotai-Kimi-K2": "kimi_k2", "Kimi-K2-Thinking": "kimi_k2",
		"meetkai-functionary-medium-v3.1": "functionary_v31", "meta-llama-Llama-3.1-8B-Instruct": "llama3",
		"meta-llama-Llama-3.2-3B-Instruct": "llama3", "fireworks-ai-llama-3-firefunction-v2": "phi4_mini",
		"Qwen3-Coder": "qwen3_coder", "Qwen3.5-4B": "qwen3_coder", "NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": "qwen3_coder",
		"StepFun3.5-Flash": "qwen3_coder", "ByteDance-Seed-OSS": "seed_oss", "GLM-4.6": "glm45", "GLM-4.7-Flash": "glm45",
		"Spark2.5": "glm45", "inclusionai-ling-3.0-flash": "glm45", "poolside-Laguna-XS.2": "glm45", "tencent-Hy3": "hy3",
		"MiniMax-M2": "minimax_m2", "deepseek-ai-DeepSeek-V3.2": "deepseek_v32", "deepseek-ai-DeepSeek-V4": "deepseek_v4",
		"openai-gpt-oss-120b": "harmony", "Kimi-K3": "kimi_k3", "MiniMax-M3": "minimax_m3", "muse-glimmer": "muse_glimmer", "meetkai-functionary-medium-v3.2": "functionary_v32",
		"LFM2.5-8B-A1B": "lfm2", "google-gemma-4-31B-it": "gemma4",
		"GigaChat3-10B-A1.8B": "gigachat3", "GigaChat3.1-10B-A1.8B": "gigachat3",
	} {
		src, err := os.ReadFile(filepath.Join(dir, name+".jinja"))
		if err != nil {
			t.Skip("no chat templates beside the checkout")
		}
		f, why := ForTemplate(string(src))
		require.Equal(t, want, f.Name, "%s: %s", name, why)
	}
	for name, thinks := range map[string]bool{
		"Qwen-Qwen2.5-7B-Instruct": false, "Qwen-Qwen3-0.6B": true, "Qwen-QwQ-32B": true, "Apertus-8B-Instruct": true,
		"Qwen3-Coder": false, "Qwen3.5-4B": true, "ByteDance-Seed-OSS": true, "GLM-4.6": true, "tencent-Hy3": true, "MiniMax-M2": true,
		"deepseek-ai-DeepSeek-V3.2":                true,
		"mistralai-Ministral-3-14B-Reasoning-2512": true, "mistralai-Mistral-Nemo-Instruct-2407": false,
	} {
		src, err := os.ReadFile(filepath.Join(dir, name+".jinja"))
		require.NoError(t, err)
		f, _ := ForTemplate(string(src))
		require.Equal(t, thinks, len(f.Reasoning) > 0, name)
	}
}

// An answer that has to be JSON may stand in the family's frame.
func TestFramedAnswer(t *testing.T) {
	for name, want := range map[string][]string{
		"cohere":   {"{}", "<|START_RESPONSE|>{}<|END_RESPONSE|>"},
		"kimi_k3":  {"<|open|>response<|sep|>{}<|close|>response<|sep|>"},
		"granite3": {"<response>{}</response>"},
		"apriel":   {"{}"},
	} {
		f := row(name)
		_, parsed := mustGrammar(t, &f, nil, GrammarOptions{Answer: &Answer{}})
		for _, s := range want {
			require.True(t, parsed.Accepts(s), "%s: %s", name, s)
			got := probe(t, &f, Options{JSON: true, Constrained: true}, strings.Split(s, ""), false)
			require.JSONEq(t, "{}", got.Text)
		}
	}
}

// Where the prompt has opened the frame of the answer's text, a forced call closes it.
func TestPromptThatOpensAFrame(t *testing.T) {
	f := row("kimi_k3")
	require.True(t, f.Framed("<|open|>message<|sep|><|open|>response<|sep|>"))
	require.False(t, f.Framed("<|open|>message<|sep|><|open|>think<|sep|>"))
	g, parsed := mustGrammar(t, &f, grammarTools, GrammarOptions{Require: true, Framed: true})
	require.True(t, strings.HasPrefix(g.Opening, "<|close|>response<|sep|><|open|>tools<|sep|>"), g.Opening)
	d, _ := gbnf.NewDeriver(parsed, 1)
	s := d.Sentence(80)
	got := probe(t, &f, Options{Tools: grammarTools, Forced: true, Constrained: true, Opening: g.Opening}, strings.Split(s, ""), false)
	require.NotEmpty(t, got.Calls, s)
	require.Empty(t, got.Text, s)
	_, parsed = mustGrammar(t, &f, nil, GrammarOptions{Answer: &Answer{}, Framed: true})
	require.True(t, parsed.Accepts("{}<|close|>response<|sep|>"))
	require.False(t, parsed.Accepts("<|open|>response<|sep|>{}"))
}
