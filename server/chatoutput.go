package server

import "time"

// chatOutput makes a chat completion, whole and as chunks.
type chatOutput struct {
	chunkWriter
	seam
	content  []byte
	thoughts []byte
	logprobs []byte // encoded entries
	calls    []chatCall
	input    *inputScanner // of an open custom call
	finished string        // finish_reason
	usage    usage
}

// chatCall is one call of the answer.
type chatCall struct {
	id   string
	tool *tool
	args []byte
}

var _ completion = (*chatOutput)(nil)

func newChatOutput(m *Model, req *chatRequest, now time.Time) *chatOutput {
	name := req.model
	if name == "" {
		name = m.ID
	}
	return &chatOutput{chunkWriter: newChunkWriter(
		newID(prefixCompletion), name, "chat.completion", "chat.completion.chunk", req.chunking, now)}
}

// start opens the stream with the role.
func (o *chatOutput) start() {
	o.begin()
	o.buf = append(o.buf, `"role":"assistant","content":""`...)
	o.end(nil, "")
}

func (o *chatOutput) text(delta []byte, logprobs []tokenLogprob) {
	delta = o.join(delta)
	o.content = append(o.content, delta...)
	from := len(o.logprobs)
	if from > 0 && len(logprobs) > 0 {
		o.logprobs = append(o.logprobs, ',')
		from++
	}
	o.logprobs = appendLogprobs(o.logprobs, logprobs)
	if o.begin() {
		o.buf = append(o.buf, `"content":`...)
		o.buf = appendString(o.buf, delta)
		o.end(o.logprobs[from:], "")
	}
}

func (o *chatOutput) thought(delta []byte) {
	o.thoughts = append(o.thoughts, delta...)
	if o.begin() {
		o.buf = append(o.buf, `"reasoning_content":`...)
		o.buf = appendString(o.buf, delta)
		o.end(nil, "")
	}
}

func (o *chatOutput) thoughtEnd() {}

func (o *chatOutput) call(t *tool) {
	o.calls = append(o.calls, chatCall{id: newID(prefixCall), tool: t})
	o.input = nil
	if t.custom {
		o.input = &inputScanner{}
	}
	if o.begin() {
		o.buf = append(o.buf, `"tool_calls":[{"index":`...)
		o.buf = appendInt(o.buf, len(o.calls)-1)
		o.buf = append(o.buf, ',')
		o.buf = o.calls[len(o.calls)-1].append(o.buf)
		o.buf = append(o.buf, `}]`...)
		o.end(nil, "")
	}
}

func (o *chatOutput) arguments(delta []byte) {
	if o.input != nil {
		delta = o.input.push(delta)
	}
	o.argumentsDelta(delta)
}

func (o *chatOutput) argumentsDelta(delta []byte) {
	if len(delta) == 0 {
		return
	}
	call := &o.calls[len(o.calls)-1]
	call.args = append(call.args, delta...)
	if o.begin() {
		o.buf = append(o.buf, `"tool_calls":[{"index":`...)
		o.buf = appendInt(o.buf, len(o.calls)-1)
		kind, field := call.kind()
		o.buf = append(o.buf, `,"`+kind+`":{"`+field+`":`...)
		o.buf = appendString(o.buf, delta)
		o.buf = append(o.buf, `}}]`...)
		o.end(nil, "")
	}
}

func (o *chatOutput) callEnd(bool) {
	if o.input != nil {
		o.argumentsDelta(o.input.flush())
		o.input = nil
	}
}

func (o *chatOutput) finish(end outcome) {
	o.callEnd(true)
	o.usage = end.usage
	o.finished = finishReason(end, len(o.calls))
	if !o.on {
		return
	}
	if end.err != nil {
		o.failure(end.err)
	} else {
		o.begin()
		o.end(nil, o.finished)
		o.usageChunk(o.usage)
	}
	o.done()
}

// begin opens a chunk up to the fields of its delta; false where no chunks are
// wanted.
func (o *chatOutput) begin() bool {
	if o.on {
		o.head()
		o.buf = append(o.buf, `,"choices":[{"index":0,"delta":{`...)
	}
	return o.on
}

// end closes a chunk.
func (o *chatOutput) end(logprobs []byte, finished string) {
	o.buf = append(o.buf, `},"logprobs":`...)
	o.buf = appendChatLogprobs(o.buf, logprobs)
	o.tail(finished)
}

func appendChatLogprobs(dst, entries []byte) []byte {
	if len(entries) == 0 {
		return append(dst, "null"...)
	}
	dst = append(dst, `{"content":[`...)
	dst = append(dst, entries...)
	return append(dst, `],"refusal":null}`...)
}

// whole appends the whole object.
func (o *chatOutput) whole(dst []byte) []byte {
	dst = o.appendHead(dst, o.object)
	dst = append(dst, `,"choices":[{"index":0,"message":{"role":"assistant","content":`...)
	if len(o.content) == 0 && len(o.calls) > 0 {
		dst = append(dst, "null"...)
	} else {
		dst = appendString(dst, o.content)
	}
	dst = append(dst, `,"refusal":null`...)
	if len(o.thoughts) > 0 {
		dst = append(dst, `,"reasoning_content":`...)
		dst = appendString(dst, o.thoughts)
	}
	for i := range o.calls {
		if i == 0 {
			dst = append(dst, `,"tool_calls":[{`...)
		} else {
			dst = append(dst, `,{`...)
		}
		dst = append(o.calls[i].append(dst), '}')
	}
	if len(o.calls) > 0 {
		dst = append(dst, ']')
	}
	dst = append(dst, `},"logprobs":`...)
	dst = appendChatLogprobs(dst, o.logprobs)
	dst = append(dst, `,"finish_reason":`...)
	dst = appendString(dst, o.finished)
	dst = append(dst, `}],"usage":`...)
	return append(o.usage.appendChat(dst), '}')
}

// kind names the type of a call and the field of what it is called with.
func (c *chatCall) kind() (kind, field string) {
	if c.tool.custom {
		return "custom", customInput
	}
	return "function", "arguments"
}

// append writes a call as it is so far, without braces.
func (c *chatCall) append(dst []byte) []byte {
	kind, field := c.kind()
	dst = append(dst, `"id":"`...)
	dst = append(dst, c.id...)
	dst = append(dst, `","type":"`+kind+`","`+kind+`":{"name":`...)
	dst = appendString(dst, c.tool.Name)
	dst = append(dst, `,"`+field+`":`...)
	return append(appendString(dst, c.args), '}')
}
