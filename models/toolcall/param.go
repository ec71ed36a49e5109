package toolcall

import (
	"bytes"
	"encoding/json"
	"slices"

	"quern/models/schema"
)

// anyArgument is an argument that no schema speaks of.
var anyArgument = schema.NewArguments(nil).Of("")

// param is what the tool's schema says of an argument.
func (t *tool) param(name []byte) *schema.Argument {
	if t == nil {
		return anyArgument
	}
	if t.params == nil {
		t.params = schema.NewArguments(t.parameters)
	}
	return t.params.Of(string(name))
}

// about is the schema of an argument, as far as it stands among the properties.
func (t *tool) about(name []byte) json.RawMessage {
	var s part
	if t == nil || json.Unmarshal(t.parameters, &s) != nil {
		return nil // a schema that cannot be read says nothing
	}
	return s.Properties[string(name)]
}

// appendValue adds a value that is no plain string: JSON, or Python's spelling of
// a constant, or of a list or a dict where no string may stand, or else the text
// as a string. The first of these that the schema allows is taken; asJSON says
// that the model declared it to be JSON, whatever the schema says.
func appendValue(out, raw []byte, param *schema.Argument, asJSON bool) []byte {
	quoted := append(appendString([]byte{'"'}, raw...), '"')
	value := asConstant(bytes.TrimSpace(raw))
	if !json.Valid(value) {
		if literal, ok := asLiteral(value); ok && param.Fits(literal) && (asJSON || !param.Fits(quoted)) {
			return append(out, literal...)
		}
		return append(out, quoted...)
	}
	if !asJSON && !param.Fits(value) && param.Fits(quoted) {
		return append(out, quoted...)
	}
	return append(out, value...)
}

var (
	pythonConstants = []string{"True", "False", "None"}
	jsonConstants   = []string{"true", "false", "null"}
)

// asLiteral makes JSON of a list or a dict in Python's spelling.
func asLiteral(raw []byte) ([]byte, bool) {
	if len(raw) == 0 || raw[0] != '[' && raw[0] != '{' {
		return nil, false
	}
	l := literals{in: raw}
	ok := l.value() && l.at == len(l.in) && json.Valid(l.out)
	return l.out, ok
}

func asConstant(raw []byte) []byte {
	if i := slices.Index(pythonConstants, string(raw)); i >= 0 {
		return []byte(jsonConstants[i])
	}
	return raw
}
