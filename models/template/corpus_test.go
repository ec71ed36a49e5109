package template

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"quern/models/chat"
)

// corpusCase is a request, the template it is rendered by, and what must hold
// of the prompt. or_status is left out: here everything is to be rendered.
type corpusCase struct {
	ID, Template, Note string
	Request            struct {
		Instructions string
		Input        []corpusItem
		Tools        []struct {
			Name, Description string
			Parameters        json.RawMessage
		}
		Reasoning struct{ Effort string }
	}
	Expect corpusExpect
	Accept []corpusExpect
}

type corpusItem struct {
	Type, Role, Name, Arguments string
	CallID                      string `json:"call_id"`
	Content, Output, Summary    json.RawMessage
}

type corpusExpect struct {
	InOrder     []json.RawMessage `json:"contains_in_order"`
	Contains    []string          `json:"contains"`
	NotContains []string          `json:"not_contains"`
	EndsWith    []string          `json:"ends_with"`
	Count       map[string]int    `json:"count"`
}

// unmet is the first thing that does not hold, or empty.
func (e corpusExpect) unmet(prompt string) string {
	rest := prompt
	for _, raw := range e.InOrder {
		found := false
		for _, s := range alternatives(raw) {
			if _, after, ok := strings.Cut(rest, s); ok {
				rest, found = after, true
				break
			}
		}
		if !found {
			return "lacks " + string(raw)
		}
	}
	for _, s := range e.Contains {
		if !strings.Contains(prompt, s) {
			return "lacks " + s
		}
	}
	for _, s := range e.NotContains {
		if strings.Contains(prompt, s) {
			return "has " + s
		}
	}
	for s, n := range e.Count {
		if strings.Count(prompt, s) != n {
			return "has another number of " + s
		}
	}
	for _, s := range e.EndsWith {
		if strings.HasSuffix(prompt, s) {
			return ""
		}
	}
	if len(e.EndsWith) > 0 {
		return "ends otherwise"
	}
	return ""
}

func alternatives(raw json.RawMessage) []string {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		return []string{one}
	}
	var several []string
	_ = json.Unmarshal(raw, &several) // neither: no alternative, and the case fails
	return several
}

// flat is a string, or the texts of parts.
func flat(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var parts []struct{ Text string }
	_ = json.Unmarshal(raw, &parts) // absent
	for _, p := range parts {
		s += p.Text
	}
	return s
}

func (i corpusItem) message() chat.Message {
	switch i.Type {
	case "function_call":
		return calls(chat.Call{ID: i.CallID, Name: i.Name, Arguments: i.Arguments})
	case "function_call_output":
		return result(i.CallID, flat(i.Output))
	case "reasoning":
		thought := flat(i.Content)
		if thought == "" {
			thought = flat(i.Summary)
		}
		return chat.Message{Role: chat.Assistant, Reasoning: thought}
	}
	return says(chat.Role(i.Role), flat(i.Content))
}

func (c corpusCase) conversation() chat.Conversation {
	var out chat.Conversation
	if c.Request.Instructions != "" {
		out.Messages = append(out.Messages, says(chat.System, c.Request.Instructions))
	}
	for _, i := range c.Request.Input {
		out.Messages = append(out.Messages, i.message())
	}
	for _, t := range c.Request.Tools {
		out.Tools = append(out.Tools, chat.Tool{Name: t.Name, Description: t.Description, Parameters: t.Parameters})
	}
	out.Effort = c.Request.Reasoning.Effort
	return out
}

func TestRequestCorpus(t *testing.T) {
	templates := sharedTemplates(t)
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "shared", "toolcorpus", "requests", "*.jsonl"))
	require.NoError(t, err)
	for _, path := range files {
		f, err := os.Open(path)
		require.NoError(t, err)
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 1<<22)
		for lines.Scan() {
			var c corpusCase
			require.NoError(t, json.Unmarshal(lines.Bytes(), &c), path)
			src, ok := templates[strings.TrimSuffix(c.Template, ".jinja")]
			if !ok {
				continue
			}
			t.Run(c.ID, func(t *testing.T) {
				tm, err := New(src, Options{BOS: "<s>", EOS: "</s>"})
				require.NoError(t, err)
				prompt := text(t, tm, c.conversation())
				why := c.Expect.unmet(prompt)
				for _, other := range c.Accept {
					if other.unmet(prompt) == "" {
						why = ""
					}
				}
				require.Empty(t, why, "%s\n%s", c.Note, prompt)
			})
		}
		require.NoError(t, lines.Err())
		require.NoError(t, f.Close())
	}
}
