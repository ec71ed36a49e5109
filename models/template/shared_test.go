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

// Where the prompt of a real template is not stable from turn to turn, it is
// the template's own doing; the log says where. Answers go on with marks that
// the model writes itself (a thought, a channel), so they count apart.
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
		if turn < 0 {
			prompts++
			continue
		}
		at := 0
		for at < min(len(before), len(after)) && before[at] == after[at] {
			at++
		}
		t.Logf("%s: turn %d ends %.40q, the next goes on %.40q", name, turn+1, before[at:], after[at:])
	}
	t.Logf("of %d templates %d keep their prompts, %d with a plain answer too", len(all), prompts, answers)
}
