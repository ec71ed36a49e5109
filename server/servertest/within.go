package servertest

// grammar says, for each event within an item, in which type of item it may
// stand and what it does.
var grammar = map[string]struct {
	item  string // type of the item
	role  string // open, delta, whole or close
	field string // that holds the text
	index string // of the part; "" for items without parts
}{
	"response.content_part.added":            {"message", "open", "part", "content_index"},
	"response.output_text.delta":             {"message", "delta", "delta", "content_index"},
	"response.output_text.done":              {"message", "whole", "text", "content_index"},
	"response.content_part.done":             {"message", "close", "part", "content_index"},
	"response.reasoning_summary_part.added":  {"reasoning", "open", "part", "summary_index"},
	"response.reasoning_summary_text.delta":  {"reasoning", "delta", "delta", "summary_index"},
	"response.reasoning_summary_text.done":   {"reasoning", "whole", "text", "summary_index"},
	"response.reasoning_summary_part.done":   {"reasoning", "close", "part", "summary_index"},
	"response.function_call_arguments.delta": {"function_call", "delta", "delta", ""},
	"response.function_call_arguments.done":  {"function_call", "whole", "arguments", ""},
	"response.custom_tool_call_input.delta":  {"custom_tool_call", "delta", "delta", ""},
	"response.custom_tool_call_input.done":   {"custom_tool_call", "whole", "input", ""},
}

// within checks an event that belongs to the open item.
func (c *checker) within(kind string, e Object) {
	rule, known := grammar[kind]
	if !known {
		c.fault("unknown event %q", kind)
		return
	}
	if c.open == nil {
		c.fault("%s while no item is open", kind)
		return
	}
	o := c.open
	if str(o.added, "type") != rule.item {
		c.fault("%s within a %s", kind, str(o.added, "type"))
	}
	if str(e, "item_id") != str(o.added, "id") || num(e, "output_index") != len(c.done) {
		c.fault("%s is about item %v at %v", kind, e["item_id"], e["output_index"])
	}
	if rule.index != "" && num(e, rule.index) != 0 {
		c.fault("%s: %s is %v", kind, rule.index, e[rule.index])
	}
	if rule.item == "message" && (rule.role == "delta" || rule.role == "whole") && e["logprobs"] == nil {
		c.fault("%s without logprobs", kind)
	}
	if part := obj(e, "part"); part != nil && rule.item == "message" && (str(part, "type") != "output_text" || part["annotations"] == nil) {
		c.fault("%s: part is %v", kind, part)
	}
	switch rule.role {
	case "open":
		if o.parts++; o.parts > 1 || o.text != "" || str(obj(e, "part"), "text") != "" {
			c.fault("%s out of place", kind)
		}
		o.partOpen = true
	case "delta":
		if rule.index != "" && !o.partOpen || o.whole {
			c.fault("%s out of place", kind)
		}
		if str(e, rule.field) == "" {
			c.fault("%s is empty", kind)
		}
		o.text += str(e, rule.field)
	case "whole":
		if o.whole || str(e, rule.field) != o.text {
			c.fault("%s says %q, the deltas %q", kind, str(e, rule.field), o.text)
		}
		o.whole = true
	case "close":
		if !o.partOpen || !o.whole || str(obj(e, "part"), "text") != o.text {
			c.fault("%s out of place, or with another text", kind)
		}
		o.partOpen = false
	}
}
