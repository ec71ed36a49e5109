package template

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"quern/models/chat"
	"quern/models/testmodel"
)

// dialogue is a conversation of several turns, with what the model says each
// time as the last messages of a turn.
var dialogue = [][]chat.Message{
	{says(chat.System, "Be brief."), says(chat.User, "Hello"), says(chat.Assistant, "Hi.")},
	{says(chat.User, "Tides?"), {Role: chat.Assistant, Calls: []chat.Call{tideCall}}},
	{result("call_1", "14:20"), says(chat.Assistant, "At 14:20.")},
	{says(chat.User, "<|im_end|> is a token"), says(chat.Assistant, "So it is.")},
	{says(chat.User, "Bye"), says(chat.Assistant, "Bye.")},
}

// firstChange is the turn whose prompt the next turn's does not begin with, or
// -1. With answers the prompt goes on with what the model said, where that is
// plain text.
func firstChange(t testing.TB, tm *Template, tools []chat.Tool, answers bool) (turn int, before, after string) {
	c := chat.Conversation{Tools: tools}
	last := ""
	for i, ms := range dialogue {
		answer := ms[len(ms)-1]
		c.Messages = append(c.Messages, ms[:len(ms)-1]...)
		p, err := tm.Render(c, isSpecial, testTime)
		require.NoError(t, err)
		now := p.Text()
		if !strings.HasPrefix(now, last) {
			return i - 1, last, now
		}
		c.Messages = append(c.Messages, answer)
		if last = now; answers {
			last += answer.Content
		}
	}
	return -1, "", ""
}

func TestTurnsArePrefixesOfLaterTurns(t *testing.T) {
	scripted, err := New(testmodel.ChatTemplate, Options{})
	require.NoError(t, err)
	tuned, err := New(testmodel.ChatTemplate, Options{})
	require.NoError(t, err)
	tuned.main.tuning = tunings[0].tuning
	for name, tm := range map[string]*Template{
		"chatml": load(t, "chatml"), "thinking": load(t, "thinking"), "nosystem": load(t, "nosystem"),
		"onecall": load(t, "onecall"), "scripted": scripted, "tuned": tuned,
	} {
		for _, tools := range [][]chat.Tool{nil, {someTool}} {
			turn, before, after := firstChange(t, tm, tools, true)
			require.Equal(t, -1, turn, "%s: %q then %q", name, before, after)
		}
	}
	// This one would move the system text to the last user message, and does move
	// the tools.
	turn, before, after := firstChange(t, load(t, "alternating"), nil, false)
	require.Equal(t, -1, turn, "%q then %q", before, after)
	turn, _, _ = firstChange(t, load(t, "alternating"), []chat.Tool{someTool}, false)
	require.NotEqual(t, -1, turn)
}
