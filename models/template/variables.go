package template

import (
	"fmt"
	"strings"
	"time"

	"github.com/ardanlabs/jinja"

	"quern/models/chat"
	"quern/models/template/dialect"
)

// reserved are the variables that a request's kwargs may not replace.
var reserved = map[string]bool{
	"messages": true, "tools": true, "documents": true, "add_generation_prompt": true, "bos_token": true, "eos_token": true,
}

// variables is what the template gets. As in Hugging Face's environment tools
// and documents are none, not undefined, where there are none.
func (r *rendering) variables(ts []turn, tools, open bool) (map[string]dialect.Value, error) {
	vars := map[string]dialect.Value{
		"messages":              r.messages(ts),
		"tools":                 jinja.None(),
		"documents":             jinja.None(),
		"add_generation_prompt": jinja.NewBool(open),
		"bos_token":             jinja.NewString(r.v.o.BOS),
		"eos_token":             jinja.NewString(r.v.o.EOS),
	}
	if tools && len(r.c.Tools) > 0 {
		list, err := r.tools()
		if err != nil {
			return nil, err
		}
		vars["tools"], vars[r.v.traits.toolsVar] = list, list
		if r.v.traits.toolsVar == functionsVar {
			if vars[functionsVar], err = r.functions(list); err != nil {
				return nil, err
			}
		}
	}
	if r.v.prog.Reads("datetime") { // no finer, or no prompt would begin as the last one did
		vars["datetime"] = jinja.NewString(r.now.Format(time.DateOnly))
	}
	r.v.setThinking(vars, r.c)
	for _, kv := range r.c.Kwargs {
		if reserved[kv.Key] || strings.HasPrefix(kv.Key, "__") {
			continue
		}
		value, err := dialect.FromJSON(string(kv.Value), &r.spelling, r.g.text)
		if err != nil {
			return nil, fmt.Errorf("chat_template_kwargs %q: %w", kv.Key, err)
		}
		vars[kv.Key] = value
	}
	return vars, nil
}

// functionsVar holds what a tool is, without the type around it, as JSON text.
const functionsVar = "functions"

func (r *rendering) functions(tools dialect.Value) (dialect.Value, error) {
	var list []dialect.Value
	for _, t := range tools.AsList().Items {
		list = append(list, t.AsDict().Data["function"])
	}
	text, err := r.json(jinja.NewList(list))
	return jinja.NewString(text), err
}

// dict builds a mapping from keys and values in turn.
func dict(pairs ...any) dialect.Value {
	v := jinja.NewDict()
	d := v.AsDict()
	for i := 0; i < len(pairs); i += 2 {
		key, _ := pairs[i].(string)
		switch value := pairs[i+1].(type) {
		case string:
			d.Set(key, jinja.NewString(value))
		case dialect.Value:
			d.Set(key, value)
		}
	}
	return v
}

func (r *rendering) messages(ts []turn) dialect.Value {
	list := make([]dialect.Value, len(ts))
	for i, t := range ts {
		m := dict("role", t.role, "content", r.content(t.content))
		d := m.AsDict()
		if t.reasoning != "" && r.v.traits.reasoningKey != "" {
			d.Set(r.v.traits.reasoningKey, jinja.NewString(t.reasoning))
		}
		if len(t.calls) > 0 {
			d.Set("tool_calls", r.calls(t.calls))
		}
		if t.role == tool {
			d.Set("name", jinja.NewString(t.name))
			d.Set("tool_call_id", jinja.NewString(r.callID(t.callID)))
		}
		list[i] = m
	}
	return jinja.NewList(list)
}

func (r *rendering) content(text string) dialect.Value {
	if !r.v.traits.typedContent {
		return jinja.NewString(text)
	}
	return jinja.NewList([]dialect.Value{dict("type", "text", "text", text)})
}

func (r *rendering) calls(calls []call) dialect.Value {
	list := make([]dialect.Value, len(calls))
	for i, c := range calls {
		list[i] = dict("id", r.callID(c.id), "type", "function",
			"function", dict("name", c.name, "arguments", r.arguments(c.args)))
	}
	return jinja.NewList(list)
}

// object reads arguments; false where they are no JSON object. No arguments
// at all are an empty object.
func (r *rendering) object(args string) (dialect.Value, bool) {
	if strings.TrimSpace(args) == "" {
		return jinja.NewDict(), true
	}
	v, err := dialect.FromJSON(args, &r.spelling, r.g.text)
	return v, err == nil && v.IsDict()
}

// arguments is a mapping where the template can take one and the client sent
// one, else the text as it came.
func (r *rendering) arguments(args string) dialect.Value {
	v, ok := r.object(args)
	switch {
	case ok && !r.v.traits.textArgs:
		return v
	case !ok && r.v.traits.mappingArgs:
		return dict("arguments", r.g.text(args))
	case strings.TrimSpace(args) == "":
		return jinja.NewString("{}")
	}
	return jinja.NewString(r.g.text(args))
}

// tools lists the tools in the shape that templates are written for.
func (r *rendering) tools() (dialect.Value, error) {
	list := make([]dialect.Value, len(r.c.Tools))
	for i, t := range r.c.Tools {
		v, err := r.tool(t)
		if err != nil {
			return v, err
		}
		list[i] = v
	}
	return jinja.NewList(list), nil
}

func (r *rendering) tool(t chat.Tool) (dialect.Value, error) {
	function := dict("name", r.g.text(t.Name))
	d := function.AsDict()
	if t.Description != "" {
		d.Set("description", jinja.NewString(r.g.text(t.Description)))
	}
	// A tool without parameters takes none; templates iterate over them.
	parameters := dict("type", "object", "properties", jinja.NewDict())
	if len(t.Parameters) > 0 {
		v, err := dialect.FromJSON(string(t.Parameters), &r.spelling, r.g.text)
		if err != nil {
			return v, fmt.Errorf("parameters of tool %q: %w", t.Name, err)
		}
		if !v.IsNone() {
			parameters = v
		}
	}
	d.Set("parameters", parameters)
	return dict("type", "function", "function", function), nil
}
