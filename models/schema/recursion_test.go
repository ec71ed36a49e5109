package schema

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"quern/models/schema/gbnf"
	"quern/models/schema/schematest"
)

const (
	listSchema = `{"$ref":"#/$defs/n","$defs":{"n":{"type":"object","properties":{"v":{"type":"integer"},"next":{"anyOf":[{"$ref":"#/$defs/n"},{"type":"null"}]}},"required":["v","next"],"additionalProperties":false}}}`
	treeSchema = `{"type":"object","properties":{"name":{"type":"string"},"kids":{"type":"array","items":{"$ref":"#"}}},"required":["name","kids"],"additionalProperties":false}`
	exprSchema = `{"$defs":{"e":{"anyOf":[{"type":"integer"},{"$ref":"#/$defs/sum"},{"type":"object","properties":{"not":{"$ref":"#/$defs/e"}},"required":["not"],"additionalProperties":false}]},"sum":{"type":"object","properties":{"l":{"$ref":"#/$defs/e"},"r":{"$ref":"#/$defs/e"}},"required":["l","r"],"additionalProperties":false}},"$ref":"#/$defs/e"}`
)

// nest puts a value n times into another.
func nest(outer, inner string, n int) string {
	for range n {
		inner = fmt.Sprintf(outer, inner)
	}
	return inner
}

func TestRecursionIsBounded(t *testing.T) {
	for _, c := range []struct{ schema, outer, inner string }{
		{listSchema, `{"v":1,"next":%s}`, `{"v":1,"next":null}`},
		{treeSchema, `{"name":"a","kids":[%s]}`, `{"name":"b","kids":[]}`},
		{exprSchema, `{"not":%s}`, `1`},
	} {
		free := mustCompile(t, c.schema, Options{})
		held := mustCompile(t, c.schema, Options{Recursion: 4})
		for n := range 5 {
			require.True(t, held.Accepts(nest(c.outer, c.inner, n)), "%d times: %s", n, c.schema)
		}
		require.False(t, held.Accepts(nest(c.outer, c.inner, 6)), c.schema)
		require.True(t, free.Accepts(nest(c.outer, c.inner, 40)), c.schema)
		validator := schematest.Validator(t, c.schema)
		d, endless := gbnf.NewDeriver(held, 1)
		require.Empty(t, endless)
		for range 100 {
			schematest.RequireValid(t, validator, d.Sentence(1<<20)) // no need to be cut short
		}
	}
}

// A bound changes nothing for schemas without recursion, nor what is refused.
func TestRecursionBoundOfOtherSchemas(t *testing.T) {
	for name, s := range schematest.Schemas {
		if strings.Contains(s, `"#`) {
			continue
		}
		free, err := Compile(json.RawMessage(s), Options{})
		require.NoError(t, err)
		held, err := Compile(json.RawMessage(s), Options{Recursion: 16})
		require.NoError(t, err)
		require.Len(t, held.Rules, len(free.Rules), name)
	}
	for _, s := range []string{
		`{"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]}`,
		`{"type":"array","items":{"$ref":"#"},"minItems":1}`,
	} {
		for _, levels := range []int{0, 16} {
			_, err := Compile(json.RawMessage(s), Options{Recursion: levels})
			require.ErrorContains(t, err, "requires itself without end", s)
		}
	}
}

// A schema that grows too large with its levels has no bound.
func TestRecursionOfLargeSchemas(t *testing.T) {
	var kinds []string
	for i := range 100 {
		kinds = append(kinds, fmt.Sprintf(`{"type":"object","properties":{"kind":{"const":"k%d"},"of":{"type":"array","items":{"$ref":"#"}},"t%d":{"type":"string","pattern":"^[a-f]{1,9}-%d$"}},"required":["kind","of"]}`, i, i, i))
	}
	s := `{"anyOf":[` + strings.Join(kinds, ",") + `]}`
	g := mustCompile(t, s, Options{Recursion: 16})
	require.True(t, g.Accepts(nest(`{"kind":"k7","of":[%s]}`, `{"kind":"k8","of":[]}`, 40)))
}
