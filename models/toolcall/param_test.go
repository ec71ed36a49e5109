package toolcall

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParamValues(t *testing.T) {
	tool := &tool{parameters: []byte(`{"properties":{
		"text":{"type":"string"},"maybe":{"type":["string","null"]},"n":{"type":"integer"},"flag":{"type":"boolean"},
		"either":{"anyOf":[{"type":"string"},{"type":"array"}]},"free":{},
		"list":{"type":"array"},"object":{"type":"object"}}}`)}
	require.True(t, tool.param([]byte("text")).Text)
	require.False(t, tool.param([]byte("maybe")).Text)
	for _, c := range []struct {
		name, raw string
		asJSON    bool
		want      string
	}{
		{"maybe", "null", false, "null"},
		{"maybe", "None", false, "null"},
		{"maybe", "42", false, `"42"`},
		{"n", " 42\n", false, "42"},
		{"n", "007", false, `"007"`},
		{"n", "\"7\"", false, `"7"`},
		{"flag", "True", false, "true"},
		{"flag", "yes", false, `"yes"`},
		{"either", `["a"]`, false, `["a"]`},
		{"either", `{"a":1}`, false, `"{\"a\":1}"`},
		{"free", "12.50", false, "12.50"},
		{"free", "NaN", false, `"NaN"`},
		{"free", "", false, `""`},
		{"unknown", "blue\n", false, `"blue\n"`},
		{"maybe", "42", true, "42"},
		{"list", "\n['a', \"b'\", True, None, {'c': [1.5]}]\n", false, `["a","b'",true,null,{"c":[1.5]}]`},
		{"list", "['a'", false, `"['a'"`},
		{"list", "['a'] and more", false, `"['a'] and more"`},
		{"list", "[f('a')]", false, `"[f('a')]"`},
		{"list", "{'a': 1}", false, `"{'a': 1}"`},
		{"object", "{'a': '\u00e9'}", false, "{\"a\":\"\u00e9\"}"},
		{"either", "['a']", false, `"['a']"`},
		{"either", "['a']", true, `["a"]`},
		{"free", "['a']", false, `"['a']"`},
	} {
		require.Equal(t, c.want, string(appendValue(nil, []byte(c.raw), tool.param([]byte(c.name)), c.asJSON)), c)
	}
	tool.params, tool.parameters = nil, []byte("[")
	require.False(t, tool.param([]byte("text")).Text)
	require.True(t, tool.param([]byte("text")).Fits([]byte("1")))
}
