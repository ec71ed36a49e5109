package server

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"quern/engine"
	"quern/server/servertest"
)

func underContract(name string) nodeOptions { return nodeOptions{config: Config{Contract: name}} }

func TestLenientTakesWhatHasNoEffect(t *testing.T) {
	n := newNode(t, "hi", underContract("lenient"))
	plain := n.create(`{"model":"test-model","input":"hello"}`)
	for _, field := range []string{
		`"store":true`, `"store":null`, `"previous_response_id":"resp_x"`, `"reasoning":{"effort":"banana"}`,
		`"text":{"format":{"type":"banana"}}`, `"prompt_cache_key":"` + strings.Repeat("k", 200) + `"`, `"provider":{}`,
		`"tools":[{"type":"web_search"},{"type":"custom","name":"c"},{"type":"namespace","name":"n","tools":[]}]`,
	} {
		res := n.create(`{"model":"test-model","input":"hello",` + field + `}`)
		require.Equal(t, dig(plain, "usage", "input_tokens"), dig(res, "usage", "input_tokens"), field)
		require.Equal(t, false, res["store"], field)
		require.Nil(t, res["previous_response_id"], field)
	}
	for _, item := range []string{
		`{"type":"item_reference","id":"msg_1"},`, `{"type":"reasoning","summary":[{"type":"summary_text","text":"long thoughts"}]},`,
	} {
		res := n.create(`{"model":"test-model","input":[` + item + `{"role":"user","content":[{"type":"input_image","image_url":"data:,"},{"type":"input_text","text":"hello"}]}]}`)
		require.Equal(t, dig(plain, "usage", "input_tokens"), dig(res, "usage", "input_tokens"), item)
	}
}

func TestLenientRefusals(t *testing.T) {
	n := newNode(t, "hi", underContract("lenient"))
	for _, row := range []struct {
		status      int
		body, param string
	}{
		{400, `{"input":"hi"}`, "model"},
		{400, `{"model":"test-model","instructions":"x"}`, "input"},
		{400, `{"model":"test-model","input":"hi","provider":"x"}`, "provider"},
		{400, `{"model":"test-model","input":"hi","provider":{"only":"x"}}`, "provider.only"},
		{400, `{"model":"test-model","input":"hi","provider":{"region":[{}]}}`, "provider.region[0]"},
		{400, `{"model":"test-model","input":"hi","provider":{"region":[]}}`, "provider.region"},
		{400, `{"model":"test-model","input":"hi","provider":{"region":""}}`, "provider.region"},
		{400, `{"model":"test-model","input":"hi","provider":{"only":[]}}`, "provider.only"},
		{400, `{"model":"test-model","input":"hi","provider":{"order":[7]}}`, "provider.order[0]"},
		{400, `{"model":"test-model","input":"hi","provider":{"allow_fallbacks":"no"}}`, "provider.allow_fallbacks"},
		{400, `{"model":"test-model","input":"hi","provider":{"min_context_length":"long"}}`, "provider.min_context_length"},
		{400, `{"model":"test-model","input":"hi","provider":{"max_price":[1,2]}}`, "provider.max_price"},
		{400, `{"model":"test-model","input":"hi","provider":{"max_price":{"prompt":1}}}`, "provider.max_price"},
		{400, `{"model":"test-model","input":"hi","provider":{"min_price":1e999}}`, "provider.min_price"},
		{400, `{"model":"","input":"hi"}`, "model"},
		{404, `{"model":"/","input":"hi"}`, "model"},
		{404, `{"model":"acme/","input":"hi"}`, "model"},
		{404, `{"model":"/alias/","input":"hi"}`, "model"},
		{400, `{"model":"test-model","input":"hi","store":"yes"}`, "store"},
		{400, `{"model":"test-model","input":"hi","reasoning":"high"}`, "reasoning"},
		{400, `{"model":"test-model","input":"hi","tools":[{"type":"function","name":"f"}],"tool_choice":{"type":"allowed_tools","tools":[]}}`, "tool_choice"},
		{404, `{"model":"acme/none","input":"hi"}`, "model"},
		{503, `{"model":"test-model","input":"hi","provider":{"region":"eu"}}`, "provider.region"},
	} {
		require.Equal(t, row.param, n.refused(row.status, "/v1/responses", row.body)["param"], row.body)
	}
}

func TestVendorOfAModelIsIgnored(t *testing.T) {
	n := newNode(t, "hi", underContract("lenient"))
	for _, name := range []string{"test-model", "acme/test-model", "acme/alias"} {
		require.Equal(t, name, n.create(`{"model":"` + name + `","input":"hi"}`)["model"])
	}
	open := newNode(t, "hi")
	open.refused(404, "/v1/responses", `{"model":"acme/test-model","input":"hi"}`)
}

const twoCalls = "<think>hm</think>before <tool_call>\n{\"name\":\"f\",\"arguments\":{\"a\":1}}\n</tool_call> between <tool_call>\n{\"name\":\"f\",\"arguments\":{\"a\":2}}\n</tool_call>"

func TestPlainOutput(t *testing.T) {
	const body = `{"model":"test-model","input":"hi","tools":[{"type":"function","name":"f"}]}`
	n := newNode(t, twoCalls, underContract("lenient"))
	o, _ := n.both(body)
	kinds := []string{}
	for _, item := range o["output"].([]any) {
		kinds = append(kinds, item.(object)["type"].(string))
	}
	require.Equal(t, []string{"message", "function_call", "function_call"}, kinds)
	require.Contains(t, textOf(o), "before")
	require.Contains(t, textOf(o), "between", "text between calls is not lost")
	require.Equal(t, `{"a":2}`, dig(o, "output", 2, "arguments"))

	open := newNode(t, twoCalls)
	full, _ := open.both(body)
	require.NotEmpty(t, items(full, "reasoning"))
}

func TestCutStreamsOfLenientEndCompleted(t *testing.T) {
	for name, want := range map[string]string{"lenient": "response.completed", "open": "response.incomplete"} {
		n := newNode(t, "a long answer", underContract(name))
		_, out := n.do("POST", "/v1/responses", `{"model":"test-model","input":"hi","stream":true,"max_output_tokens":3}`)
		require.Contains(t, out, "event: "+want+"\n")
		require.Contains(t, out, `"status":"incomplete"`)
		require.Equal(t, 1, strings.Count(out, "event: response.completed")+strings.Count(out, "event: response.incomplete"))
	}
}

func TestStrictRefusals(t *testing.T) {
	n := newNode(t, "hi", underContract("strict"))
	const start, tools = `{"model":"test-model","input":"hi",`, `"tools":[{"type":"function","name":"f"}],`
	for _, row := range []struct {
		status      int
		body, param string
	}{
		{400, `{"input":"hi"}`, "model"},
		{400, `{"model":"test-model"}`, "input"},
		{400, start + `"store":false}`, "store"},
		{400, start + `"background":true}`, "background"},
		{400, start + `"conversation":"c"}`, "conversation"},
		{400, start + `"previous_response_id":7}`, "previous_response_id"},
		{400, start + `"stream":false}`, "stream"},
		{400, start + `"tools":[{"type":"function","name":"f"},{"type":"web_search"}]}`, "tools[1].type"},
		{400, start + `"tools":[{"type":"custom","name":"f"}]}`, "tools[0].type"},
		{400, start + `"top_p":0}`, "top_p"},
		{400, start + `"stop":["a","b","c","d","e"]}`, "stop"},
		{400, start + tools + `"tool_choice":"banana"}`, "tool_choice"},
		{400, start + tools + `"tool_choice":"required","top_p":0}`, "top_p"},
		{422, start + tools + `"tool_choice":"required"}`, "tool_choice"},
		{422, start + tools + `"tool_choice":{"type":"function","name":"f"}}`, "tool_choice"},
		{400, `{"model":"test-model","input":[{"role":"user","content":[{"type":"input_image","image_url":"data:,"}]}]}`, "input[0].content[0]"},
		{404, `{"model":"none","input":"hi"}`, "model"},
	} {
		require.Equal(t, row.param, n.refused(row.status, "/v1/responses", row.body)["param"], row.body)
	}
	for _, field := range []string{`"store":null`, `"stream":null`, `"top_p":0.01`, `"stop":["a","b","c","d"]`, tools + `"tool_choice":"none"`} {
		n.create(start + strings.TrimSuffix(field, ",") + `}`)
	}
}

// Every refusal under the strict contract has one shape, those of the router
// included.
func TestStrictErrorsHaveOneShape(t *testing.T) {
	n := newNode(t, "hi", nodeOptions{config: Config{Contract: "strict", APIKeys: []string{"secret"}}})
	const auth = "Bearer secret"
	for _, row := range []struct {
		status             int
		method, path, body string
		key                string
	}{
		{400, "POST", "/v1/responses", `{`, auth},
		{400, "POST", "/v1/responses", `{"input":"hi"}`, auth},
		{401, "POST", "/v1/responses", `{}`, "Basic secret"},
		{404, "POST", "/v1/nothing", `{}`, auth},
		{405, "GET", "/v1/responses", ``, auth},
		{404, "POST", "/v1/chat/completions", `{"model":"none","messages":[{"role":"user","content":"x"}]}`, auth},
		{405, "PUT", "/v1/chat/completions", `{}`, auth},
	} {
		res, out := n.do(row.method, row.path, row.body, "Authorization", row.key)
		require.Equal(t, row.status, res.StatusCode, out)
		var o map[string]any
		require.NoError(t, json.Unmarshal([]byte(out), &o))
		keys := make([]string, 0, len(o))
		for k := range o {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		require.Equal(t, []string{"error", "errorCode", "message", "status"}, keys, out)
		require.NotEmpty(t, o["errorCode"], out)
		require.InDelta(t, row.status, o["status"], 0, out)
	}
}

// A full queue, a node without a model, and time that ran out have the statuses
// of the contract.
func TestOverloadByContract(t *testing.T) {
	for _, row := range []struct {
		contract                  string
		full, neverBegan, loading int
		code                      string
	}{{"open", 429, 503, 503, "server_is_overloaded"}, {"lenient", 429, 429, 503, "server_is_overloaded"}, {"strict", 529, 529, 529, "overloaded"}} {
		n := newNode(t, "hi", underContract(row.contract))
		for err, status := range map[error]int{engine.ErrQueueFull: row.full, errNeverBegan: row.neverBegan} {
			refused := n.server.contract.present(n.server.refusalOf(err))
			require.Equal(t, status, refused.Status, row.contract)
			require.Equal(t, row.code, refused.Code)
			require.Positive(t, refused.RetryAfter)
			require.Regexp(t, `try again in \d+s`, refused.Message)
		}

		empty := newNode(t, "hi", nodeOptions{config: Config{Contract: row.contract}, noModel: true})
		res, _ := empty.do("POST", "/v1/responses", `{"model":"m","input":"hi"}`)
		require.Equal(t, row.loading, res.StatusCode, row.contract)
		require.NotEmpty(t, res.Header.Get("Retry-After"))
	}
	strict := contractNamed("strict", Limits{})
	require.Equal(t, 500, strict.present(&requestError{Status: http.StatusGatewayTimeout}).Status)
	require.Zero(t, strict.present(&requestError{Status: 429, RetryAfter: 1}).RetryAfter)
}

func TestProviderRequirements(t *testing.T) {
	n := newNode(t, "hi", nodeOptions{config: Config{Contract: "lenient", Node: []Fact{
		{"name", []string{"desk"}}, {"region", []string{"eu"}}, {"labels", []string{"fast", "private"}},
		{"price", []string{"0.50"}}, {"labels.tier", []string{"gold"}},
	}}})
	n.model.Info.Device = "cpu"
	for _, row := range []struct{ provider, unmet string }{
		{`{"region":"EU","labels":["slow","fast"],"quantization":"Q4","device":"cpu","model":"alias"}`, ""},
		{`{"min_context_length":2000,"max_context_length":2000,"context_length":2e3,"min_concurrency":4,"max_concurrency":8}`, ""},
		{`{"labels":{"tier":"gold"},"price":0.5,"max_price":0.5,"region":null}`, ""},
		{`{"order":["other"],"allow_fallbacks":true}`, ""},
		{`{"order":[],"ignore":[],"only":null,"allow_fallbacks":false,"labels":{}}`, ""},
		{`{"order":["other","desk"],"allow_fallbacks":false,"only":["desk"],"ignore":["other"]}`, ""},
		{`{"order":["other"],"allow_fallbacks":false}`, "provider.order"},
		{`{"only":["other"]}`, `provider.only wants "other", and this node has "desk"`},
		{`{"ignore":["desk"]}`, "provider.ignore"},
		{`{"region":"us"}`, `provider.region wants "us", and this node has "eu"`},
		{`{"min_context_length":2001}`, "this node has 2000"},
		{`{"max_price":0.4}`, "provider.max_price"},
		{`{"min_region":1}`, "provider.min_region"},
		{`{"wings":2}`, "provider.wings is not known to this node"},
		{`{"labels":{"tier":"lead"}}`, "provider.labels.tier"},
	} {
		body := `{"model":"test-model","input":"hi","provider":` + row.provider + `}`
		if row.unmet == "" {
			n.create(body)
			continue
		}
		e := n.refused(503, "/v1/responses", body)
		require.Contains(t, e["message"], row.unmet)
		require.Equal(t, "no_worker", e["code"])
	}
}

func TestContractStreamsAreWhole(t *testing.T) {
	n := newNode(t, twoCalls, underContract("lenient"))
	_, out := n.do("POST", "/v1/responses", `{"model":"test-model","input":"hi","stream":true,"tools":[{"type":"function","name":"f"}]}`)
	servertest.Valid(t, out)
	require.NotContains(t, out, "reasoning_summary")
}

func TestContractsWithoutSockets(t *testing.T) {
	for _, name := range []string{"lenient", "strict"} {
		res, body := newNode(t, "hi", underContract(name)).do("GET", "/v1/responses", "", upgradeHeaders...)
		require.Equal(t, 405, res.StatusCode)
		require.Contains(t, body, "no WebSocket")
	}
}
