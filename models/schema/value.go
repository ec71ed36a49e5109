package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Bounds on what is read from a client.
const (
	maxSchemaBytes = 1 << 20
	maxDepth       = 96
	maxNodes       = 100_000
)

type kind uint8

const (
	kindNull kind = iota
	kindBool
	kindNumber
	kindString
	kindArray
	kindObject
)

// value is a JSON value that keeps the order of keys and the digits of
// numbers.
type value struct {
	kind kind
	bool bool
	text string   // of a string; of a number as written
	keys []string // of an object, in order
	vals []*value // of an object or array
}

// get returns the member of an object, nil if v is none or lacks it.
func (v *value) get(key string) *value {
	if v == nil || v.kind != kindObject {
		return nil
	}
	for i, k := range v.keys {
		if k == key {
			return v.vals[i]
		}
	}
	return nil
}

// set adds a member; a repeated key replaces the earlier value, as in every
// JSON reader.
func (v *value) set(key string, val *value, at map[string]int) {
	if i, ok := at[key]; ok {
		v.vals[i] = val
		return
	}
	at[key] = len(v.keys)
	v.keys = append(v.keys, key)
	v.vals = append(v.vals, val)
}

type decoder struct {
	dec   *json.Decoder
	nodes int
}

func decode(raw []byte) (*value, error) {
	if len(raw) > maxSchemaBytes {
		return nil, fmt.Errorf("%d bytes exceed the limit of %d", len(raw), maxSchemaBytes)
	}
	d := decoder{dec: json.NewDecoder(bytes.NewReader(raw))}
	d.dec.UseNumber()
	v, err := d.value(0)
	if err != nil {
		return nil, err
	}
	if _, err := d.dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("data after the value")
	}
	return v, nil
}

func (d *decoder) value(depth int) (*value, error) {
	tok, err := d.dec.Token()
	if err != nil {
		return nil, err
	}
	if d.nodes++; d.nodes > maxNodes || depth > maxDepth {
		return nil, fmt.Errorf("more than %d values or %d levels", maxNodes, maxDepth)
	}
	switch t := tok.(type) {
	case json.Delim:
		if t == '[' {
			return d.array(depth)
		}
		return d.object(depth)
	case string:
		return &value{kind: kindString, text: t}, nil
	case json.Number:
		return &value{kind: kindNumber, text: t.String()}, nil
	case bool:
		return &value{kind: kindBool, bool: t}, nil
	}
	return &value{kind: kindNull}, nil
}

func (d *decoder) array(depth int) (*value, error) {
	v := &value{kind: kindArray}
	for d.dec.More() {
		item, err := d.value(depth + 1)
		if err != nil {
			return nil, err
		}
		v.vals = append(v.vals, item)
	}
	_, err := d.dec.Token()
	return v, err
}

func (d *decoder) object(depth int) (*value, error) {
	v := &value{kind: kindObject}
	at := map[string]int{}
	for d.dec.More() {
		key, err := d.dec.Token()
		if err != nil {
			return nil, err
		}
		member, err := d.value(depth + 1)
		if err != nil {
			return nil, err
		}
		v.set(key.(string), member, at)
	}
	_, err := d.dec.Token()
	return v, err
}

// equal compares JSON values; numbers by value, objects regardless of order.
func equal(a, b *value) bool {
	if a.kind != b.kind || len(a.vals) != len(b.vals) {
		return false
	}
	switch a.kind {
	case kindBool:
		return a.bool == b.bool
	case kindString:
		return a.text == b.text
	case kindNumber:
		if a.text == b.text {
			return true
		}
		x, okX := parseDecimal(a.text)
		y, okY := parseDecimal(b.text)
		return okX && okY && x.cmp(y) == 0
	case kindObject:
		for i, k := range a.keys {
			if o := b.get(k); o == nil || !equal(a.vals[i], o) {
				return false
			}
		}
	case kindArray:
		for i := range a.vals {
			if !equal(a.vals[i], b.vals[i]) {
				return false
			}
		}
	}
	return true
}

// write spells a value on one line, a space after each colon and comma.
func (v *value) write(b *strings.Builder) {
	switch v.kind {
	case kindNull:
		b.WriteString("null")
	case kindBool:
		fmt.Fprint(b, v.bool)
	case kindNumber:
		b.WriteString(v.text)
	case kindString:
		writeJSONString(b, v.text)
	case kindArray, kindObject:
		open, shut := byte('['), byte(']')
		if v.kind == kindObject {
			open, shut = '{', '}'
		}
		b.WriteByte(open)
		for i, item := range v.vals {
			if i > 0 {
				b.WriteString(", ")
			}
			if v.kind == kindObject {
				writeJSONString(b, v.keys[i])
				b.WriteString(": ")
			}
			item.write(b)
		}
		b.WriteByte(shut)
	}
}

// writeJSONString quotes s and escapes only what JSON demands.
func writeJSONString(b *strings.Builder, s string) {
	b.WriteString(quotedIn(s, '"'))
}

// writeQuotedRune spells a character between quotation marks.
func writeQuotedRune(b *strings.Builder, r, mark rune) {
	switch r {
	case mark, '\\':
		b.WriteByte('\\')
		b.WriteRune(r)
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
		if r < 0x20 || r == 0x7f {
			fmt.Fprintf(b, `\u%04x`, r)
			return
		}
		if !utf8.ValidRune(r) {
			r = utf8.RuneError
		}
		b.WriteRune(r)
	}
}
