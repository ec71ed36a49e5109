package dialect

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ardanlabs/jinja"
)

// fToJSON writes a value as Hugging Face's tojson does: json.dumps with
// ensure_ascii off, keys in their order, nothing escaped for HTML.
func fToJSON(a args) (Value, error) {
	w := jsonWriter{r: a.r, item: ", ", colon: ": ", ascii: a.bool(1, "ensure_ascii"), sorted: a.bool(4, "sort_keys")}
	if v, ok := a.get(2, "indent"); ok && !v.IsNone() && !v.IsUndefined() {
		w.item = ","
		if v.IsString() {
			w.indent, w.lines = v.AsString(), true
		} else {
			n := a.int(2, "indent", 0)
			if n > 64 {
				return empty, fmt.Errorf("tojson with an indent of %d", n)
			}
			w.indent, w.lines = strings.Repeat(" ", int(max(n, 0))), true
		}
	}
	if v, ok := a.get(3, "separators"); ok && !v.IsNone() {
		parts := items(v)
		if len(parts) != 2 {
			return empty, errors.New("tojson: separators must be two strings")
		}
		w.item, w.colon = a.r.str(parts[0]), a.r.str(parts[1])
	}
	if err := w.value(a.pos[0], 0); err != nil {
		return empty, err
	}
	return str(w.b.String()), nil
}

type jsonWriter struct {
	r             *run
	b             strings.Builder
	item, colon   string
	indent        string
	lines         bool // one item a line
	ascii, sorted bool
}

func (w *jsonWriter) value(v Value, depth int) error {
	switch {
	case v.IsString():
		w.string(v.AsString())
	case v.IsList():
		return w.array(v.AsList().Items, depth)
	case v.IsDict():
		return w.object(v.AsDict(), depth)
	case v.IsBool():
		w.b.WriteString(strconv.FormatBool(v.AsBool()))
	case v.IsInt():
		w.b.WriteString(strconv.FormatInt(v.AsInt(), 10))
	case v.IsFloat():
		w.b.WriteString(w.r.float(v.AsFloat()))
	case v.IsCallable():
		return errors.New("tojson: a function has no JSON form")
	default:
		w.b.WriteString("null")
	}
	return nil
}

func (w *jsonWriter) array(vs []Value, depth int) error {
	w.b.WriteByte('[')
	for i, v := range vs {
		w.separate(i, depth+1)
		if err := w.value(v, depth+1); err != nil {
			return err
		}
	}
	w.close(len(vs), depth, ']')
	return nil
}

func (w *jsonWriter) object(d *jinja.Dict, depth int) error {
	keys := d.Keys
	if w.sorted {
		keys = slices.Sorted(slices.Values(keys))
	}
	w.b.WriteByte('{')
	for i, k := range keys {
		w.separate(i, depth+1)
		w.string(k)
		w.b.WriteString(w.colon)
		if err := w.value(d.Data[k], depth+1); err != nil {
			return err
		}
	}
	w.close(len(keys), depth, '}')
	return nil
}

func (w *jsonWriter) separate(i, depth int) {
	if i > 0 {
		w.b.WriteString(w.item)
	}
	w.newline(depth)
}

func (w *jsonWriter) close(n, depth int, bracket byte) {
	if n > 0 {
		w.newline(depth)
	}
	w.b.WriteByte(bracket)
}

func (w *jsonWriter) newline(depth int) {
	if w.lines {
		w.b.WriteByte('\n')
		for range depth {
			w.b.WriteString(w.indent)
		}
	}
}

func (w *jsonWriter) string(s string) {
	if w.r.env.InJSON == nil {
		writeJSONString(&w.b, s, w.ascii)
		return
	}
	var b strings.Builder
	writeJSONString(&b, s, w.ascii)
	w.b.WriteString(w.r.env.InJSON(b.String()))
}

// QuoteJSON writes s as a JSON string in the way of tojson.
func QuoteJSON(s string) string {
	var b strings.Builder
	writeJSONString(&b, s, false)
	return b.String()
}

// writeJSONString escapes what json.dumps escapes and nothing else.
func writeJSONString(b *strings.Builder, s string, ascii bool) {
	b.WriteByte('"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && (c < utf8.RuneSelf || !ascii) {
			i++
			continue
		}
		b.WriteString(s[from:i])
		n := 1
		switch c {
		case '"', '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case '\n':
			b.WriteString(`\n`)
		case '\r':
			b.WriteString(`\r`)
		case '\t':
			b.WriteString(`\t`)
		case '\b':
			b.WriteString(`\b`)
		case '\f':
			b.WriteString(`\f`)
		default:
			var r rune
			r, n = utf8.DecodeRuneInString(s[i:])
			if r >= 0x10000 {
				r -= 0x10000
				writeEscape(b, 0xd800+r>>10)
				r = 0xdc00 + r&0x3ff
			}
			writeEscape(b, r)
		}
		i += n
		from = i
	}
	b.WriteString(s[from:])
	b.WriteByte('"')
}

func writeEscape(b *strings.Builder, r rune) {
	const hex = "0123456789abcdef"
	b.WriteString(`\u`)
	for shift := 12; shift >= 0; shift -= 4 {
		b.WriteByte(hex[r>>shift&15])
	}
}

// ToJSON writes a value as tojson does.
func ToJSON(v Value, env Env) (string, error) {
	out, err := fToJSON(args{r: &run{env: env}, pos: []Value{v}})
	if err != nil {
		return "", err
	}
	return out.AsString(), nil
}
