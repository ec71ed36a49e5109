package server

import (
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"quern/models/chat"
	"quern/server/jsonvalue"
)

// What the model is asked for when a conversation is compacted, and how its
// answer stands in the conversations that go on from there.
const (
	compactAsk = "Stop here. Write a handover note for yourself that replaces the conversation above, which you will not see again. " +
		"Keep every fact, name, number, path, decision and open task that is needed to go on, and what the user asked for and prefers. " +
		"Write only the note, as short sentences."
	compactHead = "Note on the conversation so far:\n"
)

// compactTokens bounds the note; a quarter of the window does in a small one.
const compactTokens = 1024

// compact is POST /v1/responses/compact: the model sums up the conversation, and
// the client gets the note as an item that only this node can read.
func (s *Server) compact(c *gin.Context) *requestError {
	ex := exchangeOf(c)
	m, req, refused := s.readCompact(c)
	if refused != nil {
		return refused
	}
	ctx, leave, refused := s.enter(c)
	if refused != nil {
		return refused
	}
	defer leave()

	kept := keptMessages(req.items)
	plain := strings.TrimSpace(plainConversation(req.items))
	m.askForNote(&req.task, len(plain))
	j, refused := m.prepare(ctx, &req.task)
	if refused != nil {
		return refused
	}
	note, id := &noteSink{}, newID(prefixResponse)
	ex.note(id, req.model, false, j.text, note.String)
	stream, refused := s.submit(ctx, m, j, id, ex)
	if refused != nil {
		return refused
	}
	end := s.generate(ctx, stream, newTranscript(m, j, note), collected{}, ex)
	if end.err != nil {
		return end.err
	}
	text := strings.TrimSpace(note.String())
	if text == "" || plain != "" && len(text) >= len(plain) {
		// A model that has nothing to say, or goes round in circles, must not cost
		// what was said.
		text = plain
	}
	body := appendCompaction(nil, id, kept, s.seal.close(ex.owner, text), end.usage)
	writeBody(c.Writer, c.Request, http.StatusOK, "application/json", append(body, '\n'))
	return nil
}

// readCompact reads a request, which has the fields of a create request.
func (s *Server) readCompact(c *gin.Context) (*Model, *createRequest, *requestError) {
	m, req, refused := s.readCreate(c)
	if refused != nil {
		return nil, nil, refused
	}
	if req.model == "" {
		return nil, nil, invalid("model", codeMissing, "model is required")
	}
	if len(req.items) == 0 {
		return nil, nil, invalid("input", codeMissing, "input is required: it is what is to be compacted")
	}
	if refused := s.admit(m, exchangeOf(c), req.model, &req.task); refused != nil {
		return nil, nil, refused
	}
	s.tellIgnored(exchangeOf(c), req.ignored)
	return m, req, nil
}

// askForNote turns the task of a conversation into that of summing it up: no
// tools, no format, no thoughts, and near the likeliest words. A note longer than
// the conversation, which has so many bytes, is of no use, and a token has one or more.
func (m *Model) askForNote(t *task, bytes int) {
	limit := min(compactTokens, m.Engine.MaxLength()/4)
	if bytes > 0 {
		limit = min(limit, bytes)
	}
	off := false
	t.items = append(t.items, inputItem{kind: itemMessage, role: chat.User, text: compactAsk, path: "input"})
	t.choice = toolChoice{mode: choiceNone}
	t.format, t.stops, t.logprobs, t.maxCalls = textFormat{}, nil, -1, 0
	t.thinking, t.effort = &off, ""
	t.sampling.Temperature = 0
	t.truncate = true
	t.maxOutput = max(1, limit)
}

// keptMessages are the rules of a conversation, which no summary replaces.
func keptMessages(items []inputItem) []inputItem {
	var kept []inputItem
	for _, item := range items {
		if item.kind == itemMessage && item.role != chat.User && item.role != chat.Assistant {
			kept = append(kept, item)
		}
	}
	return kept
}

// plainConversation writes down what was said, a line each, without the rules that
// keptMessages keeps.
func plainConversation(items []inputItem) string {
	var b strings.Builder
	for _, item := range items {
		switch item.kind {
		case itemMessage:
			if item.role == chat.User || item.role == chat.Assistant {
				b.WriteString(string(item.role) + ": " + item.text + "\n")
			}
		case itemCall:
			b.WriteString("call of " + item.name + ": " + item.arguments + "\n")
		case itemOutput:
			b.WriteString("result: " + item.text + "\n")
		}
	}
	return b.String()
}

func appendCompaction(dst []byte, id string, kept []inputItem, sealed string, u usage) []byte {
	dst = append(dst, `{"id":`...)
	dst = appendString(dst, id)
	dst = append(dst, `,"object":"response.compaction","created_at":`...)
	dst = appendInt(dst, time.Now().Unix())
	dst = append(dst, `,"output":[`...)
	for _, item := range kept {
		dst = append(dst, `{"id":`...)
		dst = appendString(dst, newID(prefixMessage))
		dst = append(dst, `,"type":"message","status":"completed","role":`...)
		dst = appendString(dst, string(item.role))
		dst = append(dst, `,"content":[{"type":"input_text","text":`...)
		dst = append(appendString(dst, item.text), `}]},`...)
	}
	dst = append(dst, `{"id":`...)
	dst = appendString(dst, newID(prefixCompaction))
	dst = append(dst, `,"type":"compaction","encrypted_content":`...)
	dst = appendString(dst, sealed)
	dst = append(dst, `}],"usage":`...)
	return append(u.append(dst), '}')
}

// compaction reads a note that compact has made.
func (f *fields) compaction(v jsonvalue.Value, body jsonvalue.Members, item inputItem, known recall) inputItem {
	item.kind, item.role = itemMessage, chat.User
	sealed := f.need(v, body.Get("encrypted_content"), "encrypted_content")
	if f.err != nil {
		return item
	}
	at := v.At("encrypted_content")
	if known.open == nil {
		f.fail(invalid(at, codeUnsupported, "%s can't be read here: send the history itself", at))
		return item
	}
	text, err := known.open(sealed)
	if err != nil {
		f.fail(invalid(at, codeInvalidValue, "%s can't be read: %s. Send the history itself", at, err))
	}
	item.text = compactHead + text
	return item
}

// noteSink collects the text of an answer.
type noteSink struct {
	strings.Builder
	seam
}

var _ sink = (*noteSink)(nil)

func (n *noteSink) text(delta []byte, _ []tokenLogprob) { n.Write(n.join(delta)) }
func (n *noteSink) thought([]byte)                      {}
func (n *noteSink) thoughtEnd()                         {}
func (n *noteSink) call(*tool)                          {}
func (n *noteSink) arguments([]byte)                    {}
func (n *noteSink) callEnd(bool)                        {}
func (n *noteSink) finish(outcome)                      {}
