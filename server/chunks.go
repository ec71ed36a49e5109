package server

import "time"

// chunkWriter is what the answers of chat completions and of completions have
// in common: the head of each object, and how a stream of them ends.
type chunkWriter struct {
	id, model    string
	object       string // of the whole answer
	chunkObject  string
	created      int64
	on           bool // chunks are wanted
	includeUsage bool
	obfuscate    bool

	buf  []byte // chunks that are not sent yet
	from int    // where the last of them begins
}

// chunking is what a request says about its chunks.
type chunking struct {
	stream       bool
	includeUsage bool // a last chunk with the usage
	obfuscate    bool // pad the chunks
}

func newChunkWriter(id, name, object, chunkObject string, o chunking, now time.Time) chunkWriter {
	return chunkWriter{
		id: id, model: name, object: object, chunkObject: chunkObject, created: now.Unix(),
		on: o.stream, includeUsage: o.includeUsage, obfuscate: o.obfuscate,
	}
}

// take returns the chunks that are not sent yet, valid until the next is made.
func (w *chunkWriter) take() []byte {
	buf := w.buf
	w.buf = buf[:0]
	return buf
}

func (w *chunkWriter) head() {
	w.from = len(w.buf)
	w.buf = append(w.buf, "data: "...)
	w.buf = w.appendHead(w.buf, w.chunkObject)
}

func (w *chunkWriter) appendHead(dst []byte, object string) []byte {
	dst = append(dst, `{"id":"`...)
	dst = append(dst, w.id...)
	dst = append(dst, `","object":"`...)
	dst = append(dst, object...)
	dst = append(dst, `","created":`...)
	dst = appendInt(dst, w.created)
	dst = append(dst, `,"model":`...)
	return appendString(dst, w.model)
}

// tail closes the only choice of a chunk, and the chunk.
func (w *chunkWriter) tail(finished string) {
	w.buf = append(w.buf, `,"finish_reason":`...)
	w.buf = appendStringOrNull(w.buf, finished)
	w.buf = append(w.buf, "}]"...)
	if w.includeUsage {
		w.buf = append(w.buf, `,"usage":null`...)
	}
	if w.obfuscate {
		w.buf = appendObfuscation(w.buf, w.from)
	}
	w.buf = append(w.buf, "}\n\n"...)
}

// usageChunk tells the usage, after the last choice.
func (w *chunkWriter) usageChunk(u usage) {
	if w.includeUsage {
		w.head()
		w.buf = append(w.buf, `,"choices":[],"usage":`...)
		w.buf = u.appendChat(w.buf)
		w.buf = append(w.buf, "}\n\n"...)
	}
}

func (w *chunkWriter) failure(e *requestError) {
	w.buf = append(w.buf, `data: {"error":`...)
	w.buf = appendErrorObject(w.buf, e)
	w.buf = append(w.buf, "}\n\n"...)
}

func (w *chunkWriter) done() { w.buf = append(w.buf, "data: [DONE]\n\n"...) }

// finishReason is how a generation ended, in the words of both endpoints.
func finishReason(end outcome, calls int) string {
	switch {
	case end.cut:
		return "length"
	case calls > 0:
		return "tool_calls"
	default:
		return "stop"
	}
}
