package server

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"quern/server/keys"
)

// keyed starts a node with a keys file; the key of each entry is its name.
func keyed(t *testing.T, answer string, cfg Config, list ...keys.Key) *node {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys.yaml")
	for i := range list {
		list[i].Hash = keys.HashOf(list[i].Name)
	}
	require.NoError(t, keys.Edit(path, func([]keys.Key) ([]keys.Key, error) { return list, nil }))
	ring, err := keys.Open(keys.Sources{File: path})
	require.NoError(t, err)
	cfg.Keys = ring
	n := newNode(t, answer, nodeOptions{config: cfg})
	n.keysFile = path
	t.Cleanup(func() { // before the node ends, but no test leaves a request behind
		require.NoError(t, ring.Close())
	})
	return n
}

func (n *node) ask(key, body string) (reply, string) {
	return n.do("POST", "/v1/responses", body, "Authorization", "Bearer "+key)
}

const hello = `{"model":"test-model","input":"hi","max_output_tokens":20}`

func TestRateHeaders(t *testing.T) {
	for _, contract := range []string{"open", "lenient", "strict"} {
		n := keyed(t, "hi", Config{Contract: contract}, keys.Key{Name: "a", RequestsPerMinute: 2, TokensPerMinute: 100_000}, keys.Key{Name: "free"})
		res, out := n.ask("a", hello)
		require.Equal(t, 200, res.StatusCode, out)
		require.Equal(t, "2", res.Header.Get("x-ratelimit-limit-requests"))
		require.Equal(t, "1", res.Header.Get("x-ratelimit-remaining-requests"))
		require.NotEmpty(t, res.Header.Get("x-ratelimit-reset-requests"))
		require.Equal(t, "100000", res.Header.Get("x-ratelimit-limit-tokens"))
		require.NotEqual(t, "100000", res.Header.Get("x-ratelimit-remaining-tokens"))
		require.NotEmpty(t, res.Header.Get("x-ratelimit-reset-tokens"))

		n.ask("a", hello)
		res, out = n.ask("a", hello)
		require.Equal(t, 429, res.StatusCode, out)
		require.Equal(t, "0", res.Header.Get("x-ratelimit-remaining-requests"))
		require.Contains(t, out, "2 requests per minute")
		require.Regexp(t, `try again in [0-9.]+s`, out)
		require.Contains(t, out, `"rate_limit_exceeded"`)
		require.Equal(t, contract == "strict", res.Header.Get("Retry-After") == "", "strict has no Retry-After at 429")

		res, _ = n.ask("free", hello)
		require.Equal(t, 200, res.StatusCode, "another key is not held back")
		require.Empty(t, res.Header.Get("x-ratelimit-limit-requests"))
		require.Equal(t, contract == "strict", res.Header.Get("x-ratelimit-remaining-requests") != "")
	}
}

func TestLimitsHoldOnEveryEndpoint(t *testing.T) {
	for path, body := range map[string]string{
		"/v1/responses":        hello,
		"/v1/chat/completions": `{"messages":[{"role":"user","content":"hi"}],"max_tokens":20}`,
		"/v1/completions":      `{"prompt":"hi","max_tokens":20}`,
	} {
		n := keyed(t, "hi", Config{}, keys.Key{Name: "a", Balance: &keys.Balance{Granted: 10, Price: keys.DefaultPrice}}, keys.Key{Name: "b", RequestsPerMinute: 1})
		res, out := n.do("POST", path, body, "Authorization", "Bearer a")
		require.Equal(t, http.StatusPaymentRequired, res.StatusCode, out)
		require.Contains(t, errorOf(t, out)["message"], "balance of this key is 10")
		for _, want := range []int{200, 429} {
			res, out = n.do("POST", path, body, "Authorization", "Bearer b")
			require.Equal(t, want, res.StatusCode, out)
		}
	}
}

// A balance is charged what a response tells as its usage, at the prices of its
// key, and what was reserved beyond that is given back.
func TestBalanceIsChargedAsUsed(t *testing.T) {
	n := keyed(t, "a few words", Config{MetricsByKey: true}, keys.Key{Name: "a", Balance: &keys.Balance{Granted: 100_000, Price: keys.Price{Input: 1, Cached: 1, Output: 10}}})
	holder := n.server.keys.Named()[0]
	spent := 0.0
	for _, stream := range []string{"", `"stream":true,`} {
		res, out := n.ask("a", `{`+stream+hello[1:])
		require.Equal(t, 200, res.StatusCode, out)
		input, output := usageIn(t, out)
		spent += input + 10*output
		require.InDelta(t, 100_000-spent, holder.Totals().Balance, 0, out)
	}
	_, page := n.do("GET", "/metrics", "")
	require.Contains(t, page, `quern:key_requests_total{model_name="test-model",key="a"} 2`)
	require.Contains(t, page, `quern:key_balance_tokens{model_name="test-model",key="a"}`)
}

// usageIn finds the last input_tokens and output_tokens of an answer.
func usageIn(t *testing.T, out string) (input, output float64) {
	t.Helper()
	if i := strings.LastIndex(out, "event: response.completed\ndata: "); i >= 0 {
		out, _, _ = strings.Cut(out[i+len("event: response.completed\ndata: "):], "\n")
		u := dig(decodeObject(t, out), "response", "usage")
		return dig(u, "input_tokens").(float64), dig(u, "output_tokens").(float64)
	}
	u := dig(decodeObject(t, out), "usage")
	return dig(u, "input_tokens").(float64), dig(u, "output_tokens").(float64)
}

func TestModelsOfAKey(t *testing.T) {
	n := keyed(t, "hi", Config{}, keys.Key{Name: "a", Models: []string{"other"}}, keys.Key{Name: "b", Models: []string{"alias"}})
	res, out := n.ask("a", hello)
	require.Equal(t, 404, res.StatusCode)
	require.Equal(t, codeModelNotFound, errorOf(t, out)["code"])
	_, out = n.do("GET", "/v1/models", "", "Authorization", "Bearer a")
	require.NotContains(t, out, "test-model")
	res, _ = n.do("GET", "/v1/models/test-model", "", "Authorization", "Bearer a")
	require.Equal(t, 404, res.StatusCode)
	res, out = n.ask("b", hello)
	require.Equal(t, 200, res.StatusCode, out)
}

func TestUsageByKeyIsOptIn(t *testing.T) {
	n := keyed(t, "hi", Config{}, keys.Key{Name: "very-visible"})
	n.ask("very-visible", hello)
	_, page := n.do("GET", "/metrics", "")
	require.NotContains(t, page, "very-visible")
	require.NotContains(t, page, "quern:key_")
}

func TestAKeysFileWithoutKeysLetsNobodyIn(t *testing.T) {
	n := keyed(t, "hi", Config{})
	res, _ := n.ask("", hello)
	require.Equal(t, 401, res.StatusCode)
	res, _ = n.do("POST", "/v1/responses", hello)
	require.Equal(t, 401, res.StatusCode)
}

func decodeObject(t *testing.T, text string) object {
	t.Helper()
	var o object
	require.NoError(t, json.Unmarshal([]byte(text), &o), text)
	return o
}
