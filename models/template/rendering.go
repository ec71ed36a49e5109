package template

import (
	"strings"
	"time"

	"quern/models/chat"
	"quern/models/template/dialect"
)

// rendering is the work of one Render call.
type rendering struct {
	v        *variant
	c        *chat.Conversation
	g        *guard
	spelling dialect.Spelling
	now      time.Time
	lost     bool // some message does not show up in the prompt
}

func newRendering(v *variant, c *chat.Conversation, special func(string) bool, now time.Time) *rendering {
	return &rendering{v: v, c: c, now: now, g: &guard{
		special: special,
		absent:  func(s string) bool { return !holds(c, s) },
	}}
}

// prompt arranges the conversation for a template with these caps and renders
// it.
func (r *rendering) prompt(caps Caps) (Prompt, error) {
	ts := r.turns()
	toolText := ""
	if len(r.c.Tools) > 0 && !caps.Tools {
		// The words ask for calls in one form, so history is to show that form.
		var err error
		if toolText, err = r.toolText(); err != nil {
			return Prompt{}, err
		}
		caps.ToolCalls, caps.ToolRole = false, false
	}
	tr := r.v.traits
	if caps == plainest || !caps.RepeatedUser {
		tr.needsUser = true
	}
	ts = arrange(ts, caps, tr, toolText, r.worded)
	if r.v.tuning.afterResults != "" && caps.ToolRole {
		r.markResults(ts)
	}
	if n := len(ts) - 1; r.c.ContinueLast && n >= 0 && ts[n].role == assistant && len(ts[n].calls) == 0 {
		return r.continued(ts)
	}
	text, err := r.run(ts, toolText == "", true)
	if err != nil {
		return Prompt{}, err
	}
	r.lost = !r.shows(text)
	segs, _, err := r.g.resolve(text, r.v.tuning.anchor, r.v.tuning.afterResults)
	return Prompt{segs}, err
}

// continued renders a conversation whose last message is to be written on: the
// prompt ends where that text ends. Where the template does not write the text
// at all, it is put behind the opening of an answer.
func (r *rendering) continued(ts []turn) (Prompt, error) {
	n := len(ts) - 1
	begun := ts[n].content
	ts[n].content += r.g.add(standIn{mark: markCut})
	text, err := r.run(ts, true, false)
	if err == nil {
		segs, cut, err := r.g.resolve(text, r.v.tuning.anchor, r.v.tuning.afterResults)
		if err != nil || cut {
			return Prompt{segs}, err
		}
	}
	if text, err = r.run(ts[:n], true, true); err != nil {
		return Prompt{}, err
	}
	segs, _, err := r.g.resolve(text+begun, r.v.tuning.anchor, r.v.tuning.afterResults)
	return Prompt{segs}, err
}

// run renders turns as they are.
func (r *rendering) run(ts []turn, tools, open bool) (string, error) {
	vars, err := r.variables(ts, tools, open)
	if err != nil {
		return "", err
	}
	return r.v.prog.Render(vars, r.env())
}

func (r *rendering) env() dialect.Env {
	return dialect.Env{Now: r.now, Spelling: &r.spelling, InJSON: r.g.inJSON}
}

// shows tells whether every text that was said, and every tool, stands in the
// rendered text. A template may trim and may cut thoughts off, so only the beginning of a text
// is looked for, and answers with thoughts in them are passed over.
func (r *rendering) shows(text string) bool {
	const enough = 40
	rest := text // texts come in order, mostly, and so do tools
	for _, t := range r.c.Tools {
		if i := strings.Index(rest, t.Name); i >= 0 {
			rest = rest[i:]
		} else if !strings.Contains(text, t.Name) && !r.g.guarded(t.Name) {
			return false
		}
	}
	rest = text
	for _, m := range r.c.Messages {
		s := m.Content
		if m.Role == chat.Assistant && strings.Contains(s, "</think>") || r.g.special != nil && r.g.special(s) {
			continue
		}
		if s = strings.TrimSpace(s); len(s) > enough {
			s = strings.TrimSpace(strings.ToValidUTF8(s[:enough], ""))
		}
		if i := strings.Index(rest, s); i >= 0 {
			rest = rest[i:]
		} else if !strings.Contains(text, s) {
			return false
		}
		for _, c := range m.Calls {
			if !strings.Contains(text, c.Name) && !r.g.guarded(c.Name) {
				return false
			}
		}
	}
	return true
}

func (g *guard) guarded(s string) bool { return g.special != nil && g.special(s) }

// markResults marks the end of each run of results for the model's tuning.
func (r *rendering) markResults(ts []turn) {
	for i := range ts {
		if ts[i].role == tool && (i+1 == len(ts) || ts[i+1].role != tool) {
			ts[i].content += r.g.add(standIn{mark: markResult})
		}
	}
}

func (r *rendering) json(v dialect.Value) (string, error) { return dialect.ToJSON(v, r.env()) }
