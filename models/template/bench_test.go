package template

import (
	"encoding/json"
	"strings"
	"testing"

	"quern/models/chat"
)

// longConversation has 100 messages of some length, and tools.
func longConversation() chat.Conversation {
	filler := strings.Repeat("Some words of a message that goes on for a while. ", 10)
	c := chat.Conversation{Messages: []chat.Message{says(chat.System, filler)}}
	for len(c.Messages) < 100 {
		c.Messages = append(c.Messages, says(chat.User, filler), calls(tideCall), result("call_1", filler), says(chat.Assistant, filler))
	}
	schema := `{"type":"object","properties":{` + strings.Repeat(`"p":{"type":"string","description":"What it is for, at some length"},`, 20) + `"q":{}}}`
	for range 10 {
		c.Tools = append(c.Tools, chat.Tool{Name: "tool", Description: filler, Parameters: json.RawMessage(schema)})
	}
	return c
}

func BenchmarkRender100Messages(b *testing.B) {
	for _, name := range testTemplates {
		b.Run(name, func(b *testing.B) {
			tm, c := load(b, name), longConversation()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := tm.Render(c, isSpecial, testTime); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkNew(b *testing.B) {
	src := load(b, "thinking").Source()
	for b.Loop() {
		if _, err := New(src, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
