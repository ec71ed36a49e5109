package server

import (
	"quern/models/chat"
	"quern/server/jsonvalue"
)

// chatRequest is the body of POST /v1/chat/completions.
type chatRequest struct {
	task
	chunking
	model   string
	ignored []string
}

// decodeChat reads the body of POST /v1/chat/completions into the task that the
// equivalent request to /v1/responses would give, so that the prompts are equal.
func decodeChat(k *contract, model *Model, body jsonvalue.Value) (*chatRequest, *requestError) {
	f := &fields{contract: k, schemas: model.schemas, model: model.ID}
	m, err := f.body(body)
	if err != nil {
		return nil, err
	}
	r := &chatRequest{model: f.text(m.Get("model")), chunking: f.chunking(m)}
	f.oneAnswer(m)
	f.chatOnly(m)
	messages := m.Get("messages")
	if messages.Empty() {
		f.missing(body, "messages")
	}
	for _, message := range f.array(messages, maxItems) {
		r.items = append(r.items, f.chatMessage(message)...)
	}
	if len(r.items) == 0 {
		f.fail(invalid("messages", codeInvalidValue, "messages is empty: send at least one message"))
	}
	r.tools = f.tools(m.Get("tools"))
	r.choice = f.toolChoice(m.Get("tool_choice"), &r.tools)
	r.parallel = f.flag(m.Get("parallel_tool_calls"), true)
	think := f.object(m.Get("reasoning"))
	f.effort(think.Get("effort"), &r.task)
	f.effort(m.Get("reasoning_effort"), &r.task)
	f.thoughtLimit(m.Get("thinking_budget_tokens"), &r.task)
	f.thoughtLimit(think.Get("max_tokens"), &r.task)
	r.kwargs = f.kwargs(m.Get("chat_template_kwargs"))

	r.sampling = f.sampling(m, model.Defaults)
	r.maxOutput = f.count(m.Get("max_tokens"), 1, anyCount, 0)
	r.maxOutput = f.count(m.Get("max_completion_tokens"), 1, anyCount, r.maxOutput)
	r.stops = f.stops(m.Get("stop"))
	r.format = f.format(m.Get("response_format"))
	r.logprobs = -1
	if top := f.count(m.Get("top_logprobs"), 0, maxTopLogprobs, 0); f.flag(m.Get("logprobs"), top > 0) {
		r.logprobs = top
	}
	r.cacheSalt = f.text(m.Get("cache_salt"))
	r.pinned = !m.Get("prompt_cache_key").Empty()
	r.ignored = f.ignored
	if f.err != nil {
		return nil, f.err
	}
	return r, nil
}

// chunking reads how the answer is sent.
func (f *fields) chunking(m jsonvalue.Members) chunking {
	options := f.object(m.Get("stream_options"))
	return chunking{
		stream:       f.flag(m.Get("stream"), false),
		includeUsage: f.flag(options.Get("include_usage"), false),
		obfuscate:    f.flag(options.Get("include_obfuscation"), false),
	}
}

// oneAnswer refuses what neither chat completions nor completions do here, and
// checks the labels of a request, which change nothing.
func (f *fields) oneAnswer(m jsonvalue.Members) {
	for _, field := range []string{"n", "best_of"} {
		if n := f.count(m.Get(field), 1, anyCount, 1); n != 1 {
			f.fail(invalid(field, codeUnsupported, "%s must be 1, got %d: this node gives one answer a request", field, n))
		}
	}
	if len(f.object(m.Get("logit_bias"))) > 0 {
		f.fail(invalid("logit_bias", codeUnsupported, "logit_bias is not supported by this node"))
	}
	for _, field := range []string{"user", "service_tier"} {
		f.text(m.Get(field))
	}
	f.flag(m.Get("store"), false)
	f.metadata(m.Get("metadata"))
}

// chatOnly refuses the old way of declaring tools and answers that are no text.
func (f *fields) chatOnly(m jsonvalue.Members) {
	if list := m.Get("functions"); len(f.array(list, maxTools)) > 0 {
		f.fail(invalid("functions", codeUnsupported, "functions is not supported: declare them as tools"))
	}
	for _, kind := range f.array(m.Get("modalities"), maxParts) {
		if f.text(kind) != "text" {
			f.fail(invalid(kind.Path(), codeUnsupported, "%s: the model answers with text only", kind.Path()))
		}
	}
	f.ignore(m, "web_search_options", "audio", "prediction")
}

// chatMessage reads one message as the items that it stands for.
func (f *fields) chatMessage(v jsonvalue.Value) []inputItem {
	body := f.object(v)
	if body == nil && f.err == nil {
		f.wrongType(v, "an object")
	}
	if f.err != nil {
		return nil
	}
	content := f.content(body.Get("content"))
	item := inputItem{path: v.Path(), text: content}
	switch role := f.need(v, body.Get("role"), "role"); role {
	case "system", "developer", "user":
		if body.Get("content").Empty() {
			f.missing(v, "content")
		}
		item.role = chat.Role(role)
		return []inputItem{item}
	case "assistant":
		return f.assistantMessage(v, body, item)
	case "tool":
		item.kind = itemOutput
		item.callID, item.idPath = f.callID(v, body, "tool_call_id")
		return []inputItem{item}
	default:
		f.fail(invalid(v.At("role"), codeInvalidValue,
			`%s must be one of "system", "developer", "user", "assistant", "tool", got %q`, v.At("role"), clip(role)))
		return nil
	}
}

// assistantMessage takes an answer apart: thoughts, text, calls.
func (f *fields) assistantMessage(v jsonvalue.Value, body jsonvalue.Members, text inputItem) []inputItem {
	var out []inputItem
	thoughts := f.text(body.Get("reasoning_content"))
	if thoughts == "" {
		thoughts = f.text(body.Get("reasoning"))
	}
	if thoughts != "" {
		out = append(out, inputItem{kind: itemReasoning, text: thoughts, path: v.Path()})
	}
	calls := f.array(body.Get("tool_calls"), maxParts)
	if text.text == "" {
		text.text = f.text(body.Get("refusal"))
	}
	if text.text != "" || len(calls) == 0 {
		text.role = chat.Assistant
		out = append(out, text)
	}
	for _, call := range calls {
		out = append(out, f.chatCall(call))
	}
	return out
}

// chatCall reads one entry of tool_calls; its type may be missing.
func (f *fields) chatCall(v jsonvalue.Value) inputItem {
	body := f.object(v)
	item := inputItem{kind: itemCall, path: v.Path()}
	item.callID, item.idPath = f.callID(v, body, "id")
	if custom := body.Get("custom"); custom.Kind() == jsonvalue.Object {
		inner := f.object(custom)
		item.name = f.name(custom, inner.Get("name"), "name")
		item.arguments = customArguments(f.text(inner.Get("input")))
		return item
	}
	function := body.Get("function")
	if function.Empty() {
		f.missing(v, "function")
	}
	inner := f.object(function)
	item.name = f.name(function, inner.Get("name"), "name")
	if args := inner.Get("arguments"); args.Kind() == jsonvalue.Object {
		item.arguments = string(args.Raw())
	} else {
		item.arguments = f.text(args)
	}
	return item
}
