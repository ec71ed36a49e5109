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
	"quern/models/schema/schematest"
)

// Thousands of random walks through the grammars of all these schemas give
// valid values only.
func TestWalksAreValid(t *testing.T) {
	require.GreaterOrEqual(t, len(schematest.Schemas), 60)
	for name, s := range schematest.Schemas {
		t.Run(name, func(t *testing.T) {
			validator := schematest.Validator(t, s)
			for seed, o := range []Options{{}, {Closed: true, Pretty: true}} {
				d, endless := gbnf.NewDeriver(mustCompile(t, s, o), uint64(seed))
				require.Empty(t, endless)
				for range 100 {
					schematest.RequireValid(t, validator, d.Sentence(60))
				}
			}
		})
	}
}

// Valid documents that are made from the schema, not from the grammar, are
// accepted, written as encoders write them.
func TestValidDocumentsAreAccepted(t *testing.T) {
	for name, s := range schematest.Schemas {
		t.Run(name, func(t *testing.T) {
			validator := schematest.Validator(t, s)
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
