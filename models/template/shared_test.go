package template

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"quern/models/chat"
)

// sharedTemplates are real chat templates that may lie beside the checkout.
func sharedTemplates(t *testing.T) map[string]string {
	found := sharedTemplatesIfThere(t)
	if len(found) == 0 {
		t.Skip("no real chat templates beside the checkout")
	}
	return found
}

func sharedTemplatesIfThere(t *testing.T) map[string]string {
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "shared", "templates", "*.jinja"))
	require.NoError(t, err)
	found := map[string]string{}
	for _, f := range files {
		src, err := os.ReadFile(f)
		require.NoError(t, err)
		found[strings.TrimSuffix(filepath.Base(f), ".jinja")] = string(src)
	}
	return found
}

// Every real template loads, and renders all conversations without losing
// anything.
func TestRealTemplates(t *testing.T) {
	for name, src := range sharedTemplates(t) {
		t.Run(name, func(t *testing.T) {
			tm, err := New(src, Options{Name: name, BOS: "<s>", EOS: "</s>"})
			require.NoError(t, err)
			for label, c := range conversations {
				p, err := tm.Render(c, isSpecial, testTime)
				require.NoError(t, err, label)
				got := p.Text()
				for _, m := range c.Messages {
					content := m.Content
					if _, answer, ok := strings.Cut(content, "</think>"); ok {
						content = answer
					}
					require.Contains(t, got, strings.TrimSpace(content), label)
					for _, call := range m.Calls {
						require.Contains(t, got, call.Name, label)
					}
				}
				for _, tool := range c.Tools {
					require.Contains(t, got, tool.Name, label)
				}
			}
		})
	}
}

// openingBytes is more than what opens an answer: the role, and the mark of a
// thought, open or empty.
const openingBytes = 40

// Why the prompt of a turn, but for what opens the answer at its end, is no prefix
// of the next turn's: all of it is the templates' own doing.
const (
	toolsLast     = "writes the tools before the last user message only"
	remindsLast   = "adds a reminder behind the last message only"
	dropsThoughts = "leaves the thoughts of a chain of calls out once the user speaks again"
	dropsEmpty    = "leaves the empty thoughts of a chain of calls out, too, once the user speaks again"
)

var changingTemplates = map[string]string{
	"Mistral-Small-3.2-24B-Instruct-2506": toolsLast, "mistralai-Mistral-Nemo-Instruct-2407": toolsLast,
	"CohereForAI-c4ai-command-r-plus-tool_use": remindsLast,
	"Qwen3.5-4B": dropsEmpty, "StepFun3.5-Flash": dropsEmpty,
}

// Those that change only where a client sends back what the model thought: models
// are trained so, and some templates have a variable against it.
var changingWithThoughts = map[string]string{
	"GLM-4.6": dropsThoughts, "GLM-4.7-Flash": dropsThoughts, "LFM2.5-8B-A1B": dropsThoughts, "MiniMax-M2": dropsThoughts,
	"NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": dropsThoughts, "Qwen-Qwen3-0.6B": dropsThoughts, "google-gemma-4-31B-it": dropsThoughts,
	"google-gemma-4-31B-it-interleaved": dropsThoughts, "openai-gpt-oss-120b": dropsThoughts, "openbmb-MiniCPM5-1B": dropsThoughts,
	"upstage-Solar-Open-100B": dropsThoughts,
}

// The prompt of a turn is a prefix of the next turn's, up to what opens the answer:
// templates open thoughts, or write an empty one, that they don't repeat before
// earlier answers. Templates that change more are listed with their reasons.
func TestRealTemplatesTurnByTurn(t *testing.T) {
	whole, opened, changed := 0, 0, 0
	for name, src := range sharedTemplates(t) {
		tm, err := New(src, Options{Name: name, BOS: "<s>", EOS: "</s>"})
		require.NoError(t, err)
		plain, at := mostLost(t, tm, dialogue)
		switch {
		case plain == 0:
			whole++
		case plain < openingBytes:
			opened++
		default:
			changed++
		}
		reason := changingTemplates[name]
		require.Equal(t, reason != "", plain >= openingBytes, "%s: %s", name, at)
		thought, at := mostLost(t, tm, thinking(dialogue))
		if reason == "" {
			reason = changingWithThoughts[name]
			require.Equal(t, reason != "", thought >= openingBytes, "%s, with thoughts: %s", name, at)
		}
		if reason != "" {
			t.Logf("%s %s: %s", name, reason, at)
		}
	}
	t.Logf("%d templates keep their prompts whole, %d but for the opening of the answer, %d change more", whole, opened, changed)
}

// thinking is a dialogue whose answers come with their thoughts.
func thinking(dialogue [][]chat.Message) [][]chat.Message {
	out := make([][]chat.Message, len(dialogue))
	for i, turn := range dialogue {
		out[i] = slices.Clone(turn)
		out[i][len(turn)-1].Reasoning = "The user wants to know."
	}
	return out
}

// mostLost is how many bytes of a turn's prompt, at its end, the next turn's has
// otherwise, at most, and where.
func mostLost(t *testing.T, tm *Template, dialogue [][]chat.Message) (most int, where string) {
	c := chat.Conversation{Tools: []chat.Tool{someTool}}
	last := ""
	for i, turn := range dialogue {
		c.Messages = append(c.Messages, turn[:len(turn)-1]...)
		now := text(t, tm, c)
		at := 0
		for at < min(len(last), len(now)) && last[at] == now[at] {
			at++
		}
		if lost := len(last) - at; lost > most {
			most, where = lost, fmt.Sprintf("turn %d ended %.60q, and then it is %.60q", i, last[at:], now[at:])
		}
		c.Messages, last = append(c.Messages, turn[len(turn)-1]), now
	}
	return most, where
}
