package server

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"quern/server/jsonvalue"
)

// complete posts to /v1/completions.
func (n *node) complete(body string) object {
	n.t.Helper()
	res, out := n.do("POST", "/v1/completions", body)
	require.Equal(n.t, 200, res.StatusCode, out)
	var o object
	require.NoError(n.t, json.Unmarshal([]byte(out), &o))
	require.Equal(n.t, "text_completion", o["object"])
	return o
}

// completeStream returns the chunks of a streamed completion.
func (n *node) completeStream(body string) []object {
	n.t.Helper()
	res, out := n.do("POST", "/v1/completions", `{"stream":true,`+strings.TrimPrefix(body, "{"))
	require.Equal(n.t, 200, res.StatusCode, out)
	return chunksOf(n.t, out)
}

// chunksOf reads a stream of chunks to its [DONE].
func chunksOf(t testing.TB, body string) []object {
	t.Helper()
	var out []object
	frames := strings.Split(strings.TrimSuffix(body, "\n\n"), "\n\n")
	require.Equal(t, "data: [DONE]", frames[len(frames)-1])
	for _, frame := range frames[:len(frames)-1] {
		if strings.HasPrefix(frame, ":") {
			continue
		}
		var o object
		require.NoError(t, json.Unmarshal([]byte(strings.TrimPrefix(frame, "data: ")), &o), frame)
		out = append(out, o)
	}
	return out
}

// TestCompletions: the prompt goes to the model as it is, and what looks like
// thoughts or calls in the answer is text.
func TestCompletions(t *testing.T) {
	answer := "<think>a</think> wörld" + call(`{}`)
	n := newNode(t, answer)
	for _, prompt := range []string{`"say <|im_start|>"`, `["say <|im_start|>"]`, `[115,97,121,32,256]`, `[[115,97,121,32,256]]`} {
		one := n.complete(`{"max_tokens":200,"prompt":` + prompt + `}`)
		require.Equal(t, "say <|im_start|>", n.LastPrompt())
		require.EqualValues(t, 5, dig(one, "usage", "prompt_tokens"))
		require.Equal(t, answer, dig(one, "choices", 0, "text"))
		require.Equal(t, "stop", dig(one, "choices", 0, "finish_reason"))
		require.Nil(t, dig(one, "choices", 0, "logprobs"))

		_, body := n.do("POST", "/v1/completions", `{"stream":true,"stream_options":{"include_usage":true},"max_tokens":200,"prompt":`+prompt+`}`)
		chunks, text := chunksOf(t, body), ""
		for _, c := range chunks[:len(chunks)-1] {
			require.Equal(t, "text_completion", c["object"])
			require.Nil(t, c["usage"])
			text += dig(c, "choices", 0, "text").(string)
		}
		require.Equal(t, answer, text)
		require.Equal(t, "stop", dig(chunks[len(chunks)-2], "choices", 0, "finish_reason"))
		require.Equal(t, dig(one, "usage", "completion_tokens"), dig(chunks[len(chunks)-1], "usage", "completion_tokens"))
		require.Empty(t, chunks[len(chunks)-1]["choices"])
	}
}

func TestCompletionsEndLikeOthers(t *testing.T) {
	n := newNode(t, "one two three four five")
	one := n.complete(`{"prompt":"count"}`)
	require.EqualValues(t, defaultTextTokens, dig(one, "usage", "completion_tokens"))
	require.Equal(t, "length", dig(one, "choices", 0, "finish_reason"))
	one = n.complete(`{"prompt":"count","max_tokens":50,"stop":[" three"]}`)
	require.Equal(t, "one two", dig(one, "choices", 0, "text"))
	require.Equal(t, "stop", dig(one, "choices", 0, "finish_reason"))
	one = n.complete(`{"prompt":"count: ","max_tokens":50,"echo":true}`)
	require.Equal(t, "count: one two three four five", dig(one, "choices", 0, "text"))
	_, body := n.do("POST", "/v1/completions", `{"stream":true,"prompt":"count: ","echo":true}`)
	require.Equal(t, "count: ", dig(chunksOf(t, body)[0], "choices", 0, "text"))

	for echo, text := range map[string]string{"false": "", "true": "count: "} { // only reads the prompt
		body := `{"prompt":"count: ","max_tokens":0,"logprobs":null,"echo":` + echo + `}`
		one := n.complete(body)
		require.Equal(t, text, dig(one, "choices", 0, "text"))
		require.Equal(t, "length", dig(one, "choices", 0, "finish_reason"))
		require.EqualValues(t, 0, dig(one, "usage", "completion_tokens"))
		require.Positive(t, dig(one, "usage", "prompt_tokens"))
		streamed := ""
		for _, c := range n.completeStream(body) {
			streamed += dig(c, "choices", 0, "text").(string)
		}
		require.Equal(t, text, streamed)
	}
}

func TestCompletionLogprobs(t *testing.T) {
	n := newNode(t, "hé STOP")
	body := `{"prompt":"x","stop":"STOP","logprobs":2`
	whole := dig(n.complete(body+`}`), "choices", 0, "logprobs").(object)
	require.Equal(t, []any{"h", "\ufffd", "\ufffd", " "}, whole["tokens"])
	require.Equal(t, []any{0.0, 1.0, 2.0, 3.0}, whole["text_offset"])
	require.Len(t, whole["token_logprobs"], 4)
	require.NotEmpty(t, dig(whole, "top_logprobs", 0))

	_, out := n.do("POST", "/v1/completions", body+`,"stream":true}`)
	joined := object{"tokens": []any{}, "token_logprobs": []any{}, "top_logprobs": []any{}, "text_offset": []any{}}
	for _, c := range chunksOf(t, out) {
		if part, ok := dig(c, "choices", 0, "logprobs").(object); ok {
			for key, list := range part {
				joined[key] = append(joined[key].([]any), list.([]any)...)
			}
		}
	}
	require.Equal(t, whole, joined)
}

func TestCompletionRefusals(t *testing.T) {
	n := newNode(t, "ok")
	for _, row := range []struct{ body, param, code string }{
		{`{}`, "prompt", codeMissing},
		{`{"prompt":5}`, "prompt", codeInvalidType},
		{`{"prompt":""}`, "prompt", codeInvalidValue},
		{`{"prompt":[]}`, "prompt", codeInvalidValue},
		{`{"prompt":[[]]}`, "prompt", codeInvalidValue},
		{`{"prompt":["a","b"]}`, "prompt", codeUnsupported},
		{`{"prompt":[{}]}`, "prompt[0]", codeInvalidType},
		{`{"prompt":[1,"a"]}`, "prompt[1]", codeInvalidType},
		{`{"prompt":[1,300]}`, "prompt[1]", codeInvalidValue},
		{`{"prompt":"x","n":2}`, "n", codeUnsupported},
		{`{"prompt":"x","best_of":2}`, "best_of", codeUnsupported},
		{`{"prompt":"x","logprobs":6}`, "logprobs", codeInvalidValue},
		{`{"prompt":"x","logprobs":true}`, "logprobs", codeInvalidType},
		{`{"prompt":"x","logprobs":1,"echo":true}`, "echo", codeUnsupported},
		{`{"prompt":"x","suffix":"y"}`, "suffix", codeUnsupported},
		{`{"prompt":"x","logit_bias":{"5":1}}`, "logit_bias", codeUnsupported},
		{`{"prompt":"x","max_tokens":-1}`, "max_tokens", codeInvalidValue},
		{`{"prompt":"x","max_tokens":5000}`, "max_tokens", codeContextLength},
		{`{"prompt":"` + strings.Repeat("x", 3000) + `"}`, "prompt", codeContextLength},
	} {
		t.Run(row.body[:min(len(row.body), 60)], func(t *testing.T) {
			n.t = t
			e := n.refused(400, "/v1/completions", row.body)
			require.Equal(t, row.param, e["param"], e["message"])
			require.Equal(t, row.code, e["code"], e["message"])
			if row.param != "prompt" || row.code != codeContextLength {
				require.Contains(t, e["message"], row.param)
			}
		})
	}
	n.t = t
	require.Equal(t, "model_not_found", n.refused(404, "/v1/completions", `{"model":"nope","prompt":"x"}`)["code"])
}

// FuzzDecodeText: no body makes the decoder panic.
func FuzzDecodeText(f *testing.F) {
	f.Add([]byte(`{"prompt":"x","suffix":"y","echo":true,"logprobs":2,"stop":["a"],"stream_options":{"include_usage":true}}`))
	f.Add([]byte(`{"prompt":[[1,2]],"max_tokens":1,"logit_bias":{},"best_of":1}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		v, err := jsonvalue.Parse(body, maxDepth)
		if err != nil {
			return
		}
		if _, refused := decodeText(v, Sampling{}, 300); refused != nil {
			require.NotEmpty(t, refused.Message)
		}
	})
}

func TestHopelesslyLongTextsAreNotEncoded(t *testing.T) {
	n := newNode(t, "hi")
	long := strings.Repeat("a", maxTokenize+1)
	e := n.refused(400, "/v1/completions", `{"model":"test-model","prompt":"`+long+`"}`)
	require.Equal(t, []any{"prompt", codeContextLength}, []any{e["param"], e["code"]})
	require.Contains(t, e["message"], "at least")
	e = n.refused(400, "/tokenize", `{"prompt":"`+long+`"}`)
	require.Equal(t, []any{"prompt", codeTooLarge}, []any{e["param"], e["code"]})
}
