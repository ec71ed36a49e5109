package toolcall

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"quern/models/chat"
	"quern/models/schema"
	"quern/models/schema/gbnf"
	"quern/models/schema/lark"
	"quern/models/schema/schematest"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
)

// argumentSchemas are further schemas, of what is hard where arguments are
// written one by one.
var argumentSchemas = map[string]string{
	"no arguments":      ``,
	"maybe text":        `{"type":"object","properties":{"a":{"type":["string","null"]},"b":{"type":["string","integer"]},"c":{"type":["string","boolean","null"],"minLength":2}},"required":["a","b","c"],"additionalProperties":false}`,
	"text or list":      `{"type":"object","properties":{"v":{"anyOf":[{"type":"string","maxLength":6},{"type":"array","items":{"type":"string"}}]}},"required":["v"],"additionalProperties":false}`,
	"numbers as text":   `{"type":"object","properties":{"code":{"type":"string","enum":["1","2","true","null"]},"other":{"enum":["1",1,true,"[x"]}},"required":["code","other"],"additionalProperties":false}`,
	"two shapes":        `{"anyOf":[{"type":"object","properties":{"kind":{"const":"id"},"v":{"type":"integer","minimum":1000}},"required":["kind","v"],"additionalProperties":false},{"type":"object","properties":{"kind":{"const":"name"},"v":{"type":"string"}},"required":["kind","v"],"additionalProperties":false}]}`,
	"referred":          `{"$ref":"#/$defs/args","$defs":{"args":{"type":"object","properties":{"color":{"$ref":"#/$defs/color"},"n":{"type":"integer"}},"required":["color"],"additionalProperties":false},"color":{"type":"string","enum":["0","red"]}}}`,
	"free text values":  `{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":{"type":"string","minLength":1}}`,
	"free numbers":      `{"type":"object","additionalProperties":{"type":"integer"}}`,
	"lines":             `{"type":"object","properties":{"a":{"type":"string","pattern":"^\\n?[a-c\\n]{2,4}$"},"b":{"enum":["\n","x\n","\n\ny",""]}},"required":["a","b"],"additionalProperties":false}`,
	"lengths":           `{"type":"object","properties":{"a":{"type":"string","minLength":3,"maxLength":9},"b":{"type":"string","minLength":1},"c":{"type":"string","maxLength":100000}},"required":["a","b","c"],"additionalProperties":false}`,
	"markers in values": `{"type":"object","properties":{"a":{"type":"array","items":{"enum":["</parameter>","</arg_value>","<|\"|>","<escape>x","'\"\\"]}},"b":{"type":"array","items":{"type":"string","maxLength":12}},"c":{"type":"object","additionalProperties":{"type":"string","pattern":"^[</parmetgvlue_>]{11,}$"}}},"required":["a","b"],"additionalProperties":false}`,
	"odd names":         `{"type":"object","properties":{"content-type":{"type":"string"},"user.name":{"type":"null"},"from":{"type":"boolean"},"in":{"type":"string"},"a\"b":{"type":"integer"}},"required":["content-type","from","a\"b"],"additionalProperties":false}`,
	"objects inside":    `{"type":"object","properties":{"o":{"type":"object","properties":{"x y":{"type":"string"},"z":{"type":"boolean"},"n":{"type":"null"}},"required":["x y","z","n"],"additionalProperties":false},"m":{"type":"object","additionalProperties":{"type":["string","null"]}},"any":{}},"required":["o","m","any"],"additionalProperties":false}`,
	"five optional":     `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"boolean"},"c":{"type":"integer"},"d":{"type":"string"},"e":{"type":"array","items":{"type":"boolean"}}},"additionalProperties":false}`,
}

// walkTools are tools of all schemas.
func walkTools() ([]chat.Tool, map[string]string) {
	all := maps.Clone(argumentSchemas)
	for name, s := range schematest.Schemas {
		all[name] = schematest.Parameters(s)
	}
	var tools []chat.Tool
	for i, name := range slices.Sorted(maps.Keys(all)) {
		tools = append(tools, toolOf(fmt.Sprintf("tool_%d", i), all[name]))
	}
	return tools, all
}

func validatorsOf(t *testing.T, tools []chat.Tool) map[string]*jsonschema.Schema {
	t.Helper()
	out := map[string]*jsonschema.Schema{}
	for i := range tools {
		s := string(tools[i].Parameters)
		if s == "" {
			s = `{"type":"object"}`
		}
		out[tools[i].Name] = schematest.Validator(t, s)
	}
	return out
}

// pieces cuts a text at random places.
func pieces(rng *rand.Rand, text string) []string {
	var out []string
	for text != "" {
		n := 1 + rng.IntN(min(len(text), 9))
		out = append(out, text[:n])
		text = text[n:]
	}
	return out
}

// Random walks of every row's grammar, for tools of all schemas, are read by the
// same row as calls whose arguments are valid, whole and in pieces.
func TestWalksAreReadAsValidCalls(t *testing.T) {
	tools, all := walkTools()
	require.GreaterOrEqual(t, len(all), 60)
	validators := validatorsOf(t, tools)
	cache := schema.NewCache(64 << 20)
	for i := range rows {
		f := &rows[i]
		if len(f.Blocks) == 0 {
			continue
		}
		t.Run(f.Name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(uint64(i), 7))
			var schemas []string
			for group := range slices.Chunk(tools, 6) {
				g, diags, err := f.Grammar(group, GrammarOptions{Require: true, MaxCalls: 1 + rng.IntN(3), Schemas: cache})
				require.NoError(t, err)
				require.Empty(t, diags)
				parsed, err := gbnf.Parse(g.GBNF)
				require.NoError(t, err, g.GBNF)
				d, endless := gbnf.NewDeriver(parsed, rng.Uint64())
				require.Empty(t, endless)
				for range 20 {
					text := d.Sentence(120)
					o := Options{Tools: group, Forced: true, Opening: g.Opening, Constrained: true}
					whole := lex(f, o, []piece{{-1, text}}, false)
					require.Equal(t, whole, probe(t, f, o, pieces(rng, text), false), "%q", text)
					requireCalls(t, &whole, validators, text)
					schemas = append(schemas, whole.Calls[0].Name)
				}
			}
			slices.Sort(schemas)
			require.Greater(t, len(slices.Compact(schemas)), 50, "tools called")
		})
	}
}

// requireCalls demands an answer of valid calls only.
func requireCalls(t *testing.T, a *answer, validators map[string]*jsonschema.Schema, text string) {
	t.Helper()
	require.Empty(t, a.Text, "%q", text)
	require.Empty(t, a.Malformed, "%q", text)
	require.NotEmpty(t, a.Calls, "%q", text)
	for _, c := range a.Calls {
		require.True(t, c.Ended && !c.Cut, "%q", text)
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(c.Args))
		require.NoError(t, err, "%q\n%s", text, c.Args)
		require.NoError(t, validators[c.Name].Validate(v), "%q\n%s", text, c.Args)
	}
}

// Calls that are spelled by hand as the family's template does it are accepted,
// and read as what they were made of.
func TestSpelledCallsAreAccepted(t *testing.T) {
	tools, _ := walkTools()
	cache := schema.NewCache(64 << 20)
	for i := range rows {
		f := &rows[i]
		if len(f.Blocks) == 0 || f.Blocks[0].asObjects() == nil || f.Blocks[0].Tags.Nested {
			continue
		}
		t.Run(f.Name, func(t *testing.T) {
			spelled := 0
			for n := range tools {
				tool := &tools[n]
				docs, err := cache.Compile(tool.Parameters, schema.Options{Object: true, Closed: true})
				require.NoError(t, err)
				source, err := gbnf.Parse(docs.GBNF())
				require.NoError(t, err)
				d, _ := gbnf.NewDeriver(source, uint64(n))
				g, _, err := f.Grammar(tools[n:n+1], GrammarOptions{Require: true, MaxCalls: 1, Schemas: cache})
				require.NoError(t, err)
				parsed, err := gbnf.Parse(g.GBNF)
				require.NoError(t, err)
				for range 12 {
					doc := d.Sentence(60)
					text, ok := f.spellCall(tool, doc)
					if !ok {
						continue
					}
					spelled++
					rest, found := strings.CutPrefix(text, g.Opening)
					require.True(t, found, text)
					require.True(t, parsed.Accepts(rest), "%s\n%q", tool.Parameters, text)
					got := lex(f, Options{Tools: tools[n : n+1], Bare: true}, []piece{{-1, text}}, false)
					require.Len(t, got.Calls, 1, text)
					require.True(t, sameJSON([]byte(doc), []byte(got.Calls[0].Args)), "%q\n%s\n%s", text, doc, got.Calls[0].Args)
				}
			}
			require.Greater(t, spelled, 300)
		})
	}
}

// spellCall writes one call as the row's template would. It reports false for
// what a template writes otherwise than grammars do: names that were made up,
// and escapes.
func (f *Format) spellCall(tool *chat.Tool, doc string) (string, bool) {
	b := &f.Blocks[0]
	keys, values := members(doc)
	declared := schema.NewArguments(tool.Parameters)
	var args []string
	for i, key := range keys {
		if !strings.Contains(string(tool.Parameters), `"`+key+`":`) && !wordLike(key) || slices.Contains(keys[:i], key) || strings.Contains(doc, `\u`) {
			return "", false
		}
		if b.Style == Expression {
			v, ok := literalOf(values[i], b.Quote)
			if !ok || strings.ContainsAny(key, " \"") {
				return "", false
			}
			assign := "="
			if b.Quote != "" {
				assign = ":"
			}
			args = append(args, key+assign+v)
			continue
		}
		text, isText := "", false
		if json.Unmarshal([]byte(values[i]), &text) == nil && values[i] != "null" {
			isText = declared.Of(key).Text || !json.Valid([]byte(strings.TrimSpace(text))) && !strings.HasPrefix(strings.TrimSpace(text), `"`)
		}
		attr := ""
		if b.Tags.Typed != "" {
			isText = values[i][0] == '"'
			attr = fmt.Sprintf(` string="%t"`, isText)
		}
		if b.Tags.Typed == "type" {
			attr = ` type="` + jsonType(values[i]) + `"`
		}
		value := values[i]
		if isText {
			value = text
		}
		if b.Tags.ValueEnd != "" && strings.Contains(value, b.Tags.ValueEnd) {
			return "", false
		}
		if b.Tags.Trim && b.Tags.Lead == "" && isText { // a reader would drop them
			if strings.HasPrefix(value, "\n") || strings.HasSuffix(value, "\n") {
				return "", false
			}
		}
		tags := &b.Tags
		args = append(args, tags.KeyStart+key+tags.KeyEnd+tags.Gap+attr+tags.ValueStart+tags.Lead+value+tags.Trail+tags.ValueEnd+tags.After)
	}
	switch {
	case f.Messages != nil:
		header := f.Messages.Call
		return header.Start + tool.Name + header.End + b.Section + b.Inner + b.Start + tool.Name + b.NameEnd + b.Lead +
			strings.Join(args, "") + b.End + b.Inner + b.SectionEnd, true
	case b.Style == Tagged:
		return b.Section + b.Inner + b.Start + tool.Name + b.NameEnd + strings.ReplaceAll(b.Head, "#", "1") + b.HeadEnd + b.Lead + strings.Join(args, "") + b.End + b.Inner + b.SectionEnd, true
	case b.Literals:
		v, ok := literalOf(doc, "")
		return b.Start + "[{'name': '" + tool.Name + "', 'arguments': " + v + "}]" + b.End, ok
	case b.List:
		return b.Start + "[" + tool.Name + "(" + strings.Join(args, ", ") + ")]" + b.End, true
	}
	return b.Start + tool.Name + b.NameEnd + strings.Join(args, ",") + string(b.closing()) + b.End, true
}

func jsonType(raw string) string {
	switch raw[0] {
	case '"':
		return "string"
	case '{':
		return "object"
	case '[':
		return "array"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}
	return "number"
}

// members takes an object apart, its order kept.
func members(doc string) (keys, values []string) {
	dec := json.NewDecoder(strings.NewReader(doc))
	_, _ = dec.Token()
	for dec.More() {
		key, _ := dec.Token()
		var raw json.RawMessage
		_ = dec.Decode(&raw)
		keys, values = append(keys, key.(string)), append(values, string(raw))
	}
	return keys, values
}

// literalOf writes a JSON value as a literal.
func literalOf(raw, quote string) (string, bool) {
	constants := map[string]string{"true": "True", "false": "False", "null": "None"}
	switch {
	case raw[0] == '"' && quote == "":
		return raw, true
	case raw[0] == '"':
		var s string
		ok := json.Unmarshal([]byte(raw), &s) == nil && !strings.Contains(s, quote)
		return quote + s + quote, ok
	case raw[0] == '[':
		var list []json.RawMessage
		_ = json.Unmarshal([]byte(raw), &list)
		out := make([]string, len(list))
		for i := range list {
			v, ok := literalOf(string(list[i]), quote)
			if !ok {
				return "", false
			}
			out[i] = v
		}
		return "[" + strings.Join(out, ",") + "]", true
	case raw[0] == '{':
		keys, values := members(raw)
		for i := range keys {
			v, ok := literalOf(values[i], quote)
			if !ok || strings.ContainsAny(keys[i], "\"\\\n\t\r\b\f") || quote != "" && !wordLike(keys[i]) {
				return "", false
			}
			values[i] = `"` + keys[i] + `":` + v
			if quote != "" {
				values[i] = keys[i] + ":" + v
			}
		}
		return "{" + strings.Join(values, ",") + "}", true
	case constants[raw] != "" && quote == "":
		return constants[raw], true
	}
	return raw, true
}

func wordLike(key string) bool {
	return key != "" && !strings.ContainsFunc(key, func(r rune) bool {
		return r != '_' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
}

// The text of a custom tool follows its Lark grammar in every spelling.
func TestLarkTextIsHeldInEverySpelling(t *testing.T) {
	held, err := lark.Compile("start: line+ end\nline: (\"+\" | \"-\") /[a-c\"'\\\\]*/ LF\nend: \"*** \\\"End\\\"\" LF\n%import common.LF", "input")
	require.NoError(t, err)
	follows := regexp.MustCompile(`^([-+][a-c"'\\]*\n)+\*\*\* "End"\n$`)
	tool := toolOf("patch", `{"type":"object","properties":{"input":{"type":"string"}},"required":["input"],"additionalProperties":false}`)
	tool.Grammar = held
	tools := []chat.Tool{tool, grammarTools[1]}
	for i := range rows {
		f := &rows[i]
		if len(f.Blocks) == 0 {
			continue
		}
		g, parsed := mustGrammar(t, f, tools, GrammarOptions{Require: true, MaxCalls: 2})
		d, _ := gbnf.NewDeriver(parsed, uint64(i))
		texts := 0
		for range 40 {
			text := d.Sentence(60)
			a := probe(t, f, Options{Tools: tools, Forced: true, Opening: g.Opening, Constrained: true}, []string{text}, false)
			require.NotEmpty(t, a.Calls, "%s %q", f.Name, text)
			for _, c := range a.Calls {
				if c.Name != "patch" {
					continue
				}
				var args struct{ Input string }
				require.NoError(t, json.Unmarshal([]byte(c.Args), &args), "%s %q", f.Name, text)
				require.Regexp(t, follows, args.Input, "%s %q", f.Name, text)
				texts++
			}
		}
		require.Positive(t, texts, f.Name)
	}
}

// Where no call is demanded, one of a custom tool is held as well.
func TestLarkTextIsHeldWithoutDemand(t *testing.T) {
	held, err := lark.Compile(`start: "+" "End"`, "input")
	require.NoError(t, err)
	tool := toolOf("patch", `{"type":"object","properties":{"input":{"type":"string"}},"required":["input"],"additionalProperties":false}`)
	tool.Grammar = held
	tools := []chat.Tool{tool}
	forEachRow(t, func(t *testing.T, f *Format) {
		g, texts := walk(t, f, tools, GrammarOptions{Require: true, MaxCalls: 1}, 3)
		_, auto := mustGrammar(t, f, tools, GrammarOptions{})
		for _, text := range texts {
			call := g.Opening + text
			require.Contains(t, call, "End")
			require.True(t, auto.Accepts(call), "%q", call)
			require.False(t, auto.Accepts(strings.ReplaceAll(call, "End", "Other")), "%q", call)
		}
	})
}
