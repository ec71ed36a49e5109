package dialect

import (
	"encoding/json"
	"strings"
	"testing"
)

// FuzzCompile runs foreign templates: they may fail, but never panic, hang or
// show names of the compiler.
func FuzzCompile(f *testing.F) {
	for _, c := range reference {
		f.Add(c.src)
	}
	f.Add("{{ x.y['z'][0:1]|join(',') }}{% for a, b in x if b %}{% endfor %}")
	f.Fuzz(func(t *testing.T, src string) {
		p, err := Compile(src)
		if err == nil {
			v, _ := FromJSON(`{"x": [{"a": "b"}], "m": "text", "d": {"k": 1.5}}`, &Spelling{}, nil)
			_, err = p.Render(v.AsDict().Data, Env{})
		}
		if err != nil && strings.Contains(err.Error(), prefix) && !strings.Contains(src, prefix) {
			t.Fatalf("%q: %v", src, err)
		}
	})
}

// FuzzFromJSON reads what encoding/json reads, and what tojson writes of it
// means the same.
func FuzzFromJSON(f *testing.F) {
	f.Add(`{"a": [1, 2.50, -0, 1e9, "x\u00e9\n\"", null, true, false], "b": {"c": {}}}`)
	f.Add(`[[], {"": ""}]`)
	f.Add(`"\ud83d\ude00"`)
	f.Fuzz(func(t *testing.T, src string) {
		s := &Spelling{}
		v, err := FromJSON(src, s, nil)
		if (err == nil) != json.Valid([]byte(src)) {
			t.Fatalf("%q: %v", src, err)
		}
		if err != nil {
			return
		}
		out, err := ToJSON(v, Env{Spelling: s})
		if err != nil {
			t.Fatal(err)
		}
		again, err := FromJSON(out, &Spelling{}, nil)
		if err != nil {
			t.Fatalf("%q gives %q: %v", src, out, err)
		}
		if !v.Equals(again) && !strings.ContainsAny(src, ".eE") {
			t.Fatalf("%q gives %q", src, out)
		}
	})
}
