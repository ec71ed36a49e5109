// Package schematest has schemas, and the validator, that tests of grammars go
// by. Only tests import it.
package schematest

import (
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
)

// Validator compiles a schema, formats being checked.
func Validator(t testing.TB, schema string) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(schema))
	require.NoError(t, err)
	jc := jsonschema.NewCompiler()
	jc.AssertFormat()
	switch {
	case strings.Contains(schema, `"exclusiveMinimum":true`):
		jc.DefaultDraft(jsonschema.Draft4)
	case strings.Contains(schema, `"additionalItems"`):
		jc.DefaultDraft(jsonschema.Draft7)
	}
	require.NoError(t, jc.AddResource("file:///s.json", doc))
	s, err := jc.Compile("file:///s.json")
	require.NoError(t, err)
	return s
}

// RequireValid demands that a JSON text fits.
func RequireValid(t testing.TB, validator *jsonschema.Schema, text string) {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	require.NoError(t, err, text)
	require.NoError(t, validator.Validate(v), text)
}

// Parameters is a schema as that of a tool's parameters, which are an object:
// any other value becomes one of its members.
func Parameters(schema string) string {
	if strings.HasPrefix(schema, `{"type":"object"`) || strings.Contains(schema, `"properties"`) {
		return schema
	}
	return `{"type":"object","properties":{"v":` + schema + `},"required":["v"],"additionalProperties":false}`
}
