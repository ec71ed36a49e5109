package template

import (
	"quern/models/chat"
)

// turn is a message on its way into a template. Its texts are guarded, so
// turns can be joined and wrapped freely.
type turn struct {
	role      string
	content   string
	reasoning string
	calls     []call
	callID    string
	name      string
}

type call struct {
	id, name string
	args     string // JSON text as it came, not guarded
}

const (
	system    = string(chat.System)
	developer = string(chat.Developer)
	user      = string(chat.User)
	assistant = string(chat.Assistant)
	tool      = string(chat.ToolRole)
)

func (t turn) empty() bool {
	return t.content == "" && t.reasoning == "" && len(t.calls) == 0
}

func isSystem(t turn) bool { return t.role == system || t.role == developer }

// turns guards the messages of a conversation.
func (r *rendering) turns() []turn {
	ts := make([]turn, 0, len(r.c.Messages)+1)
	for _, m := range r.c.Messages {
		t := turn{
			role: string(m.Role), reasoning: r.g.text(m.Reasoning),
			callID: r.g.text(m.CallID), name: r.g.text(m.Name),
		}
		if t.role == assistant {
			t.content = r.g.answer(m.Content)
		} else {
			t.content = r.g.text(m.Content)
		}
		for _, c := range m.Calls {
			t.calls = append(t.calls, call{r.g.text(c.ID), r.g.text(c.Name), c.Arguments})
		}
		ts = append(ts, t)
	}
	return ts
}
