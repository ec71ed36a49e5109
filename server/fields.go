package server

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"quern/models/schema"
	"quern/server/jsonvalue"
)

// fields reads typed values out of a request. The first fault sticks and later
// reads give zero values, so that a decoder reads straight down and asks for
// err once. An absent or null value gives the default it is read with.
type fields struct {
	contract      *contract // nil is the open profile, see rules
	model         string    // the node's, for refusals
	err           *requestError
	unimplemented *requestError // refuses the request if nothing else does
	images        int64         // bytes of the images so far
	ignored       []string      // what the request asks for in vain, see ignore
	schemas       *schema.Cache // remembers what grammars compile to; may be nil
	grammars      int           // of custom tools so far
}

func (f *fields) fail(e *requestError) {
	if f.err == nil {
		f.err = e
	}
}

// fault is what refuses the request.
func (f *fields) fault() *requestError {
	if f.err != nil {
		return f.err
	}
	return f.unimplemented
}

// wrongType refuses a value whose type is not the wanted one.
func (f *fields) wrongType(v jsonvalue.Value, want string) {
	f.fail(invalid(v.Path(), codeInvalidType, "%s must be %s, got %s", v.Path(), want, describe(v)))
}

// missing refuses the absence of a field of v.
func (f *fields) missing(v jsonvalue.Value, field string) {
	f.fail(invalid(v.At(field), codeMissing, "%s is required", v.At(field)))
}

// describe gives the type of a value, with the value itself where it is short.
func describe(v jsonvalue.Value) string {
	switch raw := v.Raw(); {
	case v.Kind() == jsonvalue.Number || v.Kind() == jsonvalue.String && len(raw) <= 40:
		return fmt.Sprintf("%s (%s)", v.Kind(), clip(string(raw)))
	default:
		return v.Kind().String()
	}
}

// text reads a string; absent and null give "".
func (f *fields) text(v jsonvalue.Value) string {
	if v.Empty() {
		return ""
	}
	s, ok := v.Text()
	if !ok {
		f.wrongType(v, "a string")
	}
	return s
}

// optional reads a string whose absence differs from "".
func (f *fields) optional(v jsonvalue.Value) *string {
	if v.Empty() {
		return nil
	}
	s := f.text(v)
	return &s
}

// short reads a string of at most limit characters.
func (f *fields) short(v jsonvalue.Value, limit int) *string {
	s := f.optional(v)
	if s != nil && utf8.RuneCountInString(*s) > limit {
		f.fail(invalid(v.Path(), codeTooLarge, "%s has %d characters, the limit is %d", v.Path(), utf8.RuneCountInString(*s), limit))
	}
	return s
}

// need reads a string that must be there.
func (f *fields) need(parent jsonvalue.Value, v jsonvalue.Value, name string) string {
	if v.Empty() {
		f.missing(parent, name)
	}
	return f.text(v)
}

// name is need for a string that must say something.
func (f *fields) name(parent jsonvalue.Value, v jsonvalue.Value, name string) string {
	s := f.need(parent, v, name)
	if s == "" {
		f.fail(invalid(parent.At(name), codeInvalidValue, "%s must not be empty", parent.At(name)))
	}
	return s
}

// number reads a number within [low, high].
func (f *fields) number(v jsonvalue.Value, low, high, absent float64) float64 {
	if v.Empty() {
		return absent
	}
	n, ok := v.Float()
	if !ok {
		f.wrongType(v, fmt.Sprintf("a number from %g to %g", low, high))
		return absent
	}
	if n < low || n > high {
		f.fail(invalid(v.Path(), codeInvalidValue, "%s must be a number from %g to %g, got %s", v.Path(), low, high, clip(string(v.Raw()))))
	}
	return n
}

// count reads a whole number within [low, high].
func (f *fields) count(v jsonvalue.Value, low, high, absent int) int {
	if v.Empty() {
		return absent
	}
	if v.Kind() != jsonvalue.Number {
		f.wrongType(v, "an integer")
		return absent
	}
	n, ok := v.Int()
	if !ok || n < int64(low) || n > int64(high) {
		f.fail(invalid(v.Path(), codeInvalidValue, "%s must be %s, got %s", v.Path(), countRange(low, high), clip(string(v.Raw()))))
		return absent
	}
	return int(n)
}

// anyCount is the upper end of counts that have none of their own.
const anyCount = 1<<31 - 1

func countRange(low, high int) string {
	if high == anyCount {
		return fmt.Sprintf("an integer of at least %d", low)
	}
	return fmt.Sprintf("an integer from %d to %d", low, high)
}

// flag reads a boolean.
func (f *fields) flag(v jsonvalue.Value, absent bool) bool {
	if v.Empty() {
		return absent
	}
	b, ok := v.Truth()
	if !ok {
		f.wrongType(v, "a boolean")
	}
	return b
}

// choice reads one of a set of words.
func (f *fields) choice(v jsonvalue.Value, absent string, words ...string) string {
	if v.Empty() {
		return absent
	}
	s := f.text(v)
	if slices.Contains(words, s) {
		return s
	}
	f.fail(invalid(v.Path(), codeInvalidValue, "%s must be one of %s, got %s", v.Path(), quoteList(words), describe(v)))
	return absent
}

// oneOf is choice for a word whose absence is echoed as null.
func (f *fields) oneOf(v jsonvalue.Value, words ...string) *string {
	if v.Empty() {
		return nil
	}
	s := f.choice(v, "", words...)
	return &s
}

func quoteList(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = strconv.Quote(w)
	}
	return strings.Join(quoted, ", ")
}

// object checks that v is an object and takes it apart.
func (f *fields) object(v jsonvalue.Value) jsonvalue.Members {
	if v.Empty() {
		return nil
	}
	if v.Kind() != jsonvalue.Object {
		f.wrongType(v, "an object")
		return nil
	}
	m := v.Members(maxObjectFields + 1)
	if len(m) > maxObjectFields {
		f.fail(invalid(v.Path(), codeTooLarge, "%s has more than %d fields", nameOf(v), maxObjectFields))
	}
	return m
}

// array checks that v is an array of at most limit elements.
func (f *fields) array(v jsonvalue.Value, limit int) []jsonvalue.Value {
	if v.Empty() {
		return nil
	}
	if v.Kind() != jsonvalue.Array {
		f.wrongType(v, "an array")
		return nil
	}
	out := make([]jsonvalue.Value, 0, min(limit, 4))
	for _, e := range v.Elements() {
		if len(out) == limit {
			f.fail(invalid(v.Path(), codeTooLarge, "%s has more than %d elements", v.Path(), limit))
			return nil
		}
		out = append(out, e)
	}
	return out
}

func nameOf(v jsonvalue.Value) string {
	if p := v.Path(); p != "" {
		return p
	}
	return "the body"
}
