package server

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	"quern/models/chat"
	"quern/server/jsonvalue"
)

// itemKind tells the shapes that an input item can have for the model.
type itemKind int

const (
	itemMessage itemKind = iota
	itemReasoning
	itemCall
	itemOutput
)

// inputItem is one item of the history in native form.
type inputItem struct {
	kind      itemKind
	role      chat.Role // of a message
	text      string    // message text, reasoning text or a call's output
	callID    string
	name      string // of a call, as the client names it
	namespace string
	arguments string // of a call, JSON text as it came
	path      string // within the request
	idPath    string // of callID
}

// droppedItems are replayed traces of tools that a hosting service ran, and
// notes of clients to themselves: nothing in them is for the model.
var droppedItems = []string{
	"web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call",
	"computer_call", "computer_call_output", "local_shell_call", "local_shell_call_output",
	"shell_call", "shell_call_output", "apply_patch_call", "apply_patch_call_output",
	"mcp_call", "mcp_list_tools", "mcp_approval_request", "mcp_approval_response",
	"tool_search_call", "tool_search_output", "tool_search_call_output",
	"program", "program_output", "additional_tools", "configuration_update", "compaction_trigger", "ghost_snapshot",
}

// dropped says whether an item is passed over. Calls and outputs of types that
// are newer than this list are traces of hosted tools, too.
func dropped(kind string) bool {
	return slices.Contains(droppedItems, kind) || strings.HasSuffix(kind, "_call") || strings.HasSuffix(kind, "_output")
}

// recall is what a node knows of what it gave to a client.
type recall struct {
	item func(id string) json.RawMessage     // that it produced lately; nil if it knows none
	open func(sealed string) (string, error) // of compaction items; nil reads none
}

func (r recall) find(id string) json.RawMessage {
	if r.item == nil {
		return nil
	}
	return r.item(id)
}

// items reads input: a string is one message of the user.
func (f *fields) items(v jsonvalue.Value, find recall) []inputItem {
	switch v.Kind() {
	case jsonvalue.Absent, jsonvalue.Null:
		return nil
	case jsonvalue.String:
		return []inputItem{{kind: itemMessage, role: chat.User, text: f.text(v), path: v.Path()}}
	case jsonvalue.Array:
	default:
		f.wrongType(v, "a string or an array of items")
		return nil
	}
	var out []inputItem
	for _, e := range f.array(v, maxItems) {
		if e.Kind() != jsonvalue.Object {
			f.wrongType(e, "an object")
		}
		item, keep := f.item(e, find)
		if f.err != nil {
			return nil
		}
		if keep {
			out = append(out, item)
		}
	}
	return out
}

// item reads one item; keep is false for one that says nothing to the model.
func (f *fields) item(v jsonvalue.Value, find recall) (item inputItem, keep bool) {
	body := f.object(v)
	item.path = v.Path()
	kind := f.itemType(v, body)
	if f.err != nil {
		return item, false
	}
	if slices.Contains(f.rules().ignoredItems, kind) {
		f.pass(v.Path(), kind)
		return item, false
	}
	switch kind {
	case "message":
		return f.message(v, body, item), true
	case "reasoning":
		return f.reasoningItem(body, item), true
	case "function_call":
		return f.call(v, body, item, "arguments"), true
	case "custom_tool_call":
		return f.call(v, body, item, customInput), true
	case "function_call_output", "custom_tool_call_output":
		return f.output(v, body, item), true
	case "item_reference":
		return f.reference(v, body, find)
	case "agent_message":
		return f.agentMessage(v, body, item)
	case "context_compaction":
		if body.Get("encrypted_content").Empty() {
			return item, false // a mark without a note
		}
		return f.compaction(v, body, item, find), true
	case "compaction", "compaction_summary":
		return f.compaction(v, body, item, find), true
	default:
		if !dropped(kind) {
			f.fail(invalid(v.At("type"), codeInvalidValue, "%s %q is not a known type of item", v.At("type"), clip(kind)))
		}
		f.pass(v.Path(), kind)
	}
	return item, false
}

// itemType returns the type of an item, which clients leave out where it shows:
// a role makes a message, and an id alone a reference.
func (f *fields) itemType(v jsonvalue.Value, body jsonvalue.Members) string {
	switch t := body.Get("type"); {
	case !t.Empty():
		return f.text(t)
	case !body.Get("role").Empty():
		return "message"
	case !body.Get("id").Empty() && len(body) <= 2:
		return "item_reference"
	}
	f.missing(v, "type")
	return ""
}

func (f *fields) message(v jsonvalue.Value, body jsonvalue.Members, item inputItem) inputItem {
	item.kind = itemMessage
	role := f.name(v, body.Get("role"), "role")
	switch role {
	case "user", "assistant", "system", "developer":
		item.role = chat.Role(role)
	case "":
	default:
		f.fail(invalid(v.At("role"), codeInvalidValue, `%s must be one of "user", "assistant", "system", "developer", got %q`, v.At("role"), clip(role)))
	}
	content := body.Get("content")
	if content.Empty() && item.role != chat.Assistant {
		f.missing(v, "content")
	}
	item.text = f.content(content)
	return item
}

// agentMessage reads what one agent of a client has written to another: Codex
// puts it into the history of the one that gets it, beside what its user says.
func (f *fields) agentMessage(v jsonvalue.Value, body jsonvalue.Members, item inputItem) (inputItem, bool) {
	item.kind, item.role = itemMessage, chat.User
	text := f.content(body.Get("content"))
	if text == "" { // nothing, or sealed for another
		f.pass(v.Path(), "agent_message without text")
		return item, false
	}
	item.text = "Message from the agent " + f.text(body.Get("author")) + ":\n" + text
	return item, true
}

// content reads the text of a string or of an array of parts, one part a line.
func (f *fields) content(v jsonvalue.Value) string {
	switch v.Kind() {
	case jsonvalue.Absent, jsonvalue.Null:
		return ""
	case jsonvalue.String:
		return f.text(v)
	case jsonvalue.Array:
	default:
		f.wrongType(v, "a string or an array of parts")
		return ""
	}
	var texts []string
	for _, part := range f.array(v, maxParts) {
		if part.Kind() == jsonvalue.String {
			texts = append(texts, f.text(part))
			continue
		}
		if part.Kind() != jsonvalue.Object {
			f.wrongType(part, "an object")
		}
		if kind, _ := part.Field("type").Text(); slices.Contains(f.rules().ignoredParts, kind) {
			f.pass(part.Path(), kind)
			continue
		}
		if kind, _ := part.Field("type").Text(); kind == "encrypted_content" {
			f.pass(part.Path(), kind) // for the service that has sealed it
			continue
		}
		texts = append(texts, f.part(part))
		if f.err != nil {
			return ""
		}
	}
	return strings.Join(texts, "\n")
}

// part reads the text of one part. The types are checked alike in every place:
// clients mix input_text, output_text and text freely.
func (f *fields) part(v jsonvalue.Value) string {
	body := f.object(v)
	kind := f.name(v, body.Get("type"), "type")
	switch kind {
	case "":
		return ""
	case "input_text", "output_text", "text", "summary_text", "reasoning_text":
		return f.need(v, body.Get("text"), "text")
	case "refusal":
		return f.need(v, body.Get("refusal"), "refusal")
	case "input_image", "image_url", "image":
		f.image(v, body)
		f.fail(invalid(v.Path(), codeUnsupported, "%s: the model %q takes no image input; none of this node does", v.Path(), f.model))
	case "input_file", "file", "input_audio", "audio", "input_video", "video_url":
		f.fail(invalid(v.Path(), codeUnsupported, "%s: the model %q takes text only, no %s", v.Path(), f.model, kind))
	default:
		f.fail(invalid(v.At("type"), codeInvalidValue, "%s %q is not a known type of part", v.At("type"), clip(kind)))
	}
	return ""
}

// image counts the bytes of an image that comes as a data URL, under the names
// that the endpoints have for it.
func (f *fields) image(v jsonvalue.Value, body jsonvalue.Members) {
	url := body.Get("image_url")
	if url.Kind() == jsonvalue.Object {
		url = url.Field("url")
	}
	_, data, _ := bytes.Cut(url.Raw(), []byte(";base64,"))
	f.images += int64(base64.StdEncoding.DecodedLen(len(data)))
	if limit := f.rules().limits.withDefaults().Images; f.images > limit {
		f.fail(invalid(v.Path(), codeTooLarge, "up to %s the request holds %d bytes of images, the limit of this node is %d (--max-images)", v.Path(), f.images, limit))
	}
}

// reasoningItem reads the thoughts of an earlier turn: the text itself where it
// was kept, else the summary, which a quern fills with the same text. Opaque
// content of others says nothing.
func (f *fields) reasoningItem(body jsonvalue.Members, item inputItem) inputItem {
	item.kind = itemReasoning
	item.text = f.content(body.Get("content"))
	if summary := f.content(body.Get("summary")); item.text == "" {
		item.text = summary
	}
	f.text(body.Get("encrypted_content"))
	return item
}

// call reads a call of a function or of a custom tool, whose text becomes the
// one argument that such a tool has for the model.
func (f *fields) call(v jsonvalue.Value, body jsonvalue.Members, item inputItem, payload string) inputItem {
	item.kind = itemCall
	item.callID, item.idPath = f.callID(v, body, "call_id")
	item.name = f.name(v, body.Get("name"), "name")
	item.namespace = f.text(body.Get("namespace"))
	if body.Get(payload).Kind() == jsonvalue.Absent {
		f.missing(v, payload)
	}
	item.arguments = f.text(body.Get(payload))
	if payload == customInput {
		item.arguments = customArguments(item.arguments)
	}
	return item
}

// customArguments puts the text of a custom call where the model writes it.
func customArguments(input string) string {
	return string(append(appendString([]byte(`{"input":`), input), '}'))
}

func (f *fields) output(v jsonvalue.Value, body jsonvalue.Members, item inputItem) inputItem {
	item.kind = itemOutput
	item.callID, item.idPath = f.callID(v, body, "call_id")
	output := body.Get("output")
	if output.Kind() == jsonvalue.Absent {
		f.missing(v, "output")
	}
	item.text = f.content(output)
	return item
}

// callID reads the id of a call; an error without one names the field, so that
// the author of an injected item finds it.
func (f *fields) callID(v jsonvalue.Value, body jsonvalue.Members, field string) (id, path string) {
	id, path = f.name(v, body.Get(field), field), v.At(field)
	if len(id) > maxCallIDLength {
		f.fail(invalid(path, codeTooLarge, "%s has %d bytes, the limit is %d", path, len(id), maxCallIDLength))
	}
	return id, path
}

// reference replaces a reference by the item that this node produced.
func (f *fields) reference(v jsonvalue.Value, body jsonvalue.Members, find recall) (inputItem, bool) {
	id := f.name(v, body.Get("id"), "id")
	if f.err != nil {
		return inputItem{}, false
	}
	raw := find.find(id)
	if raw == nil {
		f.fail(notFound(v.At("id"), codeItemNotFound, "%s: item %q is not known here: this node stores no responses and remembers only its latest items. Send the item itself", v.At("id"), clip(id)))
		return inputItem{}, false
	}
	found, err := jsonvalue.Parse(raw, maxDepth)
	if err != nil {
		f.fail(internal("a remembered item can't be read"))
		return inputItem{}, false
	}
	item, keep := f.item(found, find)
	item.path = v.Path()
	return item, keep
}
