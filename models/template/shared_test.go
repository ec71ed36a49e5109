package template

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"quern/models/chat"
)

// sharedTemplates are real chat templates that may lie beside the checkout.
func sharedTemplates(t *testing.T) map[string]string {
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "shared", "templates", "*.jinja"))
	require.NoError(t, err)
	if len(files) == 0 {
		t.Skip("no real chat templates beside the checkout")
	}
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

// Why the prompt of a turn is no prefix of the next turn's, for the templates
// where it is so: all of it is the templates' own doing.
const (
	opensThoughts = "opens the thoughts of an answer, and writes none before earlier answers"
	closedThought = "writes an empty thought before an answer, and none before earlier answers"
	toolsLast     = "writes the tools before the last user message only"
	rewritesFirst = "opens the answer to a result with a mark that it leaves out before earlier ones"
	emptyAnswer   = "ends a result in another way once an answer follows"
	remindsLast   = "adds a reminder behind the last message only"
)

var changingTemplates = map[string]string{
	"Qwen3.5-4B": opensThoughts, "StepFun3.5-Flash": opensThoughts, "llama-cpp-deepseek-r1": opensThoughts,
	"NVIDIA-Nemotron-Nano-v2": opensThoughts, "Apriel-1.6-15b-Thinker-fixed": opensThoughts, "Cohere2MoE": opensThoughts,
	"deepseek-ai-DeepSeek-R1-Distill-Llama-8B": opensThoughts, "MiniMax-M2": opensThoughts,
	"NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": opensThoughts, "Spark2.5": opensThoughts, "GLM-4.7-Flash": opensThoughts,
	"deepseek-ai-DeepSeek-V3.2": closedThought, "Qwen-QwQ-32B": closedThought, "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B": closedThought,
	"CohereForAI-c4ai-command-r7b-12-2024-tool_use": closedThought,
	"google-gemma-4-31B-it":                         closedThought, "google-gemma-4-31B-it-interleaved": closedThought,
	"Mistral-Small-3.2-24B-Instruct-2506": toolsLast, "mistralai-Mistral-Nemo-Instruct-2407": toolsLast,
	"CohereForAI-c4ai-command-r-plus-tool_use": remindsLast, "Apertus-8B-Instruct": rewritesFirst,
	"Bielik-11B-v3.0-Instruct":                      emptyAnswer,
	"NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use": emptyAnswer, "NousResearch-Hermes-3-Llama-3.1-8B-tool_use": emptyAnswer,
}

// The prompt of a turn is a prefix of the next turn's, except for the templates
// that are listed with their reasons. Answers go on with marks that the model
// writes itself (a thought, a channel), so they count apart.
func TestRealTemplatesTurnByTurn(t *testing.T) {
	all := sharedTemplates(t)
	prompts, answers := 0, 0
	for name, src := range all {
		tm, err := New(src, Options{Name: name, BOS: "<s>", EOS: "</s>"})
		require.NoError(t, err)
		if turn, _, _ := firstChange(t, tm, []chat.Tool{someTool}, true); turn < 0 {
			answers++
		}
		turn, before, after := firstChange(t, tm, []chat.Tool{someTool}, false)
		reason := changingTemplates[name]
		if turn < 0 {
			require.Empty(t, reason, "%s keeps its prompts", name)
			prompts++
			continue
		}
		at := 0
		for at < min(len(before), len(after)) && before[at] == after[at] {
			at++
		}
		require.NotEmpty(t, reason, "%s: turn %d ends %.40q, the next goes on %.40q", name, turn+1, before[at:], after[at:])
		t.Logf("%s: turn %d: %s", name, turn+1, reason)
	}
	t.Logf("of %d templates %d keep their prompts, %d with a plain answer too", len(all), prompts, answers)
}
