package server

import (
	"maps"
	"net/http"
	"slices"
	"strings"
)

// eventWriter encodes the events of one response stream into a buffer, which
// the caller sends with one write and one flush per delivery of the engine.
// It is off for a response that is answered as one object: the same code makes
// the items, and no event is spelled out.
type eventWriter struct {
	on        bool
	lines     bool        // one event a line, for a socket: no frames of SSE
	obfuscate bool        // pad deltas to sizes that don't tell their text
	headers   http.Header // told with the first event, where a turn has no header of its own
	buf       []byte
	seq       int
}

// begin opens a frame. The body is one JSON object on one data line.
func (w *eventWriter) begin(kind string) {
	if !w.lines {
		w.buf = append(w.buf, "event: "...)
		w.buf = append(w.buf, kind...)
		w.buf = append(w.buf, "\ndata: "...)
	}
	w.buf = append(w.buf, `{"type":"`...)
	w.buf = append(w.buf, kind...)
	w.buf = append(w.buf, `","sequence_number":`...)
	w.buf = appendInt(w.buf, w.seq)
	w.seq++
}

func (w *eventWriter) end() {
	w.buf = append(w.buf, "}\n"...)
	if !w.lines {
		w.buf = append(w.buf, '\n')
	}
}

// done appends the frame that ends every stream.
func (w *eventWriter) done() {
	if w.on && !w.lines {
		w.buf = append(w.buf, "data: [DONE]\n\n"...)
	}
}

// snapshot tells the whole response: created, in_progress, and the terminal ones.
func (w *eventWriter) snapshot(kind string, r *resource) {
	if !w.on {
		return
	}
	first := w.seq == 0
	w.begin(kind)
	w.buf = append(w.buf, `,"response":`...)
	w.buf = r.append(w.buf)
	if first {
		w.told()
	}
	w.end()
}

// told tells the headers that an answer to a POST would have, where there are any.
func (w *eventWriter) told() {
	if len(w.headers) == 0 {
		return
	}
	open := byte('{')
	w.buf = append(w.buf, `,"headers":`...)
	for _, name := range slices.Sorted(maps.Keys(w.headers)) {
		w.buf = appendString(append(w.buf, open), strings.ToLower(name))
		w.buf = appendString(append(w.buf, ':'), w.headers.Get(name))
		open = ','
	}
	w.buf = append(w.buf, '}')
}

// item tells a whole output item: output_item.added and output_item.done.
func (w *eventWriter) item(kind string, index int, item []byte) {
	if !w.on {
		return
	}
	w.begin(kind)
	w.buf = append(w.buf, `,"output_index":`...)
	w.buf = appendInt(w.buf, index)
	w.buf = append(w.buf, `,"item":`...)
	w.buf = append(w.buf, item...)
	w.end()
}

// place names the part of an item that an event is about. The field is
// content_index, summary_index, or "" for items without parts.
type place struct {
	itemID string
	index  int
	field  string
}

func (w *eventWriter) beginAt(kind string, p place) {
	w.begin(kind)
	w.buf = append(w.buf, `,"item_id":"`...)
	w.buf = append(w.buf, p.itemID...) // an id of ours needs no escape
	w.buf = append(w.buf, `","output_index":`...)
	w.buf = appendInt(w.buf, p.index)
	if p.field != "" {
		w.buf = append(w.buf, `,"`...)
		w.buf = append(w.buf, p.field...)
		w.buf = append(w.buf, `":0`...) // our items have one part
	}
}

// part tells a part of an item: content_part and reasoning_summary_part.
func (w *eventWriter) part(kind string, p place, part []byte) {
	if !w.on {
		return
	}
	w.beginAt(kind, p)
	w.buf = append(w.buf, `,"part":`...)
	w.buf = append(w.buf, part...)
	w.end()
}

// delta tells a piece of text. logprobs is an encoded list without its
// brackets; only events whose kind has one carry it.
func (w *eventWriter) delta(kind string, p place, text, logprobs []byte, hasLogprobs bool) {
	if !w.on {
		return
	}
	from := len(w.buf)
	w.beginAt(kind, p)
	w.buf = append(w.buf, `,"delta":`...)
	w.buf = appendString(w.buf, text)
	w.logprobs(logprobs, hasLogprobs)
	if w.obfuscate {
		w.buf = appendObfuscation(w.buf, from)
	}
	w.end()
}

// whole tells the text that the deltas add up to, in the named field.
func (w *eventWriter) whole(kind string, p place, field string, text, logprobs []byte, hasLogprobs bool) {
	if !w.on {
		return
	}
	w.beginAt(kind, p)
	w.buf = append(w.buf, `,"`...)
	w.buf = append(w.buf, field...)
	w.buf = append(w.buf, `":`...)
	w.buf = appendString(w.buf, text)
	w.logprobs(logprobs, hasLogprobs)
	w.end()
}

// arguments tells the whole arguments of a function call.
func (w *eventWriter) arguments(p place, name string, args []byte) {
	if !w.on {
		return
	}
	w.beginAt("response.function_call_arguments.done", p)
	w.buf = append(w.buf, `,"name":`...)
	w.buf = appendString(w.buf, name)
	w.buf = append(w.buf, `,"arguments":`...)
	w.buf = appendString(w.buf, args)
	w.end()
}

func (w *eventWriter) logprobs(list []byte, has bool) {
	if !has {
		return
	}
	w.buf = append(w.buf, `,"logprobs":[`...)
	w.buf = append(w.buf, list...)
	w.buf = append(w.buf, ']')
}

// progressing tells the whole response, which is still being made, and how far
// it has come.
func (w *eventWriter) progressing(r *resource, p progress) {
	if !w.on {
		return
	}
	w.begin("response.in_progress")
	w.buf = append(w.buf, `,"response":`...)
	w.buf = r.append(w.buf)
	w.buf = append(w.buf, `,"progress":`...)
	w.buf = p.append(w.buf)
	w.end()
}

// failure tells an error, which response.failed repeats. On a socket that one
// stands alone: the end of a turn must be one message there, since the next
// turn's follow it.
func (w *eventWriter) failure(e *requestError) {
	if w.on && !w.lines {
		w.error(e, 0)
	}
}

// error tells an error in both contracts at once: flat for OpenAI's clients,
// nested for those of Open Responses. The status, unless it is 0, is what the
// answer to a POST would have.
func (w *eventWriter) error(e *requestError, status int) {
	w.begin("error")
	if status != 0 {
		w.buf = append(w.buf, `,"status":`...)
		w.buf = appendInt(w.buf, status)
	}
	w.buf = append(w.buf, `,"code":`...)
	w.buf = appendStringOrNull(w.buf, e.Code)
	w.buf = append(w.buf, `,"message":`...)
	w.buf = appendString(w.buf, e.Message)
	w.buf = append(w.buf, `,"param":`...)
	w.buf = appendStringOrNull(w.buf, e.Param)
	w.buf = append(w.buf, `,"error":`...)
	w.buf = appendErrorObject(w.buf, e)
	w.told()
	w.end()
}
