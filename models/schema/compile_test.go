package schema

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"quern/models/schema/gbnf"
	"quern/models/schema/schematest"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
)

type compileCase struct {
	name    string
	schema  string
	opt     Options
	yes, no []string
}

var closed = Options{Closed: true}

var compileCases = []compileCase{
	{"any value", `true`, Options{}, []string{`1`, `"x"`, `null`, `{"a": [1,{"b":{}}]}`, `[]`}, []string{``, `tru`, `{a:1}`, `[1,]`}},
	{"empty schema", `{}`, Options{}, []string{`1`, `{"a":1}`}, []string{`x`}},
	{"null schema, object wanted", `null`, Options{Object: true}, []string{`{}`, `{"a":1}`}, []string{`1`, `[]`}},
	{"true, object wanted", `true`, Options{Object: true}, []string{`{}`}, []string{`1`}},
	{"object", `{"type":"object"}`, closed, []string{`{}`, `{"a": 1, "b": {"c": []}}`}, []string{`[]`, `{"a"}`}},
	{"empty properties", `{"type":"object","properties":{}}`, closed, []string{`{}`}, []string{`{"a":1}`}},
	{"empty properties, open", `{"type":"object","properties":{}}`, Options{}, []string{`{}`, `{"a":1}`}, nil},

	{"one required", `{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`, closed,
		[]string{`{"city": "Paris"}`, `{"city":"x\"y\\\n"}`, `{"city":"\u00e9\ud83d\ude00"}`},
		[]string{`{}`, `{"city": 1}`, `{"city":"a", "x":1}`, `{"city":  "a"}`, "{\"city\":\n\"a\"}", "{\"city\":\"a\nb\"}", `{"city":"\ud83d"}`}},
	{"order and optionals", `{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"},"c":{"type":"integer"},"d":{"type":"integer"}},"required":["c"]}`, closed,
		[]string{`{"c":1}`, `{"a":1,"c":1}`, `{"b": 1, "c": 1}`, `{"a":1,"b":1,"c":1,"d":1}`, `{"c":1,"d":1}`},
		[]string{`{}`, `{"a":1}`, `{"c":1,"a":1}`, `{"b":1,"a":1,"c":1}`, `{"c":1,}`, `{"c":1,"c":1}`, `{,"c":1}`}},
	{"all optional", `{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"null"}}}`, closed,
		[]string{`{}`, `{"a":1}`, `{"b":null}`, `{"a":1,"b":null}`}, []string{`{"b":null,"a":1}`, `{"a":1,"a":1}`}},
	{"additional typed", `{"type":"object","properties":{"a":{"type":"integer"},"ab":{"type":"integer"}},"additionalProperties":{"type":"boolean"}}`, closed,
		[]string{`{}`, `{"a":1,"x":true}`, `{"x":true,"y":false}`, `{"aa":true}`, `{"abc":true}`, `{"a":1,"ab":2,"":true}`, `{"\"":true}`},
		[]string{`{"a":true}`, `{"x":1}`, `{"x":true,"a":1}`, `{"x":true,"a":true}`, `{"ab":true}`}},
	{"open object", `{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}`, Options{},
		[]string{`{"a":1}`, `{"a":1,"b":"x","c":[]}`}, []string{`{"b":1}`, `{"a":1,"a":"x"}`}},
	{"map with counts", `{"type":"object","additionalProperties":{"type":"integer"},"minProperties":1,"maxProperties":2}`, closed,
		[]string{`{"x":1}`, `{"x":1,"y":2}`}, []string{`{}`, `{"x":1,"y":2,"z":3}`, `{"x":"a"}`}},
	{"patternProperties", `{"type":"object","properties":{"n1":{"minimum":5}},"patternProperties":{"^n[0-9]$":{"type":"integer"}},"additionalProperties":{"type":"string"}}`, closed,
		[]string{`{"n2":1}`, `{"n1":5,"n3":1,"x":"y"}`, `{"n":"y"}`}, []string{`{"n1":1}`, `{"n2":"x"}`, `{"x":1}`}},
	{"propertyNames", `{"type":"object","propertyNames":{"pattern":"^[a-z]+$"},"additionalProperties":{"type":"integer"}}`, closed,
		[]string{`{"ab":1}`}, []string{`{"A":1}`, `{"":1}`}},
	{"odd keys", `{"type":"object","properties":{"@t":{"enum":["a\nb"]},"$x.y":{"enum":["say \"hi\" \\ there"]},"with space":{"enum":["</parameter>"]},"schlüssel":{"enum":["</tool_call>"]}},"required":["@t","$x.y","with space","schlüssel"],"additionalProperties":false}`, Options{Strict: true},
		[]string{`{"@t": "a\nb", "$x.y": "say \"hi\" \\ there", "with space": "</parameter>", "schlüssel": "</tool_call>"}`}, []string{`{}`}},
	{"required undeclared", `{"type":"object","required":["x"]}`, closed, []string{`{"x":1}`, `{"x":1,"y":2}`}, []string{`{}`}},

	{"array", `{"type":"array","items":{"type":"integer"}}`, Options{}, []string{`[]`, `[1]`, `[1,2, 3]`}, []string{`[1,]`, `["a"]`, `[,]`}},
	{"array sizes", `{"type":"array","items":{"type":"integer"},"minItems":2,"maxItems":3}`, Options{},
		[]string{`[1,2]`, `[1,2,3]`}, []string{`[]`, `[1]`, `[1,2,3,4]`}},
	{"array at most", `{"type":"array","items":{"enum":[1]},"maxItems":1}`, Options{}, []string{`[]`, `[1]`}, []string{`[1,1]`}},
	{"array of none", `{"type":"array","maxItems":0}`, Options{}, []string{`[]`}, []string{`[1]`}},
	{"array many", `{"type":"array","items":{"enum":[1]},"minItems":100,"maxItems":150}`, Options{},
		[]string{"[1" + strings.Repeat(",1", 99) + "]", "[1" + strings.Repeat(",1", 149) + "]"},
		[]string{"[1" + strings.Repeat(",1", 98) + "]", "[1" + strings.Repeat(",1", 150) + "]"}},
	{"untyped items", `{"items":{"type":"string"}}`, Options{}, []string{`["a"]`}, []string{`[1]`, `"a"`}},
	{"tuple", `{"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}],"items":{"type":"null"},"minItems":1,"maxItems":3}`, Options{},
		[]string{`[1]`, `[1,"a"]`, `[1,"a",null]`}, []string{`[]`, `["a"]`, `[1,null]`, `[1,"a",null,null]`}},
	{"tuple closed", `{"type":"array","prefixItems":[{"type":"integer"}],"items":false}`, Options{}, []string{`[]`, `[1]`}, []string{`[1,1]`}},
	{"tuple of draft 7", `{"type":"array","items":[{"type":"integer"}],"additionalItems":false}`, Options{}, []string{`[1]`}, []string{`[1,2]`, `["a"]`}},

	{"type list", `{"type":["string","null"]}`, Options{}, []string{`"a"`, `null`}, []string{`1`}},
	{"nullable", `{"type":"string","nullable":true}`, Options{}, []string{`"a"`, `null`}, []string{`1`}},
	{"type list with keywords", `{"type":["array","null"],"items":{"type":"integer","enum":[1]},"maxItems":1}`, Options{}, []string{`[1]`, `[]`, `null`}, []string{`[2]`, `{}`}},
	{"enum", `{"enum":["red","green",1,null,true,{"a":[1]}]}`, Options{}, []string{`"red"`, `1`, `null`, `true`, `{"a": [1]}`}, []string{`"blue"`, `2`}},
	{"enum of objects", `{"enum":[{"a":[1,"x"],"b":{},"c":{"d":[]}},[[],[2]]]}`, Options{},
		[]string{`{"a": [1, "x"], "b": {}, "c": {"d": []}}`, `{"a":[1,"x"],"b":{},"c":{"d":[]}}`, `[[],[2]]`}, []string{`{"a":[1,"x"],"b":{}}`, `{"b":{},"a":[1,"x"],"c":{"d":[]}}`, `[[],[2],]`, `[ [], [2] ]`}},
	{"enum of objects, pretty", `{"enum":[{"a":[1]}]}`, Options{Pretty: true}, []string{`{"a":[1]}`, "{\n  \"a\": [\n    1\n  ]\n}"}, []string{`{"a":[2]}`}},
	{"enum narrowed by type", `{"type":"string","enum":["a",1],"minLength":1}`, Options{}, []string{`"a"`}, []string{`1`}},
	{"enum of many", `{"enum":["jan","feb","mar","apr","may","jun","jul","aug","sep","oct","nov","dec","j\"x"]}`, Options{},
		[]string{`"jan"`, `"jun"`, `"dec"`, `"j\"x"`}, []string{`"j"`, `"janx"`, `"ju"`, `1`}},
	{"const", `{"const":{"k":"v"}}`, Options{}, []string{`{"k": "v"}`}, []string{`{}`}},

	{"anyOf", `{"anyOf":[{"type":"integer"},{"type":"object","properties":{"a":{"const":1}},"required":["a"]}]}`, closed, []string{`1`, `{"a":1}`}, []string{`"x"`, `{}`}},
	{"anyOf with base", `{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"anyOf":[{"required":["a"]},{"required":["b"]}]}`, closed,
		[]string{`{"a":1}`, `{"b":1}`, `{"a":1,"b":2}`}, []string{`{}`}},
	{"oneOf of consts", `{"oneOf":[{"const":"a","title":"A"},{"const":"b"}]}`, Options{}, []string{`"a"`, `"b"`}, []string{`"c"`}},
	{"allOf", `{"allOf":[{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]},{"properties":{"b":{"type":"string"},"a":{"minimum":3}},"required":["b"]}]}`, closed,
		[]string{`{"a":3,"b":"x"}`}, []string{`{"a":2,"b":"x"}`, `{"a":3}`, `{"b":"x","a":3}`}},
	{"allOf with a closed part", `{"allOf":[{"type":"object","properties":{"a":{"type":"integer"}},"additionalProperties":false},{"properties":{"b":{"type":"string"}}}]}`, closed,
		[]string{`{}`, `{"a":3}`}, []string{`{"b":"x"}`}},
	{"allOf of anyOf", `{"allOf":[{"anyOf":[{"type":"integer"},{"type":"string"}]},{"anyOf":[{"type":"string"},{"type":"null"}]}]}`, Options{}, []string{`"x"`}, []string{`1`, `null`}},
	{"false branch", `{"anyOf":[false,{"type":"integer"}]}`, Options{}, []string{`1`}, []string{`"a"`}},
	{"false property", `{"type":"object","properties":{"a":false,"b":true}}`, closed, []string{`{}`, `{"b":1}`}, []string{`{"a":1}`}},

	{"ref", `{"$defs":{"P":{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"],"additionalProperties":false}},"type":"object","properties":{"p":{"$ref":"#/$defs/P"},"q":{"$ref":"#/$defs/P","description":"d"}},"required":["p","q"],"additionalProperties":false}`, Options{Strict: true},
		[]string{`{"p":{"x":1},"q":{"x":2}}`}, []string{`{"p":{}}`}},
	{"recursion", `{"$ref":"#/definitions/n","definitions":{"n":{"type":"object","properties":{"v":{"type":"integer"},"next":{"anyOf":[{"$ref":"#/definitions/n"},{"type":"null"}]}},"required":["v","next"],"additionalProperties":false}}}`, Options{Strict: true},
		[]string{`{"v":1,"next":null}`, `{"v":1,"next":{"v":2,"next":null}}`}, []string{`{"v":1}`, `{"v":1,"next":{}}`}},
	{"recursion at the root", `{"type":"object","properties":{"kids":{"type":"array","items":{"$ref":"#"}}},"required":["kids"],"additionalProperties":false}`, Options{},
		[]string{`{"kids":[]}`, `{"kids":[{"kids":[]},{"kids":[{"kids":[]}]}]}`}, []string{`{"kids":[1]}`}},
	{"anchor", `{"$defs":{"a":{"$anchor":"foo","type":"integer"}},"$ref":"#foo"}`, Options{}, []string{`1`}, []string{`"x"`}},
	{"escaped pointer", `{"$defs":{"a/b c":{"type":"null"}},"$ref":"#/$defs/a~1b%20c"}`, Options{}, []string{`null`}, []string{`1`}},

	{"lengths", `{"type":"string","minLength":2,"maxLength":3}`, Options{}, []string{`"ab"`, `"abc"`, `"日本"`, `"\n\u0041"`}, []string{`"a"`, `"abcd"`, `""`}},
	{"long maxLength", `{"type":"string","maxLength":5000}`, Options{}, []string{`""`, `"` + strings.Repeat("x", 5000) + `"`}, []string{`"` + strings.Repeat("x", 5001) + `"`}},
	{"long minLength", `{"type":"string","minLength":500}`, Options{}, []string{`"` + strings.Repeat("x", 500) + `"`}, []string{`"` + strings.Repeat("x", 499) + `"`}},
	{"pattern anchored", `{"type":"string","pattern":"^[a-z]+-\\d{2}$"}`, Options{}, []string{`"ab-12"`}, []string{`"ab-1"`, `"AB-12"`, `"xab-123"`}},
	{"pattern unanchored", `{"type":"string","pattern":"\\S"}`, Options{}, []string{`"a"`, `" a "`, `"\\"`, `"\""`}, []string{`""`, `"  "`}},
	{"pattern half anchored", `{"pattern":"^ab"}`, Options{}, []string{`"ab"`, `"abc"`}, []string{`"ba"`}},
	{"pattern and length", `{"type":"string","pattern":"^a*$","minLength":2,"maxLength":3}`, Options{}, []string{`"aa"`, `"aaa"`}, []string{`"a"`, `"aaaa"`}},
	{"pattern alternatives", `{"type":"string","pattern":"^(foo|bar)$|^x"}`, Options{}, []string{`"foo"`, `"x1"`}, []string{`"fo"`}},
	{"pattern, case folded", `{"type":"string","pattern":"^(?i)ok$"}`, Options{}, []string{`"OK"`, `"oK"`}, []string{`"o"`}},
	{"pattern with unicode", `{"type":"string","pattern":"^\\u00e9\\/$"}`, Options{}, []string{`"é/"`}, []string{`"e/"`}},
	{"look-ahead relaxed", `{"type":"string","pattern":"^(?=a)b"}`, Options{}, []string{`"x"`}, []string{`1`}},
	{"date", `{"type":"string","format":"date"}`, Options{}, []string{`"2024-02-29"`, `"1999-12-31"`}, []string{`"2023-02-29"`, `"2023-13-01"`, `"x"`}},
	{"date-time", `{"type":"string","format":"date-time"}`, Options{}, []string{`"2024-02-29T23:59:59Z"`, `"2024-02-29T23:59:59.5+01:00"`}, []string{`"2024-02-29"`, `"2024-02-29T24:00:00Z"`}},
	{"uuid", `{"format":"uuid"}`, Options{}, []string{`"123e4567-e89b-12d3-a456-426614174000"`}, []string{`"x"`}},
	{"ipv4", `{"type":"string","format":"ipv4"}`, Options{}, []string{`"1.2.3.255"`}, []string{`"1.2.3.256"`, `"1.2.3"`}},
	{"unknown format", `{"type":"string","format":"color"}`, Options{Strict: true}, []string{`"x"`}, nil},

	{"integer", `{"type":"integer"}`, Options{}, []string{`0`, `-7`, `9007199254740993`}, []string{`1.5`, `01`, `"1"`, `+1`}},
	{"integer from 0", `{"type":"integer","minimum":0}`, Options{}, []string{`0`, `5`, `123456789012`}, []string{`-1`, `00`}},
	{"integer range", `{"type":"integer","minimum":-5,"maximum":120}`, Options{}, []string{`-5`, `-1`, `0`, `99`, `100`, `120`}, []string{`-6`, `121`, `1000`, `-50`}},
	{"integer exclusive", `{"type":"integer","exclusiveMinimum":1,"exclusiveMaximum":4}`, Options{}, []string{`2`, `3`}, []string{`1`, `4`}},
	{"integer exclusive, draft 4", `{"type":"integer","minimum":1,"exclusiveMinimum":true,"maximum":3}`, Options{}, []string{`2`, `3`}, []string{`1`, `4`}},
	{"integer at most", `{"type":"integer","maximum":-3}`, Options{}, []string{`-3`, `-10`, `-99999`}, []string{`-2`, `0`, `3`}},
	{"integer, fractional bounds", `{"type":"integer","minimum":1.5,"maximum":3.5}`, Options{}, []string{`2`, `3`}, []string{`1`, `4`}},
	{"multipleOf", `{"type":"integer","multipleOf":25,"minimum":0,"maximum":1000}`, Options{}, []string{`0`, `25`, `975`, `1000`}, []string{`26`, `1025`, `-25`, `025`}},
	{"number", `{"type":"number"}`, Options{}, []string{`0`, `-1.5`, `1e10`, `2.5E-3`}, []string{`.5`, `1.`, `NaN`}},
	{"number 0 to 1", `{"type":"number","minimum":0,"maximum":1}`, Options{}, []string{`0`, `1`, `0.5`, `1.0`, `0.999`}, []string{`1.1`, `-0.1`, `2`, `1.01`}},
	{"number exclusive", `{"type":"number","exclusiveMinimum":0,"exclusiveMaximum":1}`, Options{}, []string{`0.5`, `0.01`}, []string{`0`, `0.0`, `1`, `1.0`}},
	{"number, fractional bounds", `{"type":"number","minimum":-1.25,"maximum":2.5}`, Options{}, []string{`-1.25`, `-1.2`, `-0.3`, `0`, `2.5`, `2.49`, `2.50`}, []string{`-1.26`, `-1.3`, `2.51`, `3`, `-2`}},
	{"number in one whole", `{"type":"number","minimum":1.2,"maximum":1.45}`, Options{}, []string{`1.2`, `1.3`, `1.45`, `1.20`, `1.4`, `1.41`}, []string{`1.1`, `1.46`, `1`, `1.5`}},
	{"bounds without type", `{"minimum":3,"maximum":4}`, Options{}, []string{`3`, `3.5`}, []string{`5`, `"a"`}},

	{"pretty", `{"type":"object","properties":{"a":{"type":"array","items":{"type":"integer"}}},"required":["a"]}`, Options{Closed: true, Pretty: true},
		[]string{`{"a":[1]}`, "{\n  \"a\": [\n    1,\n    2\n  ]\n}", `{ "a": [ ] }`}, []string{"{\n\n\"a\":[]}", `{  "a":[]}`}},
	{"sloppy keywords", `{"type":"object","properties":{"a":{"type":"str","required":true,"minLength":"x"}},"required":["a"]}`, closed, []string{`{"a":"x"}`, `{"a":1}`}, []string{`{}`}},
}

func TestCompile(t *testing.T) {
	for _, c := range compileCases {
		t.Run(c.name, func(t *testing.T) {
			g := mustCompile(t, c.schema, c.opt)
			for _, s := range c.yes {
				require.True(t, g.Accepts(s), "must accept %s", s)
			}
			for _, s := range c.no {
				require.False(t, g.Accepts(s), "must refuse %s", s)
			}
		})
	}
}

func mustCompile(t testing.TB, schema string, o Options) *gbnf.Grammar {
	t.Helper()
	c, err := Compile(json.RawMessage(schema), o)
	require.NoError(t, err)
	g, err := gbnf.Parse(c.GBNF())
	require.NoError(t, err, c.GBNF())
	return g
}

// Whatever a grammar derives satisfies the schema, in the judgement of a full
// validator, except for what Relaxed names.
func TestDerivedValuesAreValid(t *testing.T) {
	for i, c := range compileCases {
		t.Run(c.name, func(t *testing.T) {
			compiled, err := Compile(json.RawMessage(c.schema), c.opt)
			require.NoError(t, err)
			if len(compiled.Relaxed) > 0 || c.schema == "null" || strings.Contains(c.schema, "nullable") || strings.Contains(c.schema, `\\u`) {
				t.Skip("relaxed")
			}
			validator := schematest.Validator(t, c.schema)
			g, err := gbnf.Parse(compiled.GBNF())
			require.NoError(t, err)
			d, endless := gbnf.NewDeriver(g, uint64(i))
			require.Empty(t, endless)
			for range 150 {
				s := d.Sentence(40)
				v, err := jsonschema.UnmarshalJSON(strings.NewReader(s))
				require.NoError(t, err, s)
				require.NoError(t, validator.Validate(v), s)
				require.True(t, NewChecker(json.RawMessage(c.schema)).Fits([]byte(s)), "Fits(%s)", s)
			}
		})
	}
}

func TestCompileErrors(t *testing.T) {
	strict := Options{Strict: true}
	for _, c := range []struct {
		name, schema string
		opt          Options
		path         string
	}{
		{"not JSON", `{"type":`, Options{}, "$"},
		{"not a schema", `[1]`, Options{}, "$"},
		{"data behind", `{} {}`, Options{}, "$"},
		{"false", `false`, Options{}, "$"},
		{"no integer object", `{"type":"integer"}`, Options{Object: true}, "$"},
		{"bad regex", `{"type":"object","properties":{"x":{"type":"string","pattern":"^[unclosed(((*$"}}}`, Options{}, "$.properties.x.pattern"},
		{"look-ahead", `{"properties":{"a b":{"pattern":"(?=x)"}}}`, strict, `$.properties["a b"].pattern`},
		{"look-behind", `{"pattern":"(?<!x)y"}`, strict, "$.pattern"},
		{"back reference", `{"pattern":"(a)\\1"}`, strict, "$.pattern"},
		{"word boundary", `{"pattern":"\\bx"}`, strict, "$.pattern"},
		{"not", `{"anyOf":[{"type":"string"},{"not":{"type":"null"}}]}`, strict, "$.anyOf[1].not"},
		{"uniqueItems", `{"type":"array","uniqueItems":true}`, strict, "$.uniqueItems"},
		{"unknown type", `{"type":"str"}`, strict, "$.type"},
		{"missing definition", `{"$ref":"#/$defs/x"}`, Options{}, "$.$ref"},
		{"remote reference", `{"$ref":"https://example.org/s.json"}`, strict, "$.$ref"},
		{"itself", `{"$ref":"#"}`, Options{}, "$"},
		{"itself in anyOf", `{"$defs":{"a":{"anyOf":[{"$ref":"#/$defs/a"},{"type":"null"}]}},"$ref":"#/$defs/a"}`, Options{}, "$.$defs.a"},
		{"requires itself", `{"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]}`, Options{}, "$"},
		{"required but closed", `{"type":"object","properties":{},"required":["a"],"additionalProperties":false}`, strict, "$"},
		{"impossible bounds", `{"type":"integer","minimum":3,"maximum":2}`, Options{}, "$"},
		{"impossible items", `{"type":"array","minItems":3,"maxItems":2}`, Options{}, "$"},
		{"impossible enum", `{"type":"string","enum":[1]}`, Options{}, "$"},
		{"properties as list", `{"type":"object","properties":[]}`, Options{}, "$.properties"},
		{"subschema is a string", `{"properties":{"a":"x"},"required":["a"]}`, Options{}, "$.properties.a"},
		{"too deep", strings.Repeat(`{"items":`, 200) + `{}` + strings.Repeat(`}`, 200), Options{}, "$"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Compile(json.RawMessage(c.schema), c.opt)
			var e *Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, c.path, e.Path, e.Msg)
			require.NotEmpty(t, e.Msg)
		})
	}
}

func TestRelaxedIsListed(t *testing.T) {
	c, err := Compile(json.RawMessage(`{"type":"object","properties":{"a":{"type":"array","uniqueItems":true},"b":{"pattern":"(?!x)"}},"not":{}}`), Options{})
	require.NoError(t, err)
	var paths []string
	for _, e := range c.Relaxed {
		paths = append(paths, e.Path)
	}
	require.Equal(t, []string{"$.not", "$.properties.a.uniqueItems", "$.properties.b.pattern"}, paths)
}

func TestHostileSchemasEnd(t *testing.T) {
	wide := func(n int, item func(i int) string) string {
		var b strings.Builder
		for i := range n {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(item(i))
		}
		return b.String()
	}
	doubling := `{"$defs":{` + wide(40, func(i int) string {
		return fmt.Sprintf(`"d%d":{"anyOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}`, i, i+1, i+1)
	}) + `,"d40":{"type":"null"}},"$ref":"#/$defs/d0"}`
	for name, s := range map[string]string{
		"doubling refs":    doubling,
		"many properties":  `{"type":"object","properties":{` + wide(20000, func(i int) string { return fmt.Sprintf(`"p%d":{}`, i) }) + `}}`,
		"many required":    `{"type":"object","properties":{` + wide(20000, func(i int) string { return fmt.Sprintf(`"p%d":{}`, i) }) + `},"required":[` + wide(20000, func(i int) string { return fmt.Sprintf(`"p%d"`, i) }) + `]}`,
		"large enum":       `{"enum":[` + wide(50000, func(i int) string { return fmt.Sprintf(`"value number %d"`, i*7919) }) + `]}`,
		"wide allOf":       `{"allOf":[` + wide(200, func(i int) string { return `{"anyOf":[{"minimum":1},{"minimum":2}]}` }) + `]}`,
		"huge counts":      `{"type":"array","minItems":2000000000,"items":{"type":"string","minLength":999999999999999999999}}`,
		"huge number":      `{"type":"number","minimum":1e999999999}`,
		"huge pattern":     `{"type":"string","pattern":"^(a{1,500}b{1,500}){1,2}$"}`,
		"exploding subset": `{"type":"string","pattern":"(a|b)*a(a|b){20}$"}`,
		"open pattern":     `{"type":"object","patternProperties":{"` + strings.Repeat("(a|b)*a", 30) + `$":{}},"additionalProperties":{}}`,
		"long name":        `{"type":"object","properties":{"` + strings.Repeat("k", 100000) + `":{}},"additionalProperties":true}`,
	} {
		t.Run(name, func(t *testing.T) {
			c, err := Compile(json.RawMessage(s), Options{})
			if err == nil {
				require.Less(t, len(c.GBNF()), maxGrammarSize+4096)
				_, err = gbnf.Parse(c.GBNF())
				require.NoError(t, err)
			}
		})
	}
}

// The number of stacks decides what masking a vocabulary costs; it must not
// grow with the number of optional properties or enum values.
func TestStacksStayFew(t *testing.T) {
	var props, enum []string
	for i := range 30 {
		props = append(props, fmt.Sprintf(`"option%d":{"type":"string"}`, i))
		enum = append(enum, fmt.Sprintf(`"value%d"`, i))
	}
	for _, c := range []struct {
		schema, text string
		most         int
	}{
		{`{"type":"object","properties":{` + strings.Join(props, ",") + `}}`, `{"option3": "x", "option17": "y"}`, 32},
		{`{"enum":[` + strings.Join(enum, ",") + `]}`, `"value17"`, 4},
		{`{"type":"string","maxLength":3000}`, `"` + strings.Repeat("x", 200) + `"`, 6},
		{`{"type":"string","pattern":"^[^@ ]+@[a-z]+(\\.[a-z]+)+$"}`, `"a.b@example.org"`, 4},
		{`{"type":"string","format":"date-time"}`, `"2024-02-29T10:00:00Z"`, 4},
	} {
		m := gbnf.NewMatcher(mustCompile(t, c.schema, closed))
		require.True(t, m.Feed(c.text) && m.CanEnd(), c.text)
		require.LessOrEqual(t, m.Peak(), c.most, c.schema)
	}
}

func TestFormatsCompile(t *testing.T) {
	for name := range formats {
		require.NotNil(t, formatAutomaton(name), name)
	}
}

func TestFits(t *testing.T) {
	for _, c := range []struct {
		schema, value string
		want          bool
	}{
		{`{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}`, `{"a":1}`, true},
		{`{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}`, `{"a":"1"}`, false},
		{`{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}`, `{}`, false},
		{`{"type":"object","properties":{"a":{"type":["array","null"]}}}`, `{"a":null}`, true},
		{`{"properties":{"a":{"enum":["x"]}}}`, `{"a":"y"}`, false},
		{`{"properties":{"a":{"$ref":"#/$defs/s"}},"$defs":{"s":{"type":"string"}}}`, `{"a":1}`, false},
		{`{"items":{"type":"integer"}}`, `[1,"a"]`, false},
		{`{"type":"integer"}`, `1.0`, true},
		{`{"type":"integer"}`, `1.5`, false},
		{`{"anyOf":[{"type":"null"},{"type":"string","pattern":"^a"}]}`, `"ba"`, false},
		{`{"$ref":"#"}`, `1`, true},
		{`nonsense`, `{"a":1}`, true},
		{`{}`, `{"a":`, false},
	} {
		require.Equal(t, c.want, NewChecker(json.RawMessage(c.schema)).Fits([]byte(c.value)), "%s %s", c.schema, c.value)
	}
}

func TestCache(t *testing.T) {
	var none *Cache
	_, err := none.Compile(json.RawMessage(`{}`), Options{})
	require.NoError(t, err)
	c := NewCache(4096)
	a, err := c.Compile(json.RawMessage(`{"type":"null"}`), Options{})
	require.NoError(t, err)
	b, _ := c.Compile(json.RawMessage(`{"type":"null"}`), Options{})
	require.Same(t, a, b)
	p, _ := c.Compile(json.RawMessage(`{"type":"null"}`), Options{Pretty: true})
	require.NotSame(t, a, p)
	_, err = c.Compile(json.RawMessage(`false`), Options{})
	require.Error(t, err)
	for i := range 50 {
		_, err := c.Compile(json.RawMessage(fmt.Sprintf(`{"const":%d}`, i)), Options{})
		require.NoError(t, err)
	}
	require.LessOrEqual(t, c.size, c.limit)
	require.Len(t, c.byKey, c.order.Len())
	again, _ := c.Compile(json.RawMessage(`{"type":"null"}`), Options{})
	require.NotSame(t, a, again, "the first entry has fallen out")
}

func TestCacheIsSafe(t *testing.T) {
	c := NewCache(20_000)
	var g sync.WaitGroup
	for w := range 8 {
		g.Go(func() {
			for i := range 200 {
				s := json.RawMessage(fmt.Sprintf(`{"type":"string","minLength":%d}`, (w*7+i)%60))
				out, err := c.Compile(s, Options{})
				if err != nil || !strings.HasPrefix(out.Root, "s") {
					t.Errorf("%s: %v", s, err)
				}
			}
		})
	}
	g.Wait()
	require.LessOrEqual(t, c.size, c.limit)
}

// fuzzSpellings are those of families, and JSON.
var fuzzSpellings = [8]Spelling{
	1: {Kind: AsTags, KeyStart: "<p=", KeyEnd: ">", ValueEnd: "</p>", Lead: "\n", Trail: "\n", After: "\n", Trim: true},
	2: {Kind: AsTags, KeyStart: "<p name=\"", KeyEnd: "\"", ValueStart: ">", ValueEnd: "</p>", Trim: true, Loose: true, After: "\n"},
	3: {Kind: AsTags, KeyStart: "<k>", KeyEnd: "</k>", Gap: "\n", ValueStart: "<v>", ValueEnd: "</v>", Typed: "type"},
	4: {Kind: AsKeywords, Assign: "="},
	5: {Kind: AsKeywords, Assign: ":", Quote: "<|q|>"},
	6: {Kind: AsLiterals},
}

func FuzzCompile(f *testing.F) {
	for _, c := range compileCases {
		f.Add([]byte(c.schema), byte(0))
		f.Add([]byte(c.schema), byte(15))
		f.Add([]byte(c.schema), byte(16+32))
		f.Add([]byte(c.schema), byte(32+64))
	}
	f.Fuzz(func(t *testing.T, schema []byte, flags byte) {
		if len(schema) > 2000 {
			return
		}
		o := Options{Strict: flags&1 != 0, Closed: flags&2 != 0, Object: flags&4 != 0, Pretty: flags&8 != 0, Recursion: int(flags&16) / 4}
		o.Spelling = fuzzSpellings[flags>>5]
		c, err := Compile(schema, o)
		if err != nil {
			var e *Error
			require.ErrorAs(t, err, &e)
			return
		}
		g, err := gbnf.Parse(c.GBNF())
		require.NoError(t, err)
		d, endless := gbnf.NewDeriver(g, 1)
		require.Empty(t, endless)
		if s := d.Sentence(20); len(s) < 20000 && o.Spelling.Kind == AsJSON {
			require.True(t, json.Valid([]byte(s)), s)
		}
	})
}
