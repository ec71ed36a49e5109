package server

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"quern/tokenizer"
)

// answerPieces are what answers are made of at random.
var answerPieces = []string{
	"<think>", "</think>", "<think>\nso\n</think>\n\n", "<tool_call>", "</tool_call>", "<tool_call>\n", "\n", " ", "\n\n",
	"Hello", " wörld", "😀", "ST", "OP", "STOP", "{", "}", `{"name": "weather", "arguments": {}}`, "```json\n", "```",
	call(`{"city": "Paris"}`), call(`{"city": "Ro\"me"}`), call(`{}`), call(`[1`), `<tool_call>{"name": "unknown", "arguments": {}}</tool_call>`,
	`<tool_call>{"name": "note", "arguments": {"input": "a\nb"}}</tool_call>`, "<", "</", "\x00", "\xff",
}

func randomAnswer(r *rand.Rand) string {
	var answer strings.Builder
	for range r.IntN(8) {
		answer.WriteString(answerPieces[r.IntN(len(answerPieces))])
	}
	return answer.String()
}

// TestAnyAnswerIsToldAlike throws marks, calls, thoughts and text together: the
// stream is valid, and the collected response is what the stream told.
func TestAnyAnswerIsToldAlike(t *testing.T) {
	requests := []string{
		`{"input":"hi"}`,
		`{"input":"hi","stop":["STOP","\n\n"]}`,
		`{"input":"hi","top_logprobs":1}`,
		`{"input":"hi","stop":"STOP","top_logprobs":1,` + weatherAndNote + `}`,
		`{"input":"hi",` + weatherAndNote + `}`,
		`{"input":"hi","parallel_tool_calls":false,` + weatherAndNote + `}`,
		`{"input":"hi","text":{"format":{"type":"json_object"}}}`,
		`{"input":"hi","tool_choice":"required",` + weatherAndNote + `}`,
		`{"input":"hi","max_tool_calls":2,"stream_options":{"include_obfuscation":true},` + weatherAndNote + `}`,
		`{"input":"hi","top_logprobs":1,"tool_choice":{"type":"allowed_tools","tools":[{"type":"custom","name":"note"}]},` + weatherAndNote + `}`,
		`{"input":"hi","tools":[{"type":"namespace","name":"n","tools":[{"type":"function","name":"weather"},{"type":"custom","name":"note"}]},{"type":"web_search"}]}`,
	}
	n := newNode(t, "")
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	rounds := 400
	if testing.Short() {
		rounds = 50
	}
	for range rounds {
		answer := randomAnswer(r)
		body := requests[r.IntN(len(requests))]
		if r.IntN(3) == 0 {
			body = fmt.Sprintf(`{"max_output_tokens":%d,%s`, 1+r.IntN(40), body[1:])
		}
		n.Say(answer)
		one, s := n.both(body)
		require.Equal(t, textOf(one), s.Text(), "seed %d: %q to %s", seed, answer, body)
		if t.Failed() {
			t.Fatalf("seed %d: %q to %s", seed, answer, body)
		}
		n.checkLogprobs(one, strings.Contains(body, "top_logprobs"))
	}
}

// TestAnyAnswerIsToldAlikeInChunks: the same for the endpoints that stream chunks.
func TestAnyAnswerIsToldAlikeInChunks(t *testing.T) {
	n := newNode(t, "")
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	rounds := 200
	if testing.Short() {
		rounds = 30
	}
	for range rounds {
		answer := randomAnswer(r)
		n.Say(answer)
		limit := fmt.Sprintf(`"max_tokens":%d`, 1+r.IntN(100))
		body := `{"messages":[{"role":"user","content":"hi"}],"stop":"STOP","logprobs":true,` + limit + `,` + chatTools + `}`
		m := dig(n.chat(body), "choices", 0, "message").(object)
		content, thoughts, calls, _ := join(t, n.chatStream(body))
		whole, _ := m["content"].(string)
		reasoning, _ := m["reasoning_content"].(string)
		list, _ := m["tool_calls"].([]any)
		require.Equal(t, []any{whole, reasoning, len(list)}, []any{content, thoughts, len(calls)}, "seed %d: %q", seed, answer)
		for i := range list {
			require.Equal(t, scrubCall(list[i]), scrubCall(calls[i]), "seed %d: %q", seed, answer)
		}

		body = `{"prompt":"hi","stop":"STOP","logprobs":1,` + limit + `}`
		one := n.complete(body)
		text := ""
		for _, c := range n.completeStream(body) {
			text += dig(c, "choices", 0, "text").(string)
		}
		require.Equal(t, dig(one, "choices", 0, "text"), text, "seed %d: %q", seed, answer)
	}
}

// scrubCall leaves of a call what must be the same each time.
func scrubCall(call any) object {
	o := maps.Clone(call.(object))
	delete(o, "id")
	delete(o, "index")
	return o
}

const chatTools = `"tools":[{"type":"function","function":{"name":"weather","parameters":{"type":"object","properties":{"city":{"type":"string"}}}}},{"type":"custom","custom":{"name":"note"}}]`

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
