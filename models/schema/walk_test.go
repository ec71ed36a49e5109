package schema

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"quern/models/schema/gbnf"
)

// walkSchemas are schemas as OpenAI's strict mode and MCP servers send them.
// documents can make values of all they say.
var walkSchemas = map[string]string{
	"weather":       `{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer","minimum":1,"maximum":14},"metric":{"type":"boolean"}},"required":["city"]}`,
	"search":        `{"type":"object","properties":{"query":{"type":"string","minLength":1,"maxLength":65536},"limit":{"type":"integer","minimum":1,"maximum":1000},"safe":{"type":["boolean","null"]}},"required":["query","limit","safe"],"additionalProperties":false}`,
	"edit":          `{"type":"object","properties":{"path":{"type":"string"},"edits":{"type":"array","items":{"type":"object","properties":{"old":{"type":"string"},"new":{"type":"string"}},"required":["old","new"],"additionalProperties":false},"minItems":1,"maxItems":5}},"required":["path","edits"],"additionalProperties":false}`,
	"plan":          `{"type":"object","properties":{"explanation":{"type":"string"},"plan":{"type":"array","items":{"type":"object","properties":{"step":{"type":"string"},"status":{"type":"string","enum":["pending","in_progress","completed"]}},"required":["step","status"],"additionalProperties":false}}},"required":["plan"],"additionalProperties":false}`,
	"shell":         `{"type":"object","properties":{"command":{"type":"array","items":{"type":"string"}},"workdir":{"type":"string"},"timeout_ms":{"type":"number","minimum":0}},"required":["command"],"additionalProperties":false}`,
	"list":          `{"$ref":"#/$defs/node","$defs":{"node":{"type":"object","properties":{"value":{"type":"integer"},"next":{"anyOf":[{"$ref":"#/$defs/node"},{"type":"null"}]}},"required":["value","next"],"additionalProperties":false}}}`,
	"tree":          `{"type":"object","properties":{"name":{"type":"string"},"kids":{"type":"array","items":{"$ref":"#"},"maxItems":2}},"required":["name","kids"],"additionalProperties":false}`,
	"two kinds":     `{"anyOf":[{"type":"object","properties":{"kind":{"const":"circle"},"r":{"type":"number","exclusiveMinimum":0}},"required":["kind","r"],"additionalProperties":false},{"type":"object","properties":{"kind":{"const":"square"},"a":{"type":"number","exclusiveMinimum":0}},"required":["kind","a"],"additionalProperties":false}]}`,
	"one of":        `{"oneOf":[{"type":"integer","minimum":0,"maximum":9},{"type":"string","enum":["a","b"]},{"type":"null"}]}`,
	"all of":        `{"type":"object","properties":{"a":{"type":"integer","minimum":-5,"maximum":20}},"required":["a"],"allOf":[{"properties":{"a":{"type":"integer","maximum":5}}}],"additionalProperties":false}`,
	"map":           `{"type":"object","additionalProperties":{"type":"integer"}}`,
	"map of lists":  `{"type":"object","additionalProperties":{"type":"array","items":{"type":"string"},"maxItems":3}}`,
	"anything":      `{}`,
	"any object":    `{"type":"object"}`,
	"any list":      `{"type":"array"}`,
	"tuple":         `{"type":"array","prefixItems":[{"type":"integer"},{"type":"string"},{"type":"boolean"}],"items":false,"minItems":3}`,
	"tuple, open":   `{"type":"array","prefixItems":[{"type":"integer"}],"items":{"type":"string"},"maxItems":4}`,
	"matrix":        `{"type":"array","items":{"type":"array","items":{"type":"number"},"minItems":2,"maxItems":2},"minItems":2,"maxItems":2}`,
	"enum":          `{"enum":["a",1,2.5,null,true]}`,
	"const":         `{"const":"\n\"quoted\" \\ é"}`,
	"string":        `{"type":"string"}`,
	"short":         `{"type":"string","minLength":2,"maxLength":4}`,
	"long":          `{"type":"string","maxLength":65536}`,
	"type list":     `{"type":["string","integer","null"],"maxLength":5,"minimum":3}`,
	"number":        `{"type":"number"}`,
	"number range":  `{"type":"number","minimum":-1.5,"maximum":99.25}`,
	"integer":       `{"type":"integer"}`,
	"integer range": `{"type":"integer","minimum":-120,"maximum":4096}`,
	"exclusive":     `{"type":"integer","exclusiveMinimum":-1,"exclusiveMaximum":10}`,
	"multiple":      `{"type":"integer","multipleOf":5,"minimum":0,"maximum":500}`,
	"boolean":       `{"type":"boolean"}`,
	"null":          `{"type":"null"}`,
	"date":          `{"type":"string","format":"date"}`,
	"date-time":     `{"type":"string","format":"date-time"}`,
	"time":          `{"type":"string","format":"time"}`,
	"uuid":          `{"type":"string","format":"uuid"}`,
	"email":         `{"type":"string","format":"email"}`,
	"ipv4":          `{"type":"string","format":"ipv4"}`,
	"uri":           `{"type":"string","format":"uri"}`,
	"code":          `{"type":"string","pattern":"^[A-Z]{2}-[0-9]{3}$"}`,
	"contains":      `{"type":"string","pattern":"b+"}`,
	"prefix":        `{"type":"string","pattern":"^https?://"}`,
	"suffix":        `{"type":"string","pattern":"\\.go$"}`,
	"many optional": `{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"},"c":{"type":"integer"},"d":{"type":"integer"},"e":{"type":"integer"},"f":{"type":"integer"}},"additionalProperties":false}`,
	"mixed":         `{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"},"c":{"type":"integer"},"d":{"type":"integer"}},"required":["b","d"],"additionalProperties":false}`,
	"open":          `{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":{"type":"string"}}`,
	"odd keys":      `{"type":"object","properties":{"@timestamp":{"type":"string"},"a b":{"type":"integer"},"ü":{"type":"null"},"$ref.x":{"type":"boolean"}},"required":["@timestamp","a b","ü","$ref.x"],"additionalProperties":false}`,
	"similar keys":  `{"type":"object","properties":{"n":{"type":"integer"},"na":{"type":"integer"},"name":{"type":"integer"}},"additionalProperties":{"type":"string"}}`,
	"pydantic":      `{"$defs":{"Addr":{"properties":{"street":{"title":"Street","type":"string"},"zip":{"anyOf":[{"type":"string"},{"type":"null"}],"default":null,"title":"Zip"}},"required":["street"],"title":"Addr","type":"object"}},"properties":{"who":{"title":"Who","type":"string"},"addr":{"$ref":"#/$defs/Addr"}},"required":["who","addr"],"title":"Person","type":"object"}`,
	"zod":           `{"type":"object","properties":{"a":{"type":"string","minLength":1},"b":{"type":"array","items":{"type":"string"},"default":[]}},"required":["a","b"],"additionalProperties":false,"$schema":"http://json-schema.org/draft-07/schema#"}`,
	"described ref": `{"$defs":{"c":{"enum":["r","g"]}},"type":"object","properties":{"x":{"$ref":"#/$defs/c","description":"first"},"y":{"$ref":"#/$defs/c"}},"required":["x","y"],"additionalProperties":false}`,
	"nested any":    `{"anyOf":[{"anyOf":[{"type":"integer"},{"type":"boolean"}]},{"anyOf":[{"type":"null"},{"type":"array","items":{"type":"integer"}}]}]}`,
	"deep":          `{"type":"object","properties":{"a":{"type":"object","properties":{"b":{"type":"object","properties":{"c":{"type":"array","items":{"type":"object","properties":{"d":{"type":"string"}},"required":["d"],"additionalProperties":false}}},"required":["c"],"additionalProperties":false}},"required":["b"],"additionalProperties":false}},"required":["a"],"additionalProperties":false}`,
	"filters":       `{"type":"object","properties":{"where":{"type":"array","items":{"type":"object","properties":{"field":{"type":"string"},"op":{"type":"string","enum":["eq","ne","lt","gt","in"]},"value":{"anyOf":[{"type":"string"},{"type":"number"},{"type":"boolean"},{"type":"array","items":{"type":"string"}}]}},"required":["field","op","value"],"additionalProperties":false}},"order":{"type":["string","null"],"enum":["asc","desc",null]}},"required":["where","order"],"additionalProperties":false}`,
	"expression":    `{"$defs":{"e":{"anyOf":[{"type":"number"},{"type":"object","properties":{"op":{"enum":["+","*"]},"l":{"$ref":"#/$defs/e"},"r":{"$ref":"#/$defs/e"}},"required":["op","l","r"],"additionalProperties":false}]}},"type":"object","properties":{"e":{"$ref":"#/$defs/e"}},"required":["e"],"additionalProperties":false}`,
	"nullable":      `{"type":"object","properties":{"a":{"type":["object","null"],"properties":{"b":{"type":"integer"}},"required":["b"],"additionalProperties":false}},"required":["a"],"additionalProperties":false}`,
	"counts":        `{"type":"array","items":{"type":"integer","minimum":0,"maximum":255},"minItems":16,"maxItems":40}`,
	"one item":      `{"type":"array","items":{"type":"string"},"minItems":1,"maxItems":1}`,
	"empty object":  `{"type":"object","properties":{},"additionalProperties":false}`,
	"empty list":    `{"type":"array","maxItems":0}`,
	"bounds apart":  `{"anyOf":[{"type":"integer","maximum":-100},{"type":"integer","minimum":100}]}`,
	"thousandths":   `{"type":"number","minimum":0.001,"maximum":0.999}`,
}

// Thousands of random walks through the grammars of all these schemas give
// valid values only.
func TestWalksAreValid(t *testing.T) {
	require.GreaterOrEqual(t, len(walkSchemas), 60)
	for name, s := range walkSchemas {
		t.Run(name, func(t *testing.T) {
			validator := newValidator(t, s)
			for seed, o := range []Options{{}, {Closed: true, Pretty: true}} {
				d, endless := gbnf.NewDeriver(mustCompile(t, s, o), uint64(seed))
				require.Empty(t, endless)
				for range 100 {
					requireValid(t, validator, d.Sentence(60))
				}
			}
		})
	}
}

func requireValid(t *testing.T, validator *jsonschema.Schema, text string) {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	require.NoError(t, err, text)
	require.NoError(t, validator.Validate(v), text)
}

// Valid documents that are made from the schema, not from the grammar, are
// accepted, written as encoders write them.
func TestValidDocumentsAreAccepted(t *testing.T) {
	for name, s := range walkSchemas {
		t.Run(name, func(t *testing.T) {
			validator := newValidator(t, s)
			root, err := decode(json.RawMessage(s))
			require.NoError(t, err)
			plain, pretty := mustCompile(t, s, Options{}), mustCompile(t, s, Options{Pretty: true})
			docs := &documents{root: root, rng: rand.New(rand.NewPCG(1, 2))}
			valid := 0
			for range 80 {
				text := docs.make(root, 0)
				v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
				require.NoError(t, err, text)
				if validator.Validate(v) != nil {
					continue // the maker is not exact
				}
				valid++
				require.True(t, plain.Accepts(text), "must accept %s", text)
				require.True(t, plain.Accepts(spaced(text)), "must accept %s", spaced(text))
				require.True(t, pretty.Accepts(text), "must accept %s", text)
				require.True(t, pretty.Accepts(indented(t, text)), "must accept %s", indented(t, text))
			}
			require.Greater(t, valid, 10, "of 80")
		})
	}
}

// spaced puts a blank behind commas and colons outside of strings, as Python
// does.
func spaced(text string) string {
	var b strings.Builder
	inside := false
	for i := range len(text) {
		b.WriteByte(text[i])
		switch {
		case text[i] == '"' && !escaped(text, i):
			inside = !inside
		case !inside && (text[i] == ',' || text[i] == ':'):
			b.WriteByte(' ')
		}
	}
	return b.String()
}

func escaped(text string, i int) bool {
	n := 0
	for i > n && text[i-n-1] == '\\' {
		n++
	}
	return n%2 == 1
}

func indented(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, json.Indent(&b, []byte(text), "", "  "))
	return b.String()
}
