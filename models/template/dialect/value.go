package dialect

import (
	"math"
	"strconv"
	"strings"
	"unicode"

	"github.com/ardanlabs/jinja"
)

// kindName is what Python calls the type of v.
func kindName(v Value) string {
	switch {
	case v.IsUndefined():
		return "undefined"
	case v.IsNone():
		return "None"
	case v.IsBool():
		return "bool"
	case v.IsInt():
		return "int"
	case v.IsFloat():
		return "float"
	case v.IsString():
		return "str"
	case v.IsList():
		return "list"
	case v.IsDict():
		return "dict"
	}
	return "function"
}

// str is Python's str: what a template prints.
func (r *run) str(v Value) string {
	switch {
	case v.IsString():
		return v.AsString()
	case v.IsUndefined():
		return ""
	case v.IsInt():
		return strconv.FormatInt(v.AsInt(), 10)
	}
	var b strings.Builder
	r.repr(&b, v)
	return b.String()
}

// repr is Python's repr.
func (r *run) repr(b *strings.Builder, v Value) {
	switch {
	case v.IsUndefined():
		b.WriteString("Undefined")
	case v.IsNone():
		b.WriteString("None")
	case v.IsBool():
		if v.AsBool() {
			b.WriteString("True")
		} else {
			b.WriteString("False")
		}
	case v.IsInt():
		b.WriteString(strconv.FormatInt(v.AsInt(), 10))
	case v.IsFloat():
		b.WriteString(r.float(v.AsFloat()))
	case v.IsString():
		reprString(b, v.AsString())
	case v.IsList():
		b.WriteByte('[')
		for i, item := range v.AsList().Items {
			if i > 0 {
				b.WriteString(", ")
			}
			r.repr(b, item)
		}
		b.WriteByte(']')
	case v.IsDict():
		b.WriteByte('{')
		d := v.AsDict()
		for i, k := range d.Keys {
			if i > 0 {
				b.WriteString(", ")
			}
			reprString(b, k)
			b.WriteString(": ")
			r.repr(b, d.Data[k])
		}
		b.WriteByte('}')
	default:
		b.WriteString("<function>")
	}
}

func reprString(b *strings.Builder, s string) {
	quote := byte('\'')
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		quote = '"'
	}
	b.WriteByte(quote)
	for _, c := range s {
		switch {
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\r':
			b.WriteString(`\r`)
		case c == '\t':
			b.WriteString(`\t`)
		case c == '\\' || c == rune(quote):
			b.WriteByte('\\')
			b.WriteRune(c)
		case c < ' ' || c == 0x7f:
			b.WriteString(`\x` + string("0123456789abcdef"[c>>4]) + string("0123456789abcdef"[c&15]))
		default:
			b.WriteRune(c)
		}
	}
	b.WriteByte(quote)
}

// float writes a number as its source spelled it, else as Python does.
func (r *run) float(f float64) string {
	if s, ok := r.env.Spelling.of(f); ok {
		return s
	}
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// number gives the value of a number, a bool counted as one.
func number(v Value) (float64, bool) {
	switch {
	case v.IsFloat():
		return v.AsFloat(), true
	case v.IsInt():
		return float64(v.AsInt()), true
	case v.IsBool():
		if v.AsBool() {
			return 1, true
		}
		return 0, true
	}
	return 0, false
}

func integer(v Value) (int64, bool) {
	switch {
	case v.IsInt():
		return v.AsInt(), true
	case v.IsBool():
		f, _ := number(v)
		return int64(f), true
	}
	return 0, false
}

// equal is Python's ==.
func equal(a, b Value) bool {
	x, okX := number(a)
	y, okY := number(b)
	if okX && okY {
		return x == y
	}
	return a.Equals(b)
}

// compare orders numbers and strings; others stay as they stand.
func compare(a, b Value) int {
	x, okX := number(a)
	y, okY := number(b)
	switch {
	case okX && okY && x < y:
		return -1
	case okX && okY && x > y:
		return 1
	case a.IsString() && b.IsString():
		return strings.Compare(a.AsString(), b.AsString())
	}
	return 0
}

func contains(container, item Value) bool {
	switch {
	case container.IsList():
		for _, v := range container.AsList().Items {
			if equal(v, item) {
				return true
			}
		}
	case container.IsDict() && item.IsString():
		return container.AsDict().Has(item.AsString())
	case container.IsString() && item.IsString():
		return strings.Contains(container.AsString(), item.AsString())
	}
	return false
}

// items lists what iterating over v gives.
func items(v Value) []Value {
	switch {
	case v.IsList():
		return v.AsList().Items
	case v.IsDict():
		d := v.AsDict()
		keys := make([]Value, len(d.Keys))
		for i, k := range d.Keys {
			keys[i] = jinja.NewString(k)
		}
		return keys
	case v.IsString():
		var chars []Value
		for _, c := range v.AsString() {
			chars = append(chars, jinja.NewString(string(c)))
		}
		return chars
	}
	return nil
}

// attribute follows a dotted path of keys and indexes.
func attribute(v Value, path string) Value {
	for key := range strings.SplitSeq(path, ".") {
		switch {
		case v.IsDict():
			v, _ = v.AsDict().Get(key)
		case v.IsList():
			n, err := strconv.Atoi(key)
			if l := v.AsList(); err == nil && n >= 0 && n < l.Len() {
				v = l.Get(n)
				continue
			}
			return jinja.Undefined()
		default:
			return jinja.Undefined()
		}
	}
	return v
}

func list(vs []Value) Value { return jinja.NewList(vs) }

func str(s string) Value { return jinja.NewString(s) }

// isSpace is what Python strips and splits at.
func isSpace(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }
