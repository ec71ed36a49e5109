package toolcall

import (
	"bytes"
	"encoding/json"

	"quern/models/schema"
)

// nested translates values that are written as elements within elements, each
// between tags with its name, to JSON.
type nested struct {
	open, shut []byte // begin a tag, and one that ends an element
}

// part is what a schema says of the parts of a value.
type part struct {
	Type       json.RawMessage            `json:"type"`
	Properties map[string]json.RawMessage `json:"properties"`
	Items      json.RawMessage            `json:"items"`
}

// append adds a value: its elements, or the text that it is.
func (n *nested) append(out, raw []byte, about json.RawMessage, depth int) []byte {
	var s part
	_ = json.Unmarshal(about, &s) // a schema that cannot be read says nothing
	list := string(s.Type) == `"array"`
	elements, ok := n.elements(raw)
	switch {
	case !ok || depth > maxJSONDepth:
		return appendValue(out, raw, schema.NewArgument(about), false)
	case len(elements) > 0:
	case list:
		return append(out, "[]"...)
	case string(s.Type) == `"object"`:
		return append(out, "{}"...)
	default:
		return appendValue(out, raw, schema.NewArgument(about), false)
	}
	if !list && len(s.Properties) == 0 {
		list = true
		for _, e := range elements {
			list = list && string(e.name) == "item"
		}
	}
	sep, end := byte('{'), byte('}')
	if list {
		sep, end = '[', ']'
	}
	for _, e := range elements {
		out = append(out, sep)
		sep = ','
		about := s.Items
		if !list {
			about = s.Properties[string(e.name)]
			out = append(appendString(append(out, '"'), e.name...), '"', ':')
		}
		out = n.append(out, e.raw, about, depth+1)
	}
	return append(out, end)
}

type element struct{ name, raw []byte }

// elements takes a value apart; false means that it is none of elements, but
// for white space around them. An empty one has no elements.
func (n *nested) elements(raw []byte) (out []element, ok bool) {
	for {
		raw = bytes.TrimLeft(raw, " \t\r\n")
		if len(raw) == 0 {
			return out, true
		}
		rest, found := bytes.CutPrefix(raw, n.open)
		if !found {
			return nil, false
		}
		name, rest, found := bytes.Cut(rest, []byte{'>'})
		if !found || len(name) == 0 || len(name) > maxTag {
			return nil, false
		}
		inner, rest, found := n.inside(rest, name)
		if !found {
			return nil, false
		}
		out = append(out, element{name, inner})
		raw = rest
	}
}

// inside splits text behind the element's end, which elements of the same name
// may come before.
func (n *nested) inside(text, name []byte) (inner, rest []byte, found bool) {
	open := append(append(bytes.Clone(n.open), name...), '>')
	shut := append(append(bytes.Clone(n.shut), name...), '>')
	for at, depth := 0, 1; ; {
		i := bytes.Index(text[at:], shut)
		if i < 0 {
			return nil, nil, false
		}
		depth += bytes.Count(text[at:at+i], open) - 1
		at += i + len(shut)
		if depth == 0 {
			return text[:at-len(shut)], text[at:], true
		}
	}
}
