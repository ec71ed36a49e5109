package server

import (
	"time"
	"unicode/utf8"
)

// textOutput makes a text completion, whole and as chunks. Its model's output
// is read without a format, so that all of it is text.
type textOutput struct {
	chunkWriter
	content  []byte
	wanted   bool // logprobs are
	logprobs textLogprobs
	finished string
	usage    usage
}

var _ completion = (*textOutput)(nil)

func newTextOutput(m *Model, req *textRequest, now time.Time) *textOutput {
	name := req.model
	if name == "" {
		name = m.ID
	}
	return &textOutput{
		chunkWriter: newChunkWriter(newID(prefixText), name, "text_completion", "text_completion", req.chunking, now),
		wanted:      req.logprobs >= 0,
	}
}

// start tells the prompt where it is to be repeated; content holds it.
func (o *textOutput) start() {
	if len(o.content) > 0 {
		o.chunk(o.content, nil, "")
	}
}

func (o *textOutput) text(delta []byte, logprobs []tokenLogprob) {
	o.content = append(o.content, delta...)
	var now textLogprobs
	if o.wanted {
		now = o.logprobs.next(logprobs)
	}
	if o.on {
		o.chunk(delta, &now, "")
	}
}

func (o *textOutput) chunk(delta []byte, logprobs *textLogprobs, finished string) {
	o.head()
	o.buf = append(o.buf, `,"choices":[{"index":0,"text":`...)
	o.buf = appendString(o.buf, delta)
	o.buf = append(o.buf, `,"logprobs":`...)
	o.buf = logprobs.append(o.buf, o.wanted)
	o.tail(finished)
}

func (o *textOutput) thought(delta []byte) { o.text(delta, nil) }
func (o *textOutput) thoughtEnd()          {}
func (o *textOutput) messageEnd()          {}
func (o *textOutput) call(*tool)           {}
func (o *textOutput) arguments([]byte)     {}
func (o *textOutput) callEnd(bool)         {}

func (o *textOutput) finish(end outcome) {
	o.usage, o.finished = end.usage, finishReason(end, 0)
	switch {
	case !o.on:
		return
	case end.err != nil:
		o.failure(end.err)
	default:
		o.chunk(nil, nil, o.finished)
		o.usageChunk(o.usage)
	}
	o.done()
}

// whole appends the whole object.
func (o *textOutput) whole(dst []byte) []byte {
	dst = o.appendHead(dst, o.object)
	dst = append(dst, `,"choices":[{"index":0,"text":`...)
	dst = appendString(dst, o.content)
	dst = append(dst, `,"logprobs":`...)
	dst = o.logprobs.append(dst, o.wanted)
	dst = append(dst, `,"finish_reason":`...)
	dst = appendStringOrNull(dst, o.finished)
	dst = append(dst, `}],"usage":`...)
	return append(o.usage.appendChat(dst), '}')
}

// textLogprobs are log probabilities in the form of the endpoint: four lists of
// equal length, encoded without their brackets.
type textLogprobs struct {
	tokens, chosen, top, offsets []byte
	length                       int // characters so far
}

// next adds tokens and returns them alone.
func (l *textLogprobs) next(list []tokenLogprob) textLogprobs {
	from := *l
	for i := range list {
		l.add(&list[i])
	}
	return textLogprobs{
		tokens: since(l.tokens, from.tokens), chosen: since(l.chosen, from.chosen),
		top: since(l.top, from.top), offsets: since(l.offsets, from.offsets),
	}
}

// since is what a list has more than before, without the comma between.
func since(list, before []byte) []byte {
	added := list[len(before):]
	if len(before) > 0 && len(added) > 0 {
		return added[1:]
	}
	return added
}

func (l *textLogprobs) add(t *tokenLogprob) {
	if len(l.tokens) > 0 {
		for _, list := range []*[]byte{&l.tokens, &l.chosen, &l.top, &l.offsets} {
			*list = append(*list, ',')
		}
	}
	l.tokens = appendString(l.tokens, t.text)
	l.chosen = appendFloat32(l.chosen, t.logprob)
	l.offsets = appendInt(l.offsets, l.length)
	l.length += utf8.RuneCount(t.text)
	l.top = append(l.top, '{')
	for i, a := range t.top {
		if i > 0 {
			l.top = append(l.top, ',')
		}
		l.top = append(appendString(l.top, a.text), ':')
		l.top = appendFloat32(l.top, a.logprob)
	}
	l.top = append(l.top, '}')
}

// append writes the lists, or null where they are not wanted or l is nil.
func (l *textLogprobs) append(dst []byte, wanted bool) []byte {
	if !wanted || l == nil {
		return append(dst, "null"...)
	}
	for _, part := range []struct {
		head string
		list []byte
	}{{`{"tokens":[`, l.tokens}, {`],"token_logprobs":[`, l.chosen}, {`],"top_logprobs":[`, l.top}, {`],"text_offset":[`, l.offsets}} {
		dst = append(append(dst, part.head...), part.list...)
	}
	return append(dst, "]}"...)
}
