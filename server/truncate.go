package server

import (
	"context"
	"math"

	"quern/engine"
	"quern/models/chat"
)

// fit renders the conversation within the context window. With truncation auto
// it leaves out the oldest turns until the prompt and the answer asked for have
// room.
func (m *Model) fit(ctx context.Context, t *task, c chat.Conversation, open opener) (prompt, *requestError) {
	p, fits, refused := m.tryFit(ctx, t, c, open)
	if refused != nil || fits {
		return p, refused
	}
	least := p.length
	if t.truncate {
		p, fits, refused = m.shorten(ctx, t, c, open)
		if refused != nil || fits {
			return p, refused
		}
		least = min(least, p.length)
	}
	// The length may be a lower bound, where that is enough to refuse.
	return p, tooLongRefusal(&engine.TooLongError{Prompt: least, Max: max(1, t.maxOutput), Limit: m.Engine.MaxLength()})
}

// shorten finds the least cut with which the conversation fits, by halves:
// fewer messages make a shorter prompt.
func (m *Model) shorten(ctx context.Context, t *task, c chat.Conversation, open opener) (best prompt, found bool, refused *requestError) {
	cuts := cutPoints(c.Messages)
	best.length = math.MaxInt
	for low, high := 0, len(cuts); low < high; {
		mid := (low + high) / 2
		shorter := c
		shorter.Messages = cuts[mid].apply(c.Messages)
		p, fits, refused := m.tryFit(ctx, t, shorter, open)
		switch {
		case refused != nil:
			return p, false, refused
		case fits:
			best, found, high = p, true, mid
		default:
			low = mid + 1
			if !found {
				best.length = min(best.length, p.length)
			}
		}
	}
	return best, found, nil
}

// tryFit renders a conversation and says whether there is room for it and its
// answer. One that is hopeless by its bytes is not rendered: its length is then
// the fewest tokens that it can have.
func (m *Model) tryFit(ctx context.Context, t *task, c chat.Conversation, open opener) (p prompt, fits bool, refused *requestError) {
	room := m.Engine.MaxLength() - max(1, t.maxOutput)
	if fewest := m.fewestTokens(c); fewest > m.Engine.MaxLength() {
		p.length = fewest
		return p, false, nil
	}
	p, refused = m.render(ctx, c, open)
	return p, refused == nil && p.length <= room, refused
}

// fewestTokens is a lower bound of a prompt's length: no token is longer than
// the longest piece of the vocabulary.
func (m *Model) fewestTokens(c chat.Conversation) int {
	size := 0
	for _, message := range c.Messages {
		size += len(message.Content)
	}
	return m.fewestOf(size)
}

// fewestOf is how many tokens a text of size bytes has at least.
func (m *Model) fewestOf(size int) int {
	if m.longestPiece == 0 {
		return 0
	}
	return size / m.longestPiece
}

// cut leaves out the messages of [from, to) that are not system messages, but
// for the one at keep.
type cut struct{ to, keep int }

// cutPoints lists the places up to which a conversation may be dropped, from
// the least to the most. First whole turns go, each from a user's message to
// the next. When only the last turn is left, its older steps go, an assistant's
// message with its tool results each, while the user's message stays; the last
// step stays too.
func cutPoints(messages []chat.Message) []cut {
	lastUser := -1
	for i, m := range messages {
		if m.Role == chat.User {
			lastUser = i
		}
	}
	var cuts []cut
	droppable := false // something stands before i that a cut there drops
	for i, m := range messages {
		switch {
		case !droppable:
		case i <= lastUser && m.Role == chat.User:
			cuts = append(cuts, cut{to: i, keep: -1})
		case i > lastUser+1 && m.Role == chat.Assistant:
			cuts = append(cuts, cut{to: i, keep: lastUser})
		}
		droppable = droppable || !isSystem(m) && i != lastUser
	}
	return cuts
}

func isSystem(m chat.Message) bool { return m.Role == chat.System || m.Role == chat.Developer }

func (c cut) apply(messages []chat.Message) []chat.Message {
	out := make([]chat.Message, 0, len(messages))
	for i, m := range messages {
		if i >= c.to || isSystem(m) || i == c.keep {
			out = append(out, m)
		}
	}
	return out
}
