package models

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"quern/models/chat"
	"quern/models/template"
	"quern/models/toolcall"
)

func load(t *testing.T, path string) *template.Template {
	src, err := os.ReadFile(path)
	require.NoError(t, err)
	tm, err := template.New(string(src), template.Options{BOS: "<s>", EOS: "</s>"})
	require.NoError(t, err)
	return tm
}

// read joins what a lexer reads: thoughts, calls, and text.
func read(f *toolcall.Format, o toolcall.Options, raw string) string {
	l := toolcall.NewLexer(f, o)
	var out strings.Builder
	add := func(events []toolcall.Event) {
		for i := range events {
			switch e := &events[i]; e.Kind {
			case toolcall.ReasoningDelta:
				fmt.Fprintf(&out, "(%s)", strings.TrimSpace(string(e.Text)))
			case toolcall.CallStart:
				out.WriteString("<" + e.Name)
			case toolcall.CallEnd:
				out.WriteString(">")
			default:
				out.WriteString(strings.TrimSpace(string(e.Text)))
			}
		}
	}
	add(l.Push(-1, []byte(raw)))
	add(l.Flush(false))
	return out.String()
}

// Families that nobody knows are read by what their templates write.
func TestMadeUpFamilies(t *testing.T) {
	tools := []chat.Tool{{Name: "look", Parameters: json.RawMessage(`{"type":"object","properties":{"at":{"type":"string"},"n":{"type":"integer"}}}`)}}
	for _, c := range []struct{ name, reason, raw, want string }{
		{
			"tagged", `tags between <zap:do fn=" and </zap:do>`,
			"<ponder>\nhm\n</ponder>\nSo: \n<zap:do fn=\"look\">\n<zap:with k=\"at\">a \"b\"</zap:with>\n<zap:with k=\"n\">3</zap:with>\n</zap:do>\n<zap:do fn=\"look\">\n</zap:do>",
			`(hm)So:<look{"at":"a \"b\"","n":3}><look{}>`,
		},
		{
			"objects", "JSON objects between <do-all> and </do-all>",
			"Now<do-all>\n<do>{\"do\": \"look\", \"with\": {\"at\": \"x\"}}</do>\n<do>{\"do\": \"look\", \"with\": {}}</do>\n</do-all>",
			`Now<look{"at": "x"}><look{}>`,
		},
		{
			"named", "JSON behind a name between <|act|> and <|done|>",
			`<|act|>look<|id|>call_1<|in|>{"n": 2}<|done|><|act|>look<|id|>call_2<|in|>{}<|done|>`,
			`<look{"n": 2}><look{}>`,
		},
		{
			"expression", "expressions between <run> and </run>",
			`Well: <run>look(at="here", n=7)</run><run>look()</run>`,
			`Well:<look{"at":"here","n":7}><look{}>`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, why, err := FormatOf(load(t, filepath.Join("testdata", c.name+".jinja")))
			require.NoError(t, err)
			require.Equal(t, toolcall.Probed, f.Name, why)
			require.Contains(t, why, c.reason)
			require.Equal(t, c.want, read(&f, toolcall.Options{Tools: tools}, c.raw))
			g, _, err := f.Grammar(tools, toolcall.GrammarOptions{Require: true})
			require.NoError(t, err)
			require.NotEmpty(t, g.GBNF)
		})
	}
	f, why, err := FormatOf(load(t, filepath.Join("testdata", "tagged.jinja")))
	require.NoError(t, err)
	require.Equal(t, []toolcall.Span{{Start: "<ponder>", End: "</ponder>"}}, f.Reasoning, why)
	require.Equal(t, "\n</ponder>\n", f.EndThoughts())
	f, why, err = FormatOf(load(t, filepath.Join("testdata", "unread.jinja")))
	require.NoError(t, err)
	require.Equal(t, genericFormat, f.Name)
	require.Contains(t, why, "no known marker")
}

func realTemplates(t *testing.T) map[string]*template.Template {
	files, err := filepath.Glob(filepath.Join("..", "..", "shared", "templates", "*.jinja"))
	require.NoError(t, err)
	if len(files) == 0 {
		t.Skip("no real chat templates beside the checkout")
	}
	all := map[string]*template.Template{}
	for _, f := range files {
		all[strings.TrimSuffix(filepath.Base(f), ".jinja")] = load(t, f)
	}
	return all
}

// Why what is read off a template is not the row of its family.
const (
	callsUnseen   = "it offers tools and writes no calls"
	noTools       = "it offers no tools, so that its prompt asks for another form"
	looserTags    = "the row reads further spellings of the same tags"
	otherBlock    = "it writes another form of the family"
	noIDs         = "it writes no ids, which models of the family may do"
	inMessages    = "its calls are messages with headers"
	inParts       = "its tags have attributes, or values are elements"
	noBreak       = "it writes no line break between two calls, as others of the row do"
	inThoughtOnly = "it doesn't write the marks of its thoughts in history"
)

var probedApart = map[string]string{
	"openai-gpt-oss-120b": inMessages, "muse-glimmer": inMessages, "meetkai-functionary-medium-v3.2": inMessages,
	"Kimi-K3": inParts, "MiniMax-M3": inParts,
	"StepFun3.5-Flash":   noBreak,
	"ByteDance-Seed-OSS": looserTags, "MiniMax-M2": looserTags, "GigaChat3.1-10B-A1.8B": otherBlock,
	"mistralai-Ministral-3-14B-Reasoning-2512": noIDs, "unsloth-mistral-Devstral-Small-2507": noIDs, "mistralai-Mistral-Nemo-Instruct-2407": noIDs,
	"HuggingFaceTB-SmolLM3-3B": callsUnseen, "LFM2-8B-A1B": callsUnseen, "LFM2.5-Instruct": callsUnseen,
	"ibm-granite-granite-3.3-2B-Instruct": callsUnseen,
}

// What is read off a real template, its fingerprint unseen, is the row that the
// fingerprint chooses.
func TestProbingFindsTheKnownRows(t *testing.T) {
	found := 0
	for name, tm := range realTemplates(t) {
		known, why := toolcall.ForTemplate(tm.Source())
		if known.Messages != nil || !strings.Contains(why, "the template writes") || strings.Contains(why, "not supported") || !tm.Caps().Tools && tm.Caps().ToolCalls {
			continue // of messages, of no family, of one without a row, or asked for another form
		}
		got, seen, err := toolcall.Probe(tm.Try)
		diff := "nothing: " + fmt.Sprint(err)
		if err == nil {
			diff = difference(&known.Blocks[0], &got.Blocks[0])
			if len(got.Reasoning) > 0 && got.Reasoning[0] != known.Reasoning[0] {
				diff += fmt.Sprintf(" thoughts %q", got.Reasoning)
			}
		}
		reason := probedApart[name]
		if diff == "" {
			found++
			require.Empty(t, reason, "%s is read as the row %s", name, known.Name)
			continue
		}
		require.NotEmpty(t, reason, "%s, row %s: %s; %s", name, known.Name, seen, diff)
		t.Logf("%s: %s: %s", name, reason, diff)
	}
	t.Logf("%d templates are read as the row of their family", found)
	require.Greater(t, found, 35)
}

// difference lists the fields in which two blocks differ, white space apart where
// calls are JSON or the family does not care.
func difference(row, got *toolcall.Block) string {
	a, b := *row, *got
	for _, x := range []*toolcall.Block{&a, &b} {
		x.NameEnd = strings.TrimSpace(x.NameEnd)
		x.LastIDKey = ""
		if row.Loose || x.Style != toolcall.Tagged && x.Style != toolcall.Expression {
			x.Loose, x.Lead, x.Trail, x.Between, x.Inner, x.Tags.Gap, x.Tags.After = false, "", "", "", "", "", ""
		}
	}
	out := ""
	v, w := reflect.ValueOf(a), reflect.ValueOf(b)
	for i := range v.NumField() {
		if !v.Field(i).Equal(w.Field(i)) {
			out += fmt.Sprintf(" %s %q", v.Type().Field(i).Name, fmt.Sprint(w.Field(i)))
		}
	}
	return out
}

// What a real template writes is read by the format that is chosen for it.
func TestTemplatesAreReadAsTheyWrite(t *testing.T) {
	unread := map[string]string{
		"upstage-Solar-Open-100B": "writes a call's id before its name",
	}
	read := 0
	for name, tm := range realTemplates(t) {
		f, why, err := FormatOf(tm)
		require.NoError(t, err)
		if c := tm.Caps(); !c.Tools || !c.ToolCalls || f.Messages != nil {
			continue
		}
		if err = toolcall.Reads(tm.Try, &f); err != nil {
			require.NotEmpty(t, unread[name], "%s, %s (%s): %s", name, f.Name, why, err)
			continue
		}
		require.Empty(t, unread[name], name)
		require.NotContains(t, why, "not as that family", name)
		read++
	}
	t.Logf("the calls of %d templates are read", read)
}

// Thoughts are ended as the family writes it, where its template shows that.
func TestHowThoughtsEnd(t *testing.T) {
	all := realTemplates(t)
	for name, want := range map[string]string{
		"Qwen-Qwen3-0.6B": "\n</think>\n\n", "Qwen3.5-4B": "\n</think>\n\n", "Qwen-QwQ-32B": "\n</think>\n\n",
		"deepseek-ai-DeepSeek-R1-Distill-Llama-8B": "\n</think>\n\n", "MiniMax-M2": "\n</think>\n\n",
		"NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": "\n</think>\n", "GLM-4.7-Flash": "</think>", "Kimi-K2-Thinking": "</think>",
		"ByteDance-Seed-OSS": "</seed:think>\n", "CohereForAI-c4ai-command-r7b-12-2024-tool_use": "<|END_THINKING|>",
		"google-gemma-4-31B-it": "\n<channel|>", "tencent-Hy3": "</think:opensource>", "Qwen3-Coder": "",
		"openbmb-MiniCPM5-1B": "\n</think>\n\n",
	} {
		f, why, err := FormatOf(all[name])
		require.NoError(t, err)
		require.Equal(t, want, f.EndThoughts(), "%s: %s %s", name, f.Name, why)
	}
}

// A model that is asked for the generic form is understood in its own, too.
func TestCallsOfTemplatesThatOfferNoTools(t *testing.T) {
	all := realTemplates(t)
	tools := []chat.Tool{{Name: "look"}}
	const native = `<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>look<｜tool▁sep｜>{"at":"x"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>`
	f, why, err := FormatOf(all["deepseek-ai-DeepSeek-V3.1"])
	require.NoError(t, err)
	require.Equal(t, genericFormat, f.Name, why)
	for _, raw := range []string{native, `<tool_call>{"name": "look", "arguments": {"at":"x"}}</tool_call>`} {
		require.Equal(t, `<look{"at":"x"}>`, read(&f, toolcall.Options{Tools: tools}, raw))
	}
	require.True(t, all["fireworks-ai-llama-3-firefunction-v2"].Caps().Tools)
}

// A model that is offered tools in its own way and shown calls in the generic one
// is understood in both.
func TestCallsThatATemplateDoesNotWrite(t *testing.T) {
	all := realTemplates(t)
	tools := []chat.Tool{{Name: "look"}}
	for _, name := range []string{"LFM2-8B-A1B", "LFM2.5-Instruct"} {
		f, why, err := FormatOf(all[name])
		require.NoError(t, err)
		require.Equal(t, "lfm2", f.Name, why)
		for _, raw := range []string{`<|tool_call_start|>[look(at='x')]<|tool_call_end|>`, `<tool_call>{"name": "look", "arguments": {"at":"x"}}</tool_call>`} {
			require.Equal(t, `<look{"at":"x"}>`, read(&f, toolcall.Options{Tools: tools}, raw), name)
		}
	}
}
