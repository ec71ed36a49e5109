package server

import (
	"encoding/json"

	"quern/server/jsonvalue"
)

// textFormat is the form that the visible text must have.
type textFormat struct {
	Kind        string // text, json_object or json_schema
	Name        string
	Description *string
	Strict      *bool
	Schema      json.RawMessage // as it came
	path        string          // of the schema within the request
}

const (
	formatText       = "text"
	formatJSONObject = "json_object"
	formatJSONSchema = "json_schema"
)

// format reads text.format or, in chat's spelling, response_format, which keeps
// name and schema one level deeper.
func (f *fields) format(v jsonvalue.Value) textFormat {
	if v.Empty() {
		return textFormat{Kind: formatText}
	}
	body := f.object(v)
	if f.err == nil && body.Get("type").Empty() {
		f.missing(v, "type")
	}
	out := textFormat{Kind: f.choice(body.Get("type"), formatText, formatText, formatJSONObject, formatJSONSchema)}
	if out.Kind != formatJSONSchema {
		return out
	}
	if nested := body.Get("json_schema"); !nested.Empty() {
		v, body = nested, f.object(nested)
	}
	out.Name = f.text(body.Get("name"))
	out.Description = f.optional(body.Get("description"))
	if s := body.Get("strict"); !s.Empty() {
		strict := f.flag(s, false)
		out.Strict = &strict
	}
	schema := body.Get("schema")
	switch schema.Kind() {
	case jsonvalue.Object, jsonvalue.Bool:
		out.Schema, out.path = schema.Raw(), schema.Path()
	case jsonvalue.Absent, jsonvalue.Null:
		f.missing(v, "schema")
	default:
		f.wrongType(schema, "a JSON Schema")
	}
	return out
}

// append writes the format as the response echoes it.
func (t textFormat) append(dst []byte) []byte {
	if t.Kind != formatJSONSchema {
		dst = append(dst, `{"type":`...)
		return append(appendString(dst, t.Kind), '}')
	}
	dst = append(dst, `{"type":"json_schema","name":`...)
	dst = appendString(dst, t.Name)
	dst = append(dst, `,"description":`...)
	dst = appendPointer(dst, t.Description)
	dst = append(dst, `,"strict":`...)
	switch {
	case t.Strict == nil:
		dst = append(dst, "null"...)
	case *t.Strict:
		dst = append(dst, "true"...)
	default:
		dst = append(dst, "false"...)
	}
	dst = append(dst, `,"schema":`...)
	return append(appendCompact(dst, t.Schema), '}')
}
