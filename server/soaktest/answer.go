package soaktest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"quern/server/servertest"
)

// Answer is what a request came to.
type Answer struct {
	// Said is the answer without what differs from one to the next in any case:
	// ids, times, and what was cached.
	Said   string
	Text   string // that can be read
	Cached int    // tokens of the prompt
	Output int    // tokens

	items []json.RawMessage
}

// readAnswer takes a response, or the whole stream of one.
func readAnswer(body string, stream bool) (*Answer, error) {
	raw := []byte(body)
	if stream {
		s := servertest.Read(body)
		if faults := servertest.Check(s); len(faults) > 0 {
			return nil, fmt.Errorf("the stream has faults: %s", strings.Join(faults, "; "))
		}
		var err error
		if raw, err = json.Marshal(s.Final()); err != nil {
			return nil, err
		}
	}
	var all servertest.Object
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, fmt.Errorf("read a response: %w", err)
	}
	if faults := servertest.CheckResource(all); len(faults) > 0 {
		return nil, fmt.Errorf("the response has faults: %s", strings.Join(faults, "; "))
	}
	var r struct {
		Status     string            `json:"status"`
		Incomplete json.RawMessage   `json:"incomplete_details"`
		Output     []json.RawMessage `json:"output"`
		Usage      struct {
			Input   int `json:"input_tokens"`
			Output  int `json:"output_tokens"`
			Details struct {
				Cached int `json:"cached_tokens"`
			} `json:"input_tokens_details"`
		} `json:"usage"`
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return nil, fmt.Errorf("read a response: %w", err)
	}
	if r.Status != "completed" && r.Status != "incomplete" {
		return nil, errors.New("the response is " + string(raw))
	}
	a := &Answer{items: r.Output, Cached: r.Usage.Details.Cached, Output: r.Usage.Output}
	said := []any{r.Status, r.Incomplete, r.Usage.Input, r.Usage.Output}
	for _, item := range r.Output {
		said = append(said, a.take(item))
	}
	b, err := json.Marshal(said)
	a.Said = string(b)
	return a, err
}

// take returns an item without its ids, and notes its text.
func (a *Answer) take(raw json.RawMessage) servertest.Object {
	var item servertest.Object
	_ = json.Unmarshal(raw, &item) // it is part of what was just read
	delete(item, "id")
	delete(item, "call_id")
	parts, _ := item["content"].([]any)
	for _, p := range parts {
		part, _ := p.(servertest.Object)
		text, _ := part["text"].(string)
		a.Text += text
	}
	return item
}
