package soaktest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
)

// conversation is a client's, with what it sends next.
type conversation struct {
	instructions string
	tools        bool
	turns        int // still to come
	items        []json.RawMessage
	pending      []string // ids of calls without a result
}

var vocabulary = strings.Fields(`harbour lamp orchard wheel copper rain letter bridge winter stair cloth
	engine garden mirror paper salt window river candle stone`)

func say(r *rand.Rand, words int) string {
	var b strings.Builder
	for range words {
		b.WriteString(vocabulary[r.IntN(len(vocabulary))] + " ")
	}
	return b.String()
}

// heads are the instructions that conversations share, the longest of so many
// words.
func heads(r *rand.Rand, words int) []string {
	return []string{"", say(r, words/8), say(r, words/2), say(r, words*3/4), say(r, words)}
}

func (s *soak) begin(r *rand.Rand) *conversation {
	return &conversation{instructions: s.heads[r.IntN(len(s.heads))], tools: r.IntN(3) == 0 && !s.NoTools, turns: 1 + r.IntN(4)}
}

// body is the next request: results for what was called, else something new.
func (c *conversation) body(r *rand.Rand, o *Options) []byte {
	for _, id := range c.pending {
		c.add(map[string]any{"type": "function_call_output", "call_id": id, "output": say(r, 1+r.IntN(6))})
	}
	if len(c.pending) == 0 {
		c.add(map[string]any{"type": "message", "role": "user", "content": say(r, 1+r.IntN(12))})
	}
	c.pending = nil
	body := map[string]any{"input": c.items, "temperature": 0, "max_output_tokens": 16 + r.IntN(o.MaxTokens)}
	if c.instructions != "" {
		body["instructions"] = c.instructions
	}
	if o.Seeded && r.IntN(2) == 0 {
		body["temperature"], body["seed"] = 0.9, r.IntN(1000)
	}
	if c.tools {
		body["tools"] = []any{map[string]any{
			"type": "function", "name": "look_up", "strict": false,
			"parameters": map[string]any{"type": "object", "properties": map[string]any{"word": map[string]any{"type": "string"}}},
		}}
	}
	if r.IntN(5) == 0 {
		body["cache_salt"] = fmt.Sprint("tenant ", r.IntN(2))
	}
	raw, _ := json.Marshal(body) // of strings and numbers only
	return raw
}

func (c *conversation) add(item any) {
	raw, _ := json.Marshal(item) // of strings only
	c.items = append(c.items, raw)
}

// take adds an answer to the conversation.
func (c *conversation) take(a *Answer) {
	c.turns--
	for _, item := range a.items {
		var call struct {
			Type string `json:"type"`
			ID   string `json:"call_id"`
		}
		if json.Unmarshal(item, &call) == nil && call.Type == "function_call" {
			c.pending = append(c.pending, call.ID)
		}
		c.items = append(c.items, item)
	}
}
