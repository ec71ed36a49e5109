package toolcall

import (
	"bytes"
	"encoding/json"
	"slices"

	"quern/models/schema"
)

// param is what a tool's schema says of one argument.
type param struct {
	text    bool // nothing but a string
	checker *schema.Checker
	about   json.RawMessage // all of it
}

// anyParam is an argument that no schema speaks of.
var anyParam = &param{}

// param finds the schema of an argument.
func (t *tool) param(name []byte) *param {
	if t == nil {
		return anyParam
	}
	if t.params == nil {
		t.params = paramsOf(t.parameters)
	}
	if p := t.params[string(name)]; p != nil {
		return p
	}
	return anyParam
}

func paramsOf(parameters []byte) map[string]*param {
	out := map[string]*param{}
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(parameters, &s) != nil {
		return out // a schema that cannot be read says nothing
	}
	for name, raw := range s.Properties {
		out[name] = paramOf(raw)
	}
	return out
}

func paramOf(about json.RawMessage) *param {
	var typed struct {
		Type json.RawMessage `json:"type"`
	}
	if json.Unmarshal(about, &typed) != nil {
		return anyParam
	}
	kind := string(bytes.TrimSpace(typed.Type))
	p := &param{text: kind == `"string"` || kind == `["string"]`, about: about}
	if !p.text {
		p.checker = schema.NewChecker(about)
	}
	return p
}

// appendValue adds a value that is no plain string: JSON, or Python's spelling of
// a constant, or else the text as a string. The first of these that the schema
// allows is taken; asJSON says that the model declared it to be JSON, whatever
// the schema says.
func (p *param) appendValue(out, raw []byte, asJSON bool) []byte {
	quoted := append(appendString([]byte{'"'}, raw...), '"')
	value := asConstant(bytes.TrimSpace(raw))
	if !json.Valid(value) {
		return append(out, quoted...)
	}
	if !asJSON && p.checker != nil && !p.checker.Fits(value) && p.checker.Fits(quoted) {
		return append(out, quoted...)
	}
	return append(out, value...)
}

var (
	pythonConstants = []string{"True", "False", "None"}
	jsonConstants   = []string{"true", "false", "null"}
)

func asConstant(raw []byte) []byte {
	if i := slices.Index(pythonConstants, string(raw)); i >= 0 {
		return []byte(jsonConstants[i])
	}
	return raw
}
