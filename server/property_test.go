package server

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"quern/tokenizer"
)

// TestAnyAnswerIsToldAlike throws marks, calls, thoughts and text together: the
// stream is valid, and the collected response is what the stream told.
func TestAnyAnswerIsToldAlike(t *testing.T) {
	pieces := []string{
		"<think>", "</think>", "<think>\nso\n</think>\n\n", "<tool_call>", "</tool_call>", "<tool_call>\n", "\n", " ", "\n\n",
		"Hello", " wörld", "😀", "ST", "OP", "STOP", "{", "}", `{"name": "weather", "arguments": {}}`, "```json\n", "```",
		call(`{"city": "Paris"}`), call(`{"city": "Ro\"me"}`), call(`{}`), call(`[1`), `<tool_call>{"name": "unknown", "arguments": {}}</tool_call>`,
		`<tool_call>{"name": "note", "arguments": {"input": "a\nb"}}</tool_call>`, "<", "</", "\x00", "\xff",
	}
	requests := []string{
		`{"input":"hi"}`,
		`{"input":"hi","stop":["STOP","\n\n"]}`,
		`{"input":"hi","top_logprobs":1}`,
		`{"input":"hi","stop":"STOP","top_logprobs":1,` + weatherAndNote + `}`,
		`{"input":"hi",` + weatherAndNote + `}`,
		`{"input":"hi","parallel_tool_calls":false,` + weatherAndNote + `}`,
		`{"input":"hi","text":{"format":{"type":"json_object"}}}`,
		`{"input":"hi","tool_choice":"required",` + weatherAndNote + `}`,
	}
	n := newNode(t, "")
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	rounds := 400
	if testing.Short() {
		rounds = 50
	}
	for range rounds {
		var answer strings.Builder
		for range r.IntN(8) {
			answer.WriteString(pieces[r.IntN(len(pieces))])
		}
		body := requests[r.IntN(len(requests))]
		if r.IntN(3) == 0 {
			body = fmt.Sprintf(`{"max_output_tokens":%d,%s`, 1+r.IntN(40), body[1:])
		}
		n.Say(answer.String())
		one, s := n.both(body)
		require.Equal(t, textOf(one), s.Text(), "seed %d: %q to %s", seed, answer.String(), body)
		if t.Failed() {
			t.Fatalf("seed %d: %q to %s", seed, answer.String(), body)
		}
		n.checkLogprobs(one, strings.Contains(body, "top_logprobs"))
	}
}

const weatherAndNote = `"tools":[{"type":"function","name":"weather","parameters":{"type":"object","properties":{"city":{"type":"string"}}}},{"type":"custom","name":"note"}]`

// checkLogprobs wants the tokens of every message to join to its text.
func (n *node) checkLogprobs(o object, wanted bool) {
	n.t.Helper()
	for _, m := range items(o, "message") {
		part := dig(m, "content", 0)
		var joined []tokenizer.Token // the vocabulary is bytes
		for _, e := range dig(part, "logprobs").([]any) {
			for _, b := range dig(e, "bytes").([]any) {
				joined = append(joined, tokenizer.Token(b.(float64)))
			}
		}
		if wanted {
			require.Equal(n.t, dig(part, "text"), n.model.Tokenizer.Detokenize(joined))
		}
	}
}
