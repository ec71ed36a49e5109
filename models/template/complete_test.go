package template

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"quern/models/chat"
)

// maker makes conversations of words that occur once each.
type maker struct {
	r     *rand.Rand
	words []string // that have to stand in the prompt
	n     int
}

// word is a word of its own; a prompt without it has lost something.
func (m *maker) word(kind string) string {
	m.n++
	w := fmt.Sprintf("%sq%dz", kind, m.n)
	m.words = append(m.words, w)
	return w
}

// conversation is a few messages in an order that a client might send: nothing
// about it is regular but that results follow their calls.
func (m *maker) conversation() chat.Conversation {
	var c chat.Conversation
	if m.r.IntN(2) == 0 {
		c.Tools = append(c.Tools, m.tool(), m.tool())
	}
	for range m.r.IntN(3) {
		c.Messages = append(c.Messages, says([]chat.Role{chat.System, chat.Developer}[m.r.IntN(2)], m.word("rule")))
	}
	for range 1 + m.r.IntN(6) {
		switch m.r.IntN(8) {
		case 0, 1, 2:
			c.Messages = append(c.Messages, says(chat.User, m.word("ask")))
		case 3, 4:
			answer := says(chat.Assistant, m.word("say"))
			if m.r.IntN(2) == 0 {
				answer.Reasoning = "hm" // which a template may leave out
			}
			c.Messages = append(c.Messages, answer)
		case 5:
			c.Messages = append(c.Messages, says(chat.Developer, m.word("rule")))
		default:
			c.Messages = append(c.Messages, m.chain()...)
		}
	}
	if m.r.IntN(2) == 0 {
		c.Messages = append(c.Messages, says(chat.User, m.word("ask")))
	}
	c.Effort = []string{"", "none", "high"}[m.r.IntN(3)]
	return c
}

func (m *maker) tool() chat.Tool {
	return chat.Tool{
		Name: m.word("tool"), Description: m.word("does"),
		Parameters: json.RawMessage(`{"type":"object","properties":{"` + m.word("key") + `":{"type":"string"}}}`),
	}
}

// chain is an answer that calls, and the results in any order.
func (m *maker) chain() []chat.Message {
	answer := chat.Message{Role: chat.Assistant}
	if m.r.IntN(2) == 0 {
		answer.Content = m.word("say")
	}
	if m.r.IntN(2) == 0 {
		answer.Reasoning = "hm"
	}
	var results []chat.Message
	for range 1 + m.r.IntN(3) {
		id := fmt.Sprintf("call_%d", m.n)
		answer.Calls = append(answer.Calls, chat.Call{ID: id, Name: m.word("call"), Arguments: `{"` + m.word("key") + `": "` + m.word("value") + `"}`})
		results = append(results, result(id, m.word("got")))
	}
	m.r.Shuffle(len(results), func(i, j int) { results[i], results[j] = results[j], results[i] })
	return append([]chat.Message{answer}, results...)
}

// Whatever a client sends in whatever order, each template has all of it in the
// prompt: texts, calls with their arguments, results, and tools with what is said
// of them. Thoughts alone may go.
func TestNothingIsLostInAnyOrder(t *testing.T) {
	sources := map[string]*Template{}
	for _, name := range testTemplates {
		sources[name] = load(t, name)
	}
	for name, src := range sharedTemplatesIfThere(t) {
		tm, err := New(src, Options{Name: name, BOS: "<s>", EOS: "</s>"})
		require.NoError(t, err)
		sources[name] = tm
	}
	for name, tm := range sources {
		for seed := range uint64(40) {
			m := &maker{r: rand.New(rand.NewPCG(seed, 11))}
			c := m.conversation()
			p, err := tm.Render(c, isSpecial, testTime)
			require.NoError(t, err, "%s, seed %d", name, seed)
			prompt := p.Text()
			for _, w := range m.words {
				if !strings.Contains(prompt, w) {
					t.Errorf("%s, seed %d: %s is lost: %s", name, seed, w, roles(c))
					break
				}
			}
		}
	}
}

func roles(c chat.Conversation) string {
	out := fmt.Sprintf("%d tools:", len(c.Tools))
	for _, m := range c.Messages {
		out += fmt.Sprintf(" %s(%d)", m.Role, len(m.Calls))
	}
	return out
}
