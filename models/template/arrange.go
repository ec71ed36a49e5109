package template

import (
	"slices"
	"strings"
)

// paragraph stands between texts that become one.
const paragraph = "\n\n"

// arrange brings turns into a form that a template with these caps can
// express. toolText is set where the tools have to be described in words. The
// order of what was said never changes, except that results follow the order
// of their calls.
func arrange(ts []turn, caps Caps, tr traits, toolText string, worded func(turn) string) []turn {
	ts = joinAnswers(ts)
	ts = matchResults(ts)
	ts = headSystem(ts, caps, toolText)
	ts = wordCalls(ts, caps, worded)
	if !caps.ParallelCalls {
		ts = oneCallEach(ts)
	}
	if !caps.TextWithCalls {
		ts = apart(ts, tr)
	}
	if !caps.SystemRole {
		ts = systemIntoUser(ts)
	}
	return takeTurns(ts, caps, tr)
}

// joinAnswers makes one message of the parts of an answer: thoughts, text and
// calls may come as messages of their own. Two texts stay two messages.
func joinAnswers(ts []turn) []turn {
	var out []turn
	for i, t := range ts {
		last := i == len(ts)-1
		if t.role == assistant && t.empty() && !last {
			continue
		}
		n := len(out) - 1
		if t.role != assistant || n < 0 || out[n].role != assistant {
			out = append(out, t)
			continue
		}
		onlyThoughts := out[n].content == "" && len(out[n].calls) == 0 && t.reasoning == ""
		onlyCalls := t.content == "" && t.reasoning == "" && len(t.calls) > 0
		if !onlyThoughts && !onlyCalls {
			out = append(out, t)
			continue
		}
		out[n].content += t.content
		out[n].calls = append(slices.Clip(out[n].calls), t.calls...)
	}
	return out
}

// matchResults puts the results that follow calls into the order of the calls
// and names them after their tools.
func matchResults(ts []turn) []turn {
	out := make([]turn, 0, len(ts))
	for i := 0; i < len(ts); {
		out = append(out, ts[i])
		calls := ts[i].calls
		i++
		if len(calls) == 0 {
			continue
		}
		end := i
		for end < len(ts) && ts[end].role == tool {
			end++
		}
		out = append(out, inCallOrder(ts[i:end], calls)...)
		i = end
	}
	return out
}

func inCallOrder(results []turn, calls []call) []turn {
	sorted := make([]turn, 0, len(results))
	taken := make([]bool, len(results))
	for n, c := range calls {
		for i, t := range results {
			// A result without an id belongs to the call at its place.
			if taken[i] || t.callID != c.id && (t.callID != "" || i != n) {
				continue
			}
			taken[i] = true
			if t.name == "" {
				t.name = c.name
			}
			if t.callID == "" {
				t.callID = c.id
			}
			sorted = append(sorted, t)
		}
	}
	for i, t := range results {
		if !taken[i] {
			sorted = append(sorted, t)
		}
	}
	return sorted
}

// headSystem makes one system turn of the system and developer messages at the
// head. Later ones stay where they are, as user turns where the template knows
// no others.
func headSystem(ts []turn, caps Caps, toolText string) []turn {
	var head []string
	for len(ts) > 0 && isSystem(ts[0]) {
		head = append(head, ts[0].content)
		ts = ts[1:]
	}
	if toolText != "" {
		head = append(head, toolText)
	}
	var out []turn
	if len(head) > 0 {
		role := system
		if !caps.SystemRole && caps.DeveloperRole {
			role = developer
		}
		out = append(out, turn{role: role, content: strings.Join(head, paragraph)})
	}
	for _, t := range ts {
		if isSystem(t) {
			t.role = system
			if !caps.MidSystem {
				t.role = user
			}
		}
		out = append(out, t)
	}
	return out
}

// wordCalls writes calls and results as text where the template can't.
func wordCalls(ts []turn, caps Caps, worded func(turn) string) []turn {
	var out []turn
	for _, t := range ts {
		switch {
		case len(t.calls) > 0 && !caps.ToolCalls:
			t.content = join("\n", t.content, worded(t))
			t.calls = nil
		case t.role == tool && !caps.ToolRole:
			text := worded(t)
			if n := len(out) - 1; n >= 0 && out[n].role == tool {
				out[n].content = join("\n", out[n].content, text)
				continue
			}
			t = turn{role: tool, content: text} // a user turn below, once joined
		}
		out = append(out, t)
	}
	if !caps.ToolRole {
		for i := range out {
			if out[i].role == tool {
				out[i].role = user
			}
		}
	}
	return out
}

// oneCallEach gives each call a turn of its own, its result right behind it.
func oneCallEach(ts []turn) []turn {
	var out []turn
	for i := 0; i < len(ts); i++ {
		t := ts[i]
		if len(t.calls) < 2 {
			out = append(out, t)
			continue
		}
		end := i + 1
		for end < len(ts) && ts[end].role == tool {
			end++
		}
		results := ts[i+1 : end]
		for n, c := range t.calls {
			one := turn{role: assistant, calls: []call{c}}
			if n == 0 {
				one.content, one.reasoning = t.content, t.reasoning
			}
			out = append(out, one)
			for len(results) > 0 && (results[0].callID == c.id || n == len(t.calls)-1) {
				out = append(out, results[0])
				results = results[1:]
			}
		}
		i = end - 1
	}
	return out
}

// apart gives the text before calls a turn of its own, and the thoughts before
// both to the turn that shows them.
func apart(ts []turn, tr traits) []turn {
	var out []turn
	for _, t := range ts {
		if len(t.calls) > 0 && t.content != "" {
			text := turn{role: assistant, content: t.content}
			if !tr.thoughtsOfCalls {
				text.reasoning, t.reasoning = t.reasoning, ""
			}
			out = append(out, text)
			t.content = ""
		}
		out = append(out, t)
	}
	return out
}

// systemIntoUser puts the head's system text before the first user text.
func systemIntoUser(ts []turn) []turn {
	if len(ts) == 0 || ts[0].role != system {
		return ts
	}
	head, rest := ts[0].content, ts[1:]
	if len(rest) > 0 && rest[0].role == user {
		first := rest[0]
		first.content = join(paragraph, head, first.content)
		return append([]turn{first}, rest[1:]...)
	}
	return append([]turn{{role: user, content: head}}, rest...)
}

// takeTurns settles who may speak after whom.
func takeTurns(ts []turn, caps Caps, tr traits) []turn {
	var out []turn
	hasUser := false
	for _, t := range ts {
		n := len(out) - 1
		first := n < 0 || n == 0 && isSystem(out[0])
		switch {
		case t.role == assistant && first && !caps.AssistantFirst:
			out = append(out, turn{role: user, content: tr.filler})
			hasUser = true
		case t.role == user && n >= 0 && out[n].role == user && !caps.RepeatedUser:
			out[n].content = join(paragraph, out[n].content, t.content)
			continue
		case t.role == user && n >= 0 && out[n].role == tool && !caps.UserAfterResult:
			out = append(out, turn{role: assistant, content: tr.filler})
		case t.role == assistant && n >= 0 && out[n].role == assistant && !caps.RepeatedAssistant && len(out[n].calls) == 0:
			if len(t.calls) == 0 || caps.TextWithCalls {
				out[n] = joined(out[n], t)
				continue
			}
			out = append(out, turn{role: user, content: tr.filler})
		}
		hasUser = hasUser || t.role == user
		out = append(out, t)
	}
	if tr.needsUser && !hasUser {
		out = append(out, turn{role: user, content: tr.filler})
	}
	return out
}

// joined is one answer made of two.
func joined(a, b turn) turn {
	a.content = join(paragraph, a.content, b.content)
	a.reasoning = join(paragraph, a.reasoning, b.reasoning)
	a.calls = b.calls
	return a
}

// join joins two texts where both are there.
func join(between, a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + between + b
}
