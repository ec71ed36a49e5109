package dialect

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"github.com/ardanlabs/jinja"
)

// maxSpellings bounds the spellings of one number that are told apart.
const maxSpellings = 32

// Spelling remembers how numbers were written in JSON, so that they come out
// as they went in: 1.0 stays 1.0 and 1e3 stays 1e3. The template language has
// plain floats, so each spelling gets a float of its own: where two spellings
// mean the same number, the second is the next float up.
type Spelling struct {
	byValue map[float64]string
	byText  map[string]float64
}

func (s *Spelling) of(f float64) (string, bool) {
	if s == nil {
		return "", false
	}
	text, ok := s.byValue[f]
	return text, ok
}

func (s *Spelling) value(text string) Value {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && text != "-0" {
		return jinja.NewInt(n)
	}
	if f, ok := s.byText[text]; ok {
		return jinja.NewFloat(f)
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil { // out of range
		f = math.Copysign(math.MaxFloat64, f)
	}
	step := math.Inf(1)
	if f == math.MaxFloat64 {
		step = math.Inf(-1)
	}
	for tries := 0; ; tries++ {
		if _, taken := s.byValue[f]; !taken {
			break
		}
		if tries == maxSpellings {
			return jinja.NewFloat(f)
		}
		f = math.Nextafter(f, step)
	}
	if s.byText == nil {
		s.byText, s.byValue = map[string]float64{}, map[float64]string{}
	}
	s.byText[text], s.byValue[f] = f, text
	return jinja.NewFloat(f)
}

// FromJSON reads JSON text into a value with the order of keys kept. Every
// string, keys included, passes through text. Of a key that occurs twice the
// last value counts, at the first place, as in Python.
func FromJSON(src string, s *Spelling, text func(string) string) (Value, error) {
	if !json.Valid([]byte(src)) {
		var any json.RawMessage
		return jinja.None(), json.Unmarshal([]byte(src), &any) // for its message
	}
	d := decoder{src: src, s: s, text: text}
	v := d.value()
	if d.err != nil {
		return jinja.None(), d.err
	}
	return v, nil
}

// decoder reads JSON that is known to be valid.
type decoder struct {
	src  string
	pos  int
	s    *Spelling
	text func(string) string
	err  error
}

func (d *decoder) space() {
	for d.pos < len(d.src) {
		switch d.src[d.pos] {
		case ' ', '\n', '\r', '\t':
			d.pos++
		default:
			return
		}
	}
}

// take skips c if it comes next.
func (d *decoder) take(c byte) bool {
	d.space()
	if d.pos < len(d.src) && d.src[d.pos] == c {
		d.pos++
		return true
	}
	return false
}

func (d *decoder) value() Value {
	d.space()
	switch c := d.src[d.pos]; c {
	case '{':
		return d.object()
	case '[':
		return d.array()
	case '"':
		return jinja.NewString(d.string())
	case 't':
		d.pos += len("true")
		return jinja.NewBool(true)
	case 'f':
		d.pos += len("false")
		return jinja.NewBool(false)
	case 'n':
		d.pos += len("null")
		return jinja.None()
	}
	from := d.pos
	for d.pos < len(d.src) {
		c := d.src[d.pos]
		if (c < '0' || c > '9') && c != '-' && c != '+' && c != '.' && c != 'e' && c != 'E' {
			break
		}
		d.pos++
	}
	return d.s.value(d.src[from:d.pos])
}

func (d *decoder) object() Value {
	v := jinja.NewDict()
	dict := v.AsDict()
	d.take('{')
	for !d.take('}') {
		d.space()
		key := d.string()
		d.take(':')
		dict.Set(key, d.value())
		d.take(',')
	}
	return v
}

func (d *decoder) array() Value {
	var vs []Value
	d.take('[')
	for !d.take(']') {
		vs = append(vs, d.value())
		d.take(',')
	}
	return jinja.NewList(vs)
}

func (d *decoder) string() string {
	from, plain := d.pos, true
	for d.pos++; d.src[d.pos] != '"'; d.pos++ {
		if d.src[d.pos] == '\\' {
			plain = false
			d.pos++
		}
	}
	d.pos++
	s := d.src[from+1 : d.pos-1]
	if !plain {
		if err := json.Unmarshal([]byte(d.src[from:d.pos]), &s); err != nil {
			d.err = fmt.Errorf("string at byte %d: %w", from, err)
		}
	}
	if d.text != nil {
		s = d.text(s)
	}
	return s
}
