package schema

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// documents makes values of a schema in the order of its properties. It knows
// nothing of grammars, and is not exact: what it makes is still to be validated.
type documents struct {
	root *value
	rng  *rand.Rand
}

// tame is the depth from which on values are kept small, so that recursion ends.
const tame = 5

// examples are strings for formats and patterns, which a maker can't invent.
var examples = map[string][]string{
	"date": {"2024-02-29", "1999-12-31"}, "time": {"23:59:59Z", "00:00:00.25+02:00"}, "date-time": {"2024-02-29T12:30:00Z", "1999-01-01T00:00:00-05:00"},
	"uuid": {"123e4567-e89b-12d3-a456-426614174000"}, "email": {"ann.b@example.org", "x+y@mail.example.com"}, "ipv4": {"0.0.0.0", "192.168.1.255"},
	"uri": {"https://example.org", "http://example.org:8080/a/b?c=d&e#f"}, "^[A-Z]{2}-[0-9]{3}$": {"AB-123", "ZZ-000"}, "b+": {"b", "abba", "\"b\n"},
	"^https?://": {"http://", "https://x y"}, `\.go$`: {".go", "a/b_test.go"},
}

var letters = []rune("abz09 _-/.\"\\\n\täß日😀{}[]:,<>")

func (d *documents) make(s *value, depth int) string {
	if s.kind == kindBool {
		return `{"free":[1,"x"]}`
	}
	if ref := s.get("$ref"); ref != nil {
		return d.make(d.target(ref.text), depth+1)
	}
	if c := s.get("const"); c != nil {
		return written(c)
	}
	if e := s.get("enum"); e != nil {
		return written(pickOf(d, e.vals))
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		if list := s.get(key); list != nil {
			return d.make(d.branch(list.vals, depth), depth+1)
		}
	}
	switch d.kindOf(s, depth) {
	case "object":
		return d.object(s, depth)
	case "array":
		return d.array(s, depth)
	case "string":
		return d.string(s)
	case "integer":
		return strconv.Itoa(d.integer(s))
	case "number":
		return d.number(s)
	case "boolean":
		return pickOf(d, []string{"true", "false"})
	}
	return "null"
}

func pickOf[T any](d *documents, list []T) T { return list[d.rng.IntN(len(list))] }

// target follows a reference within the document.
func (d *documents) target(ref string) *value {
	at := d.root
	for _, key := range strings.Split(strings.TrimPrefix(ref, "#"), "/")[1:] {
		at = at.get(key)
	}
	return at
}

// branch chooses an alternative, deep down one that refers to nothing.
func (d *documents) branch(list []*value, depth int) *value {
	if depth > tame {
		for _, s := range list {
			if t := s.get("type"); t != nil && t.text != "object" && t.text != "array" {
				return s
			}
		}
	}
	return pickOf(d, list)
}

func (d *documents) kindOf(s *value, depth int) string {
	t := s.get("type")
	switch {
	case t != nil && t.kind == kindArray:
		return pickOf(d, t.vals).text
	case t != nil:
		return t.text
	case s.get("properties") != nil:
		return "object"
	case depth > tame:
		return "null"
	}
	return pickOf(d, []string{"object", "array", "string", "integer", "number", "boolean", "null"})
}

func (d *documents) object(s *value, depth int) string {
	var members []string
	props, required := s.get("properties"), s.get("required")
	if props == nil {
		props = &value{kind: kindObject}
	}
	for i, key := range props.keys {
		needed := required != nil && slices.ContainsFunc(required.vals, func(v *value) bool { return v.text == key })
		if needed || depth <= tame && d.rng.IntN(2) == 0 {
			members = append(members, quoteJSON(key)+":"+d.make(props.vals[i], depth+1))
		}
	}
	more := s.get("additionalProperties")
	if depth <= tame && (more == nil || more.kind != kindBool || more.bool) {
		if more == nil {
			more = &value{kind: kindObject}
		}
		for i := range d.rng.IntN(3) {
			members = append(members, fmt.Sprintf(`"extra%d":%s`, i, d.make(more, depth+1)))
		}
	}
	return "{" + strings.Join(members, ",") + "}"
}

func (d *documents) array(s *value, depth int) string {
	least, most := d.bound(s, "minItems", 0), d.bound(s, "maxItems", -1)
	prefix, items := s.get("prefixItems"), s.get("items")
	n := least
	if room := 3; depth <= tame {
		if most >= 0 {
			room = most - least
		}
		n += d.rng.IntN(room + 1)
	}
	if prefix != nil && items != nil && items.kind == kindBool {
		n = min(n, len(prefix.vals))
	}
	var out []string
	for i := range n {
		of := items
		if prefix != nil && i < len(prefix.vals) {
			of = prefix.vals[i]
		}
		if of == nil {
			of = &value{kind: kindObject}
		}
		out = append(out, d.make(of, depth+1))
	}
	return "[" + strings.Join(out, ",") + "]"
}

func (d *documents) string(s *value) string {
	for _, key := range []string{"format", "pattern"} {
		if v := s.get(key); v != nil {
			return quoteJSON(pickOf(d, examples[v.text]))
		}
	}
	least := d.bound(s, "minLength", 0)
	most := min(d.bound(s, "maxLength", least+12), least+400)
	text := make([]rune, least+d.rng.IntN(most-least+1))
	for i := range text {
		text[i] = pickOf(d, letters)
	}
	return quoteJSON(string(text))
}

func (d *documents) integer(s *value) int {
	least := d.bound(s, "minimum", d.bound(s, "exclusiveMinimum", -1_000_001)+1)
	most := d.bound(s, "maximum", d.bound(s, "exclusiveMaximum", max(least, 0)+1_000_001)-1)
	if s.get("minimum") == nil && s.get("exclusiveMinimum") == nil && least > most {
		least = most - 1000
	}
	n := least + d.rng.IntN(most-least+1)
	if of := d.bound(s, "multipleOf", 1); of > 1 {
		n -= n % of
	}
	return n
}

// number makes numbers of up to six digits, all forms that encoders write.
func (d *documents) number(s *value) string {
	least, most := d.float(s, "minimum", -5000), d.float(s, "maximum", 5000)
	least = d.float(s, "exclusiveMinimum", least)
	n := least + d.rng.Float64()*(most-least)
	switch d.rng.IntN(3) {
	case 0:
		return strconv.FormatFloat(n, 'f', 0, 64)
	case 1:
		return strconv.FormatFloat(n, 'f', 2, 64)
	}
	return strconv.FormatFloat(n, 'f', 3, 64)
}

func (d *documents) bound(s *value, key string, other int) int {
	if v := s.get(key); v != nil {
		n, _ := strconv.Atoi(v.text)
		return n
	}
	return other
}

func (d *documents) float(s *value, key string, other float64) float64 {
	if v := s.get(key); v != nil {
		f, _ := strconv.ParseFloat(v.text, 64)
		return f
	}
	return other
}

// quoteJSON is a string as encoding/json writes it, HTML left alone.
func quoteJSON(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(s) != nil {
		return `""`
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func written(v *value) string {
	var b strings.Builder
	v.write(&b)
	return b.String()
}
