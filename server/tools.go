package server

import (
	"encoding/json"
	"strconv"
	"strings"

	"quern/models/chat"
	"quern/models/schema"
	"quern/models/schema/lark"
	"quern/server/jsonvalue"
)

// tool is one tool that the model may call. The model sees the flat name; the
// client sees name and namespace.
type tool struct {
	chat.Tool        // Name is the flat name
	name      string // as the client calls it
	namespace string // "" for a tool of no namespace
	custom    bool   // free text in, a custom_tool_call out
	path      string // within the request
}

// toolset is the tools of a request.
type toolset struct {
	list []tool
	echo []json.RawMessage // every tool as it was sent, those ignored included
	flat map[string]int    // place in list by the name that the model uses
}

// customInput is the one argument that a custom tool has for the model.
const customInput = "input"

var customParameters = json.RawMessage(`{"type":"object","properties":{"input":{"type":"string"}},"required":["input"],"additionalProperties":false}`)

// tools reads a list of tools. Functions and custom tools become callable, the
// members of a namespace under a flat name; tools of other types are run by a
// hosting service, which a node is not: they are passed over, never refused,
// since agents send them unasked.
func (f *fields) tools(v jsonvalue.Value) toolset {
	var set toolset
	for _, t := range f.array(v, maxTools) {
		body := f.object(t)
		if f.err != nil {
			return set
		}
		set.echo = append(set.echo, echoTool(t, body))
		switch kind := f.toolType(t, body); {
		case !f.offers(t, kind):
			f.pass(t.Path(), kind)
		case kind == "function", kind == "custom":
			set.add(f, t, f.tool(t, body, kind))
		case kind == "namespace":
			f.namespace(&set, t, body)
		default:
			f.pass(t.Path(), kind)
		}
	}
	return set
}

// toolType returns the type of a tool; one without is a function if it has a name.
func (f *fields) toolType(t jsonvalue.Value, body jsonvalue.Members) string {
	kind := body.Get("type")
	if kind.Empty() {
		if body.Get("name").Empty() && body.Get("function").Empty() {
			f.missing(t, "type")
		}
		return "function"
	}
	return f.text(kind)
}

// tool reads one function or custom tool, flat or as chat nests it.
func (f *fields) tool(v jsonvalue.Value, body jsonvalue.Members, kind string) tool {
	if nested := body.Get(kind); nested.Kind() == jsonvalue.Object {
		v, body = nested, f.object(nested)
	}
	t := tool{path: v.Path(), custom: kind == "custom"}
	t.name = f.need(v, body.Get("name"), "name")
	if f.err == nil && !validName(t.name) {
		f.fail(invalid(v.At("name"), codeInvalidValue, "%s must be 1 to %d letters, digits, '_', '-' or '.', got %q", v.At("name"), maxNameLength, clip(t.name)))
	}
	t.Name = t.name
	t.Description = f.text(body.Get("description"))
	if t.custom {
		t.Parameters = customParameters
		f.freeform(&t, body.Get("format"))
		return t
	}
	t.Strict = f.flag(body.Get("strict"), false)
	switch p := body.Get("parameters"); p.Kind() {
	case jsonvalue.Object, jsonvalue.Bool:
		t.Parameters = p.Raw()
	case jsonvalue.Absent, jsonvalue.Null:
	default:
		f.wrongType(p, "a JSON Schema")
	}
	return t
}

// freeform reads what the text of a custom tool must look like. The description
// tells the model; a grammar also holds it to that, a regular expression as the
// pattern of its argument. What only the description tells is named as ignored.
func (f *fields) freeform(t *tool, format jsonvalue.Value) {
	body := f.object(format)
	if kind := f.choice(body.Get("type"), "text", "text", "grammar"); kind == "text" {
		return
	}
	if nested := body.Get("grammar"); nested.Kind() == jsonvalue.Object { // as chat has it
		format, body = nested, f.object(nested)
	}
	syntax := f.choice(body.Get("syntax"), "", "lark", "regex")
	if syntax == "" {
		f.missing(format, "syntax")
	}
	definition := f.name(format, body.Get("definition"), "definition")
	if f.err != nil {
		return
	}
	t.Description = strings.TrimSpace(t.Description + "\nThe input follows this " + syntax + " grammar:\n" + definition)
	if f.grammars++; f.grammars > maxGrammars {
		f.passFor(format.Path(), syntax, "is not enforced: there are many")
		return
	}
	var err error
	if syntax == "regex" {
		t.Parameters = patternParameters(definition)
		t.Grammar, err = f.schemas.Compile(t.Parameters, schema.Options{Object: true, Closed: true, Strict: true})
	} else {
		t.Grammar, err = f.schemas.Remember(syntax, []byte(definition), func() (*schema.Compiled, error) {
			return lark.Compile(definition, customInput)
		})
	}
	switch {
	case err == nil:
	case syntax == "lark" && !schema.IsBeyond(err):
		f.fail(invalid(format.At("definition"), codeInvalidValue, "%s is not a lark grammar: %s", format.At("definition"), err))
	default:
		t.Parameters, t.Grammar = customParameters, nil
		f.passFor(format.Path(), syntax, "is not enforced: "+err.Error())
	}
}

// patternParameters are customParameters whose text matches a whole pattern.
func patternParameters(pattern string) json.RawMessage {
	dst := append([]byte(nil), `{"type":"object","properties":{"input":{"type":"string","pattern":`...)
	dst = appendString(dst, "^(?:"+pattern+")$")
	return append(dst, `}},"required":["input"],"additionalProperties":false}`...)
}

// namespace reads the tools of a namespace under flat names.
func (f *fields) namespace(set *toolset, v jsonvalue.Value, body jsonvalue.Members) {
	space := f.name(v, body.Get("name"), "name")
	for _, inner := range f.array(body.Get("tools"), maxTools) {
		b := f.object(inner)
		if f.err != nil {
			return
		}
		kind := f.toolType(inner, b)
		if kind != "function" && kind != "custom" {
			f.pass(inner.Path(), kind)
			continue
		}
		t := f.tool(inner, b, kind)
		t.namespace, t.Name = space, flatName(space, t.name)
		set.add(f, inner, t)
	}
}

// flatName joins namespace and name. The way back is a look-up, not a split.
func flatName(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return strings.TrimRight(namespace, "_") + "__" + name
}

// add puts a tool in, under a flat name that no other tool has.
func (s *toolset) add(f *fields, v jsonvalue.Value, t tool) {
	if f.err == nil && len(s.list) == maxTools {
		f.fail(invalid("tools", codeTooLarge, "there are more than %d tools, those of namespaces counted", maxTools))
	}
	if f.err != nil {
		return
	}
	for _, other := range s.list {
		if other.name == t.name && other.namespace == t.namespace {
			f.fail(invalid(v.At("name"), codeInvalidValue, "%s: there are two tools of the name %q", v.At("name"), t.name))
			return
		}
	}
	flat := t.Name
	for n := 2; s.byFlat(t.Name) != nil; n++ {
		t.Name = flat + "_" + strconv.Itoa(n)
	}
	if s.flat == nil {
		s.flat = map[string]int{}
	}
	s.flat[t.Name] = len(s.list)
	s.list = append(s.list, t)
}

// byFlat finds a tool by the name that the model uses.
func (s *toolset) byFlat(flat string) *tool {
	if i, ok := s.flat[flat]; ok {
		return &s.list[i]
	}
	return nil
}

// byName finds a tool by the names that a client uses. A bare name that no tool
// has as such finds the tool of that flat name, or of any namespace if there is
// but one.
func (s *toolset) byName(namespace, name string) *tool {
	var found *tool
	for i := range s.list {
		t := &s.list[i]
		switch {
		case t.name == name && t.namespace == namespace:
			return t
		case namespace == "" && t.Name == name:
			return t
		case namespace == "" && t.name == name && found == nil:
			found = t
		case namespace == "" && t.name == name:
			return nil
		}
	}
	return found
}

// flatten returns the name under which the model knows a call of the history,
// whose tool need not be among those of this request.
func (s *toolset) flatten(namespace, name string) string {
	if t := s.byName(namespace, name); t != nil {
		return t.Name
	}
	return flatName(namespace, name)
}

// validName is OpenAI's rule, with dots and a longer limit as MCP servers use.
func validName(name string) bool {
	if name == "" || len(name) > maxNameLength {
		return false
	}
	for _, c := range []byte(name) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '-', c == '.':
		default:
			return false
		}
	}
	return true
}

// clip shortens a client's text for an error message.
func clip(s string) string { return clipAt(s, 60) }

func clipAt(s string, limit int) string {
	shown := 0
	for i := range s {
		if shown++; shown > limit {
			return s[:i] + "…"
		}
	}
	return s
}

const emptyTool = `{"type":"function","name":null,"description":null,"parameters":null,"strict":null}`

// echoTool returns a tool for the response: a function with all five keys that
// the contract wants, anything else as it came.
func echoTool(v jsonvalue.Value, body jsonvalue.Members) json.RawMessage {
	if kind := body.Get("type"); !kind.Empty() && string(kind.Raw()) != `"function"` {
		return appendCompact(make([]byte, 0, len(v.Raw())), v.Raw())
	}
	if nested := body.Get("function"); nested.Kind() == jsonvalue.Object {
		body = nested.Members(maxObjectFields)
	}
	out := append(make([]byte, 0, len(v.Raw())+len(emptyTool)), `{"type":"function"`...)
	for _, key := range []string{"name", "description", "parameters", "strict"} {
		out = append(out, `,"`...)
		out = append(out, key...)
		out = append(out, `":`...)
		if value := body.Get(key); value.Empty() {
			out = append(out, "null"...)
		} else {
			out = appendCompact(out, value.Raw())
		}
	}
	return append(out, '}')
}
