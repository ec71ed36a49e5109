package jsonvalue

import (
	"bytes"
	"encoding/json"
	"iter"
	"slices"
	"strconv"
	"strings"
)

// Kind is the type of a value. Absent is that of a field that is not there.
type Kind int

// The kinds of values.
const (
	Absent Kind = iota
	Null
	Bool
	Number
	String
	Array
	Object
)

func (k Kind) String() string {
	return [...]string{"nothing", "null", "a boolean", "a number", "a string", "an array", "an object"}[k]
}

// Value is one value of a parsed document. The zero Value is absent.
type Value struct {
	raw    []byte
	parent *Value // nil at the root
	key    []byte // the name within an object, mostly a part of the document
	index  int    // the place within an array, -1 within an object
}

// Kind tells the type by the first byte, which Parse has checked.
func (v Value) Kind() Kind {
	if len(v.raw) == 0 {
		return Absent
	}
	switch v.raw[0] {
	case 'n':
		return Null
	case 't', 'f':
		return Bool
	case '"':
		return String
	case '[':
		return Array
	case '{':
		return Object
	default:
		return Number
	}
}

// Empty says that the value is absent or null: nothing was asked for.
func (v Value) Empty() bool { return v.Kind() <= Null }

// Raw returns the bytes of the value as they came.
func (v Value) Raw() json.RawMessage { return json.RawMessage(v.raw) }

// Path names the value within its document: input[2].content[0].text.
func (v Value) Path() string {
	var b strings.Builder
	b.Grow(32) // most paths are shorter
	v.writePath(&b)
	return b.String()
}

func (v Value) writePath(b *strings.Builder) {
	if v.parent == nil {
		b.Write(v.key)
		return
	}
	v.parent.writePath(b)
	if v.index >= 0 {
		b.WriteString("[" + strconv.Itoa(v.index) + "]")
		return
	}
	if b.Len() > 0 {
		b.WriteByte('.')
	}
	b.Write(v.key)
}

// At returns the path of a field of the value, whether it is there or not.
func (v Value) At(field string) string {
	if p := v.Path(); p != "" {
		return p + "." + field
	}
	return field
}

// words are texts that stand in every request, some hundred times in a long one.
// They are not copied again.
var words = func() map[string]string {
	m := map[string]string{}
	for _, w := range []string{
		"function", "message", "input_text", "output_text", "text", "user", "assistant", "system", "developer", "tool",
		"function_call", "function_call_output", "reasoning", "summary_text", "completed",
	} {
		m[w] = w
	}
	return m
}()

// Text returns the value of a string. A lone surrogate becomes U+FFFD.
func (v Value) Text() (string, bool) {
	if v.Kind() != String {
		return "", false
	}
	body := v.raw[1 : len(v.raw)-1]
	if word, ok := words[string(body)]; ok {
		return word, true
	}
	if bytes.IndexByte(body, '\\') < 0 {
		return string(body), true
	}
	return unescape(body), true
}

// Truth returns the value of a boolean.
func (v Value) Truth() (value, ok bool) {
	return v.Kind() == Bool && v.raw[0] == 't', v.Kind() == Bool
}

// Float returns the value of a number that a float64 can hold.
func (v Value) Float() (float64, bool) {
	if v.Kind() != Number {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(v.raw), 64)
	return f, err == nil
}

// Int returns the value of a number that is an int64; 5.0 and 5e0 are 5.
func (v Value) Int() (int64, bool) {
	if v.Kind() != Number {
		return 0, false
	}
	if n, err := strconv.ParseInt(string(v.raw), 10, 64); err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(string(v.raw), 64)
	if err != nil || f != float64(int64(f)) || f > 1<<53 || f < -(1<<53) {
		return 0, false
	}
	return int64(f), true
}

// Elements goes through an array; it is empty for any other value.
func (v Value) Elements() iter.Seq2[int, Value] {
	return func(yield func(int, Value) bool) {
		if v.Kind() != Array {
			return
		}
		parent := &v
		p := skipSpace(v.raw, 1)
		for i := 0; v.raw[p] != ']'; i++ {
			end := skipValue(v.raw, p)
			if !yield(i, Value{raw: v.raw[p:end], parent: parent, index: i}) {
				return
			}
			p = skipComma(v.raw, end)
		}
	}
}

// Fields goes through an object in its own order, duplicates included; it is
// empty for any other value.
func (v Value) Fields() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		parent := &v
		for p := v.firstField(); p > 0; {
			var f Value
			f, p = parent.field(p)
			if !yield(string(f.key), f) {
				return
			}
		}
	}
}

// firstField is where the first field of an object begins; 0 without one.
func (v Value) firstField() int {
	if v.Kind() != Object {
		return 0
	}
	return v.fieldFrom(skipSpace(v.raw, 1))
}

// fieldFrom is p, or 0 where the object ends.
func (v Value) fieldFrom(p int) int {
	if v.raw[p] == '}' {
		return 0
	}
	return p
}

// field reads the field that begins at p, and says where the next one does.
func (v *Value) field(p int) (f Value, next int) {
	end := skipString(v.raw, p)
	key := v.raw[p+1 : end-1]
	if bytes.IndexByte(key, '\\') >= 0 {
		key = []byte(unescape(key))
	}
	p = skipSpace(v.raw, skipSpace(v.raw, end)+1) // over the colon
	end = skipValue(v.raw, p)
	return Value{raw: v.raw[p:end], parent: v, key: key, index: -1}, v.fieldFrom(skipComma(v.raw, end))
}

// Members is an object taken apart once, for a reader of many fields.
type Members []Value

// Members takes an object apart; fields past max are left out.
func (v Value) Members(maxFields int) Members {
	if v.Kind() != Object {
		return nil
	}
	m, parent := make(Members, 0, 8), &v // most objects have no more fields
	for p := v.firstField(); p > 0 && len(m) < maxFields; {
		var f Value
		f, p = parent.field(p)
		m = append(m, f)
	}
	return m
}

// Get returns a field by its name, the last one of duplicates.
func (m Members) Get(name string) Value {
	for _, v := range slices.Backward(m) {
		if string(v.key) == name {
			return v
		}
	}
	return Value{}
}

// Field returns one field of an object.
func (v Value) Field(name string) Value {
	found := Value{}
	for key, f := range v.Fields() {
		if key == name {
			found = f
		}
	}
	return found
}

// Key returns the name of a field's value.
func (v Value) Key() string { return string(v.key) }
