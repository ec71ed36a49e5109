package toolcall

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTranslate(t *testing.T) {
	python, gemma := &Block{NameEnd: "("}, &Block{NameEnd: "{", Quote: "<q>"}
	for _, c := range []struct {
		b        *Block
		in, want string // "" where it is no literal
	}{
		{python, "", "{}"},
		{python, "a=1, b = 'x',", `{"a":1,"b":"x"}`},
		{python, `a='it\'s', b="\x41\u00e9\U0001F6A2\ud83d\udea2\q\0"`, `{"a":"it's","b":"Aé🚢🚢\\q\u0000"}`},
		{python, "a='one\ntwo\\\nthree'", `{"a":"one\ntwothree"}`},
		{python, "a={'x': None, 'y': [True, -1.5e3, ], }", `{"a":{"x":null,"y":[true,-1.5e3]}}`},
		{python, "a={}, b=[], a=9007199254740993", `{"a":{},"b":[],"a":9007199254740993}`},
		{python, "'x'", ""},
		{python, "a=x", ""},
		{python, "a=1e999", ""},
		{python, "a=NaN", ""},
		{python, "a=1 b=2", ""},
		{python, "a=f'x'", ""},
		{python, "a=", ""},
		{python, ",a=1", ""},
		{gemma, "@a:<q>\\n'<q>,\"b\":\"\\n\",c:word", `{"@a":"\\n'","b":"\n","c":"word"}`},
		{gemma, "a:two words", ""},
	} {
		got, ok, whole := translate([]byte(c.in), c.b)
		require.Equal(t, c.want != "", ok && whole, c.in)
		if c.want != "" {
			require.Equal(t, c.want, string(got)+"}", c.in)
			require.True(t, json.Valid([]byte(c.want)))
		}
	}
}
