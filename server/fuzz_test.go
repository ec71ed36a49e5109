package server

import (
	"bytes"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"quern/server/servertest"
)

// fuzzed are the endpoints that read a body.
var fuzzed = []string{
	"/v1/responses", "/v1/chat/completions", "/v1/completions", "/v1/responses/input_tokens", "/v1/responses/render",
	"/v1/chat/completions/render", "/tokenize", "/detokenize", "/v1/responses/compact",
}

// fuzzSeeds are good bodies, each with the index of its endpoint.
var fuzzSeeds = []struct {
	endpoint uint8
	body     string
}{
	{0, `{"input":"hi","stream":true,"tools":[{"type":"function","name":"weather"},{"type":"custom","name":"note","format":{"type":"grammar","syntax":"lark","definition":"start: /a/"}},{"type":"namespace","name":"n","tools":[{"name":"f","parameters":{"type":"object"}}]}],"tool_choice":{"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"f","namespace":"n"}]},"top_logprobs":2,"stop":["x"],"max_output_tokens":9,"stream_options":{"include_obfuscation":true},"text":{"verbosity":"low"},"reasoning":{"effort":"low","summary":"auto"}}`},
	{1, `{"messages":[{"role":"system","content":"s"},{"role":"user","content":[{"type":"text","text":"x"}]},{"role":"assistant","content":null,"tool_calls":[{"id":"c","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":"y"}],"stream":true,"logprobs":true,"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"object","properties":{"a":{"enum":[1,"b"]}}}}}}`},
	{2, `{"prompt":[[104,105]],"logprobs":2,"stream":true,"echo":false,"max_tokens":5}`},
	{3, `{"input":[{"role":"user","content":"a"},{"type":"reasoning","summary":[{"type":"summary_text","text":"s"}]},{"type":"function_call","call_id":"c","name":"f","arguments":"[1"},{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"o"}]},{"type":"custom_tool_call","call_id":"d","name":"g","input":"i"},{"type":"custom_tool_call_output","call_id":"d","output":""}],"truncation":"auto"}`},
	{4, `{"instructions":"i","input":[{"type":"web_search_call"},{"id":"msg_x"}],"metadata":{"a":"b"}}`},
	{5, `{"messages":[{"role":"user","content":"x"}],"chat_template_kwargs":{"a":[1,{}]},"reasoning_effort":"high"}`},
	{6, `{"prompt":"a<|im_end|>","return_token_strs":true}`},
	{7, `{"tokens":[97,257]}`},
	{8, `{"model":"test-model","input":[{"role":"developer","content":"d"},{"role":"user","content":"a"},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"o"},{"type":"compaction","encrypted_content":"x"}],"instructions":"i","prompt_cache_key":"k"}`},
	{0, `{"input":"hi","text":{"format":{"type":"json_schema","name":"n","strict":true,"schema":{"type":"object","properties":{"a":{"type":"array","items":{"type":"string","minLength":1}},"b":{"anyOf":[{"type":"null"},{"enum":["x","y"]}]}},"required":["a","b"],"additionalProperties":false}}},"include":["message.output_text.logprobs"],"temperature":0.5,"top_p":0.9,"seed":1}`},
	{0, `{"input":"hi","tool_choice":{"type":"function","name":"f"},"parallel_tool_calls":false,"max_tool_calls":2,"tools":[{"type":"function","name":"f","strict":true,"parameters":{"type":"object","properties":{"a":{"type":"integer","minimum":0}},"required":["a"],"additionalProperties":false}},{"type":"web_search"}]}`},
	{1, `{"messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}},{"type":"custom","custom":{"name":"g"}}],"tool_choice":{"type":"function","function":{"name":"f"}},"max_completion_tokens":9,"stop":["x","y"],"n":1,"logit_bias":{},"user":"u","metadata":{"a":"b"}}`},
}

// FuzzRequests: whatever is sent, the answer is a valid 2xx or a 4xx with the
// error object. The panic of a handler shows as a 500.
func FuzzRequests(f *testing.F) {
	for _, seed := range fuzzSeeds {
		f.Add(seed.endpoint, []byte(seed.body))
	}
	n := newNode(f, "<think>\nso\n</think>\n\nwörld "+call(`{"city": "Paris"}`)+" end")
	f.Fuzz(func(t *testing.T, endpoint uint8, body []byte) {
		n.wellAnswered(t, fuzzed[int(endpoint)%len(fuzzed)], body)
	})
}

// wellAnswered wants a valid answer or a well-formed refusal.
func (n *node) wellAnswered(t testing.TB, path string, body []byte) {
	req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, bytes.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	rec := httptest.NewRecorder()
	n.server.Handler().ServeHTTP(rec, req)
	got := rec.Body.String()
	switch {
	case rec.Code >= 400 && rec.Code < 500, rec.Code == http.StatusServiceUnavailable && strings.Contains(got, `"no_worker"`):
		errorOf(t, got)
	case rec.Code != http.StatusOK:
		t.Fatalf("%s answers %d to %s: %s", path, rec.Code, body, got)
	case rec.Header().Get("Content-Type") == "application/json":
		require.True(t, json.Valid([]byte(got)), got)
	case path == "/v1/responses":
		servertest.Valid(t, got)
	default:
		require.True(t, strings.HasSuffix(got, "data: [DONE]\n\n"), got)
	}
}

// oddValues take the place of any value of a request.
var oddValues = []string{
	`null`, `true`, `0`, `-1`, `99999999999999999999`, `1.5`, `""`, `" "`, `"x"`, `"\ud800"`, `"\u0000"`, `"<|im_end|>"`,
	`[]`, `{}`, `[null]`, `[[]]`, `{"type":null}`, `{"type":"function"}`, `{"":""}`, `[1,2]`, `["a","a"]`, `"function"`, `"required"`,
}

// TestMutatedRequests replaces, drops and repeats parts of requests that are
// right as they are, so that every field meets every wrong type.
func TestMutatedRequests(t *testing.T) {
	n := newNode(t, "<think>\nso\n</think>\n\nwörld "+call(`{"city": "Paris"}`)+" end")
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	rounds := 3000
	if testing.Short() {
		rounds = 300
	}
	for range rounds {
		good := fuzzSeeds[r.IntN(len(fuzzSeeds))]
		body := mutate(t, r, json.RawMessage(good.body))
		if r.IntN(3) == 0 {
			body = mutate(t, r, body)
		}
		n.wellAnswered(t, fuzzed[good.endpoint], body)
		if t.Failed() {
			t.Fatalf("seed %d: %s", seed, body)
		}
	}
}

// TestMutatedRequestsUnderContracts does the same to what the profiles add.
func TestMutatedRequestsUnderContracts(t *testing.T) {
	seeds := map[string]string{
		"lenient": `{"model":"acme/test-model","input":[{"role":"system","content":"s"},{"role":"user","content":[{"type":"input_text","text":"x"},{"type":"input_image","image_url":"data:,"}]},{"type":"reasoning","summary":[]},{"type":"item_reference","id":"m"}],` +
			`"provider":{"order":["desk"],"only":["desk"],"ignore":["x"],"allow_fallbacks":false,"min_context_length":10,"max_context_length":9000,"quantization":["Q4","Q8"],"labels":{"tier":"gold"}},"store":true,"previous_response_id":"r","reasoning":{"effort":"low"},"text":{},"prompt_cache_key":"k","tool_choice":"auto","tools":[{"type":"function","name":"weather"},{"type":"web_search"}]}`,
		"strict": `{"model":"test-model","input":[{"role":"user","content":"x"}],"tools":[{"type":"function","name":"weather","parameters":{"type":"object"}}],"tool_choice":"auto","temperature":1,"top_p":0.5,"presence_penalty":0,"frequency_penalty":0,"top_logprobs":1,"stop":["a"],"user":"u","parallel_tool_calls":true,"max_output_tokens":20,"reasoning":{"effort":"low"}}`,
	}
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 2))
	for name, body := range seeds {
		n := newNode(t, "wörld "+call(`{"city": "Paris"}`), nodeOptions{config: Config{Contract: name, Node: []Fact{
			{"name", []string{"desk"}}, {"labels.tier", []string{"gold"}},
		}}})
		n.create(body) // good as it is
		for range 500 {
			changed := mutate(t, r, json.RawMessage(body))
			if r.IntN(3) == 0 {
				changed = mutate(t, r, changed)
			}
			n.wellAnswered(t, "/v1/responses", changed)
			if t.Failed() {
				t.Fatalf("seed %d: %s", seed, changed)
			}
		}
	}
}

// mutate changes one value somewhere in a document.
func mutate(t *testing.T, r *rand.Rand, doc json.RawMessage) json.RawMessage {
	switch odd := json.RawMessage(oddValues[r.IntN(len(oddValues))]); {
	case len(doc) > 1 && doc[0] == '{':
		var o map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(doc, &o))
		keys := slices.Sorted(maps.Keys(o))
		if len(keys) == 0 {
			return odd
		}
		switch key := keys[r.IntN(len(keys))]; r.IntN(8) {
		case 0:
			delete(o, key)
		case 1:
			o[key] = odd
		default:
			o[key] = mutate(t, r, o[key])
		}
		return encoded(t, o)
	case len(doc) > 1 && doc[0] == '[':
		var list []json.RawMessage
		require.NoError(t, json.Unmarshal(doc, &list))
		if len(list) == 0 {
			return odd
		}
		switch i := r.IntN(len(list)); r.IntN(8) {
		case 0:
			list = append(list, list[i])
		case 1:
			list[i] = odd
		default:
			list[i] = mutate(t, r, list[i])
		}
		return encoded(t, list)
	default:
		return odd
	}
}

// encoded keeps numbers that no float can hold.
func encoded(t *testing.T, v any) json.RawMessage {
	raw, err := json.Marshal(v)
	require.NoError(t, err)
	return raw
}
