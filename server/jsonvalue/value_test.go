package jsonvalue

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func parse(t *testing.T, doc string) Value {
	t.Helper()
	v, err := Parse([]byte(doc), 64)
	require.NoError(t, err)
	return v
}

func TestPathsNameEveryLevel(t *testing.T) {
	v := parse(t, ` {"input": [1, {"content": [ {"text": 5} ]}], "a" : null}`)
	var got string
	for i, item := range v.Field("input").Elements() {
		if i == 1 {
			for _, part := range item.Field("content").Elements() {
				got = part.Field("text").Path()
				require.Equal(t, "input[1].content[0].image", part.At("image"))
			}
		}
	}
	require.Equal(t, "input[1].content[0].text", got)
	require.Equal(t, "a", v.Field("a").Path())
	require.Equal(t, "b", v.At("b"))
	require.Equal(t, Null, v.Field("a").Kind())
	require.Equal(t, Absent, v.Field("b").Kind())
	require.True(t, v.Field("b").Empty() && v.Field("a").Empty())
}

func TestScalars(t *testing.T) {
	v := parse(t, `{"i":5,"f":5.0,"e":2e3,"x":1.5,"big":9007199254740993,"huge":1e400,"s":"a\n\ud83d\ude00","lone":"\ud83d","t":true}`)
	n, ok := v.Field("i").Int()
	require.True(t, ok)
	require.EqualValues(t, 5, n)
	n, ok = v.Field("f").Int()
	require.True(t, ok)
	require.EqualValues(t, 5, n)
	n, ok = v.Field("e").Int()
	require.True(t, ok)
	require.EqualValues(t, 2000, n)
	_, ok = v.Field("x").Int()
	require.False(t, ok)
	n, ok = v.Field("big").Int()
	require.True(t, ok)
	require.EqualValues(t, 9007199254740993, n)
	_, ok = v.Field("huge").Float()
	require.False(t, ok)
	s, ok := v.Field("s").Text()
	require.True(t, ok)
	require.Equal(t, "a\n\U0001F600", s)
	s, ok = v.Field("lone").Text()
	require.True(t, ok)
	require.Equal(t, "\uFFFD", s)
	b, ok := v.Field("t").Truth()
	require.True(t, b && ok)
	_, ok = v.Field("s").Truth()
	require.False(t, ok)
}

func TestOrderAndDuplicatesAreKept(t *testing.T) {
	v := parse(t, `{"z":1,"a":2,"z":3}`)
	var keys []string
	for k := range v.Fields() {
		keys = append(keys, k)
	}
	require.Equal(t, []string{"z", "a", "z"}, keys)
	n, _ := v.Field("z").Int()
	require.EqualValues(t, 3, n, "the last of duplicates counts")
	n, _ = v.Members(10).Get("z").Int()
	require.EqualValues(t, 3, n)
	require.Len(t, v.Members(2), 2)
}

func TestRefusals(t *testing.T) {
	for name, row := range map[string]struct{ doc, want string }{
		"empty":      {"  ", "empty"},
		"cut":        {`{"a":`, "not valid JSON"},
		"trailing":   {`{} x`, "not valid JSON"},
		"utf8":       {"{\"a\":\"\xff\"}", "UTF-8 at byte 6"},
		"deep":       {strings.Repeat("[", 65) + strings.Repeat("]", 65), "deeper than 64"},
		"deep, open": {strings.Repeat(`{"a":`, 100000), "deeper than 64"},
		"quote":      {`"\`, "not valid JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(row.doc), 64)
			require.ErrorContains(t, err, row.want)
		})
	}
	_, err := Parse([]byte(strings.Repeat("[", 64)+strings.Repeat("]", 64)), 64)
	require.NoError(t, err)
	_, err = Parse([]byte("\xef\xbb\xbf{}"), 64)
	require.NoError(t, err, "a byte order mark is passed over")
}

// FuzzParse holds the walk against encoding/json: same verdict, same content.
func FuzzParse(f *testing.F) {
	for _, s := range []string{`{"a":[1,2,{"b":null}],"c":"\u00e9\\"}`, `[]`, `{}`, ` [ "x" , true ] `, `"\ud800"`, `-1.5e3`, `{"a":1,"a":2}`, `[[[[`, "\xff"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		v, err := Parse(doc, 100)
		if err != nil {
			return
		}
		var want any
		dec := json.NewDecoder(bytes.NewReader(v.Raw()))
		dec.UseNumber()
		require.NoError(t, dec.Decode(&want))
		require.Equal(t, want, rebuild(v))
	})
}

func rebuild(v Value) any {
	switch v.Kind() {
	case Null:
		return nil
	case Bool:
		b, _ := v.Truth()
		return b
	case Number:
		return json.Number(v.Raw())
	case String:
		s, _ := v.Text()
		return s
	case Array:
		out := []any{}
		for _, e := range v.Elements() {
			out = append(out, rebuild(e))
		}
		return out
	default:
		out := map[string]any{}
		for k, f := range v.Fields() {
			out[k] = rebuild(f)
		}
		return out
	}
}
