package servertest

import (
	"fmt"
	"strings"
)

// kinds that a key of the response resource may have; "?" allows null.
var resourceKeys = map[string]string{
	"id": "string", "object": "string", "created_at": "number", "completed_at": "number?", "status": "string",
	"incomplete_details": "object?", "model": "string", "previous_response_id": "string?", "instructions": "string?",
	"output": "array", "error": "object?", "tools": "array", "tool_choice": "string or object", "truncation": "string",
	"parallel_tool_calls": "bool", "text": "object", "top_p": "number", "presence_penalty": "number",
	"frequency_penalty": "number", "top_logprobs": "number", "temperature": "number", "reasoning": "object?",
	"usage": "object?", "max_output_tokens": "number?", "max_tool_calls": "number?", "store": "bool",
	"background": "bool", "service_tier": "string", "metadata": "object", "safety_identifier": "string?",
	"prompt_cache_key": "string?",
}

// CheckResource returns what is wrong with a response resource.
func CheckResource(r Object) []string {
	var p []string
	add := func(format string, args ...any) { p = append(p, fmt.Sprintf(format, args...)) }
	for key, kind := range resourceKeys {
		v, there := r[key]
		switch {
		case !there:
			add("key %s is missing", key)
		case v == nil && !strings.HasSuffix(kind, "?"):
			add("key %s is null", key)
		case v != nil && !strings.Contains(kind, kindOf(v)):
			add("key %s is %s, want %s", key, kindOf(v), kind)
		}
	}
	status := str(r, "status")
	output := list(r, "output")
	for i, item := range output {
		o, _ := item.(Object)
		for _, fault := range checkItem(o) {
			add("output[%d]: %s", i, fault)
		}
		switch s := str(o, "status"); {
		case s == "in_progress":
			add("output[%d] is still in progress", i)
		case s == "incomplete" && i < len(output)-1:
			add("output[%d] is incomplete and not the last", i)
		case s == "incomplete" && status == "completed":
			add("output[%d] is incomplete in a completed response", i)
		}
	}
	switch status {
	case "completed", "incomplete":
		if (status == "incomplete") != (r["incomplete_details"] != nil) {
			add("status %s with incomplete_details %v", status, r["incomplete_details"])
		}
		if len(output) == 0 {
			add("no output")
		}
		p = append(p, checkUsage(obj(r, "usage"))...)
	case "failed":
		if e := obj(r, "error"); str(e, "code") == "" || str(e, "message") == "" {
			add("failed with error %v", r["error"])
		}
	case "in_progress", "queued":
		if len(output) > 0 || r["usage"] != nil || r["completed_at"] != nil {
			add("in progress with output, usage or completed_at")
		}
	default:
		add("status is %q", status)
	}
	return p
}

func checkUsage(u Object) []string {
	in, out := num(u, "input_tokens"), num(u, "output_tokens")
	cached := num(obj(u, "input_tokens_details"), "cached_tokens")
	thought := num(obj(u, "output_tokens_details"), "reasoning_tokens")
	if in < 1 || out < 0 || cached < 0 || thought < 0 || cached > in || thought > out || num(u, "total_tokens") != in+out ||
		num(obj(u, "input_tokens_details"), "cache_write_tokens") != 0 {
		return []string{fmt.Sprintf("usage is %v", u)}
	}
	return nil
}

func checkItem(i Object) []string {
	var p []string
	need := func(keys ...string) {
		for _, k := range keys {
			if _, ok := i[k].(string); !ok {
				p = append(p, fmt.Sprintf("%s item: %s is %v", str(i, "type"), k, i[k]))
			}
		}
	}
	need("id", "status")
	prefix := ""
	switch str(i, "type") {
	case "message":
		prefix = "msg_"
		if str(i, "role") != "assistant" || i["content"] == nil {
			p = append(p, "message without role or content")
		}
		for _, part := range list(i, "content") {
			c, _ := part.(Object)
			if str(c, "type") != "output_text" || c["annotations"] == nil || c["logprobs"] == nil {
				p = append(p, fmt.Sprintf("part is %v", c))
			}
		}
	case "function_call":
		prefix = "fc_"
		need("call_id", "name", "arguments")
	case "custom_tool_call":
		prefix = "ctc_"
		need("call_id", "name", "input")
	case "reasoning":
		prefix = "rs_"
		if i["summary"] == nil {
			p = append(p, "reasoning without summary")
		}
	default:
		p = append(p, fmt.Sprintf("item of type %v", i["type"]))
	}
	if !strings.HasPrefix(str(i, "id"), prefix) {
		p = append(p, "id is "+str(i, "id"))
	}
	if id, ok := i["call_id"].(string); ok && (!strings.HasPrefix(id, "call_") || id == str(i, "id")) {
		p = append(p, "call_id is "+id)
	}
	return p
}

func kindOf(v any) string {
	switch v.(type) {
	case string:
		return "string"
	case float64:
		return "number"
	case bool:
		return "bool"
	case []any:
		return "array"
	case Object:
		return "object"
	}
	return "null"
}
