package server

import (
	"bytes"
	"encoding/json"
	"strings"

	"quern/server/jsonvalue"
)

// appendInputItems writes the input of a request as items that each have a type
// and an id, comma between them: what is stored, and what /input_items lists.
// References are replaced by what they stand for.
func appendInputItems(dst []byte, input jsonvalue.Value, find recall) []byte {
	if input.Kind() == jsonvalue.String {
		dst = append(dst, `{"id":"`+newID(prefixMessage)+`","type":"message","role":"user","content":`...)
		return append(appendTextParts(dst, "input_text", input.Raw()), '}')
	}
	for i, e := range input.Elements() {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendInputItem(dst, e, find)
	}
	return dst
}

// appendInputItem writes one item, of a request that has been read without fault.
func appendInputItem(dst []byte, v jsonvalue.Value, find recall) []byte {
	f := &fields{}
	kind := f.itemType(v, f.object(v))
	id, _ := v.Field("id").Text()
	if kind == "item_reference" {
		if raw := find.find(id); raw != nil {
			return append(dst, raw...)
		}
	}
	if id == "" {
		id = newID(itemPrefix(kind))
	}
	dst = appendString(append(dst, `{"id":`...), id)
	dst = appendString(append(dst, `,"type":`...), kind)
	for key, field := range v.Fields() {
		switch {
		case key == "id" || key == "type":
			continue
		case key == "content" && kind == "message" && field.Kind() == jsonvalue.String:
			part := "input_text"
			if role, _ := v.Field("role").Text(); role == "assistant" {
				part = "output_text"
			}
			dst = appendTextParts(append(dst, `,"content":`...), part, field.Raw())
		default:
			dst = append(appendString(append(dst, ','), key), ':')
			dst = appendCompact(dst, field.Raw())
		}
	}
	return append(dst, '}')
}

// appendTextParts writes a text, given as JSON, as a list of one part.
func appendTextParts(dst []byte, kind string, text json.RawMessage) []byte {
	dst = append(append(dst, `[{"type":"`...), kind...)
	dst = append(dst, `","text":`...)
	dst = appendCompact(dst, text)
	if kind == "output_text" {
		dst = append(dst, `,"annotations":[]`...)
	}
	return append(dst, `}]`...)
}

func itemPrefix(kind string) string {
	switch kind {
	case "message":
		return prefixMessage
	case "reasoning":
		return prefixReasoning
	case "function_call":
		return prefixFunction
	case "custom_tool_call":
		return prefixCustom
	case "compaction", "compaction_summary":
		return prefixCompaction
	}
	return strings.TrimSuffix(kind, "_call_output") + "_"
}

// itemPage is a part of a list of items.
type itemPage struct {
	items []jsonvalue.Value
	more  bool
}

// pageOf cuts a page out of stored items: behind the item named by after, from
// the end of the list where it is not ascending. ok is false where there is no
// such item.
func pageOf(items []byte, ascending bool, after string, limit int) (p itemPage, ok bool) {
	v, err := jsonvalue.Parse(append(append([]byte{'['}, items...), ']'), maxDepth+1)
	if err != nil {
		return p, false
	}
	for _, e := range v.Elements() {
		p.items = append(p.items, e)
	}
	if !ascending {
		for i, j := 0, len(p.items)-1; i < j; i, j = i+1, j-1 {
			p.items[i], p.items[j] = p.items[j], p.items[i]
		}
	}
	if after != "" {
		at := -1
		for i := range p.items {
			if idOf(p.items[i]) == after {
				at = i
			}
		}
		if at < 0 {
			return p, false
		}
		p.items = p.items[at+1:]
	}
	if len(p.items) > limit {
		p.items, p.more = p.items[:limit], true
	}
	return p, true
}

func idOf(v jsonvalue.Value) string {
	id, _ := v.Field("id").Text()
	return id
}

// append writes the page as OpenAI's lists are.
func (p itemPage) append(dst []byte) []byte {
	var first, last string
	if n := len(p.items); n > 0 {
		first, last = idOf(p.items[0]), idOf(p.items[n-1])
	}
	raw := make([][]byte, len(p.items))
	for i := range p.items {
		raw[i] = p.items[i].Raw()
	}
	dst = append(dst, `{"object":"list","data":[`...)
	dst = append(dst, bytes.Join(raw, []byte{','})...)
	dst = appendStringOrNull(append(dst, `],"first_id":`...), first)
	dst = appendStringOrNull(append(dst, `,"last_id":`...), last)
	dst = appendBool(append(dst, `,"has_more":`...), p.more)
	return append(dst, '}')
}
