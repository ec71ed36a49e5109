package server

import (
	"encoding/json"
	"slices"

	"quern/server/jsonvalue"
)

// Modes of tool_choice. A named tool is required with an offer of one.
const (
	choiceAuto     = "auto"
	choiceNone     = "none"
	choiceRequired = "required"
)

// toolChoice says which tools the model is offered and whether it must call one.
type toolChoice struct {
	mode  string
	names []string        // flat names of those offered; nil offers all
	echo  json.RawMessage // as sent
}

// toolChoice reads tool_choice against the tools of the request.
func (f *fields) toolChoice(v jsonvalue.Value, set *toolset) toolChoice {
	c := toolChoice{mode: choiceAuto, echo: json.RawMessage(`"auto"`)}
	switch v.Kind() {
	case jsonvalue.Absent, jsonvalue.Null:
		return c
	case jsonvalue.String:
		c.mode = f.choice(v, choiceAuto, choiceAuto, choiceNone, choiceRequired)
		c.echo = v.Raw()
		f.choosable(v, c.mode)
	case jsonvalue.Object:
		c = f.choiceObject(v, set)
	default:
		f.wrongType(v, `"none", "auto", "required" or an object`)
	}
	if f.err == nil && c.mode == choiceRequired && len(set.list) == 0 {
		f.fail(invalid(v.Path(), codeInvalidValue, "%s asks for a call, but the request has no function or custom tool", v.Path()))
	}
	return c
}

// choiceObject reads {type: function, name} and {type: allowed_tools, mode, tools}.
func (f *fields) choiceObject(v jsonvalue.Value, set *toolset) toolChoice {
	body := f.object(v)
	c := toolChoice{mode: choiceRequired}
	kind := f.name(v, body.Get("type"), "type")
	f.choosable(v, kind)
	switch kind {
	case "":
	case "function", "custom":
		c.names = f.named(v, body, kind, set)
		c.echo = f.echoNamed(body, kind)
	case "allowed_tools":
		if nested := body.Get("allowed_tools"); nested.Kind() == jsonvalue.Object {
			v, body = nested, f.object(nested)
		}
		c.mode = f.choice(body.Get("mode"), choiceAuto, choiceAuto, choiceRequired)
		list := body.Get("tools")
		if list.Empty() {
			f.missing(v, "tools")
		}
		for _, t := range f.array(list, maxTools) {
			c.names = append(c.names, f.allowed(t, set)...)
		}
		if f.err == nil && c.mode == choiceRequired && len(c.names) == 0 {
			f.fail(invalid(list.Path(), codeInvalidValue, "%s names no function or custom tool of the request", list.Path()))
		}
		c.echo = echoAllowed(c.mode, list)
		if c.names == nil {
			c.mode = choiceNone
		}
	default:
		f.fail(invalid(v.At("type"), codeUnsupported, "%s %q is not available on this node, which runs function and custom tools only", v.At("type"), clip(kind)))
	}
	return c
}

// echoNamed returns the choice of one tool, flat, also where it came as chat
// nests it.
func (f *fields) echoNamed(body jsonvalue.Members, kind string) json.RawMessage {
	if nested := body.Get(kind); nested.Kind() == jsonvalue.Object {
		body = f.object(nested)
	}
	dst := append([]byte(`{"type":"`), kind...)
	dst = append(dst, `","name":`...)
	dst = appendString(dst, f.text(body.Get("name")))
	if space := f.text(body.Get("namespace")); space != "" {
		dst = append(dst, `,"namespace":`...)
		dst = appendString(dst, space)
	}
	return append(dst, '}')
}

// echoAllowed returns allowed_tools with the mode, which clients may leave out.
func echoAllowed(mode string, list jsonvalue.Value) json.RawMessage {
	dst := append([]byte(`{"type":"allowed_tools","mode":"`), mode...)
	dst = append(dst, `","tools":`...)
	return append(appendCompact(dst, list.Raw()), '}')
}

// allowed resolves one entry of allowed_tools; hosted tools are passed over.
func (f *fields) allowed(v jsonvalue.Value, set *toolset) []string {
	body := f.object(v)
	kind := f.text(body.Get("type"))
	if kind != "" && kind != "function" && kind != "custom" {
		return nil
	}
	if kind == "" {
		kind = "function"
	}
	return f.named(v, body, kind, set)
}

func (f *fields) named(v jsonvalue.Value, body jsonvalue.Members, kind string, set *toolset) []string {
	if nested := body.Get(kind); nested.Kind() == jsonvalue.Object {
		v, body = nested, f.object(nested)
	}
	name := f.name(v, body.Get("name"), "name")
	space := f.text(body.Get("namespace"))
	if f.err != nil {
		return nil
	}
	t := set.byName(space, name)
	if t == nil {
		f.fail(invalid(v.At("name"), codeInvalidValue, "%s %q is not among the tools of the request", v.At("name"), clip(name)))
		return nil
	}
	return []string{t.Name}
}

// offered returns the tools that the model is told of.
func (c toolChoice) offered(set toolset) []tool {
	if c.mode == choiceNone {
		return nil
	}
	if c.names == nil {
		return set.list
	}
	var out []tool
	for _, t := range set.list {
		if slices.Contains(c.names, t.Name) {
			out = append(out, t)
		}
	}
	return out
}
