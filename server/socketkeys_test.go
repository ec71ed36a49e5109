package server

import (
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"quern/engine"
	"quern/server/keys"
)

// What a POST is told in headers, a turn of a socket is told in its first event.
func TestSocketTellsHeaders(t *testing.T) {
	n := keyed(t, "hi", Config{}, keys.Key{Name: "a", RequestsPerMinute: 3})
	l := n.dial("Authorization", "Bearer a")
	s := l.turn(`"input":"hi","tools":[{"type":"web_search"},{"type":"function","name":"f","strict":false,"parameters":{"type":"object","properties":{"a":{"type":"array","uniqueItems":true}}}}],"tool_choice":"required"`)
	headers := s.Events[0]["headers"].(object)
	require.Equal(t, "tools[0]=web_search", headers["x-quern-ignored"])
	require.Contains(t, headers["x-quern-relaxed"], "tools[1].parameters")
	require.Equal(t, "3", headers["x-ratelimit-limit-requests"])
	require.Equal(t, "2", headers["x-ratelimit-remaining-requests"])
	for _, e := range s.Events[1:] {
		require.NotContains(t, e, "headers")
	}
	l.turn(`"input":"hi"`)
	l.turn(`"input":"hi"`)
	l.send(`{"type":"response.create","input":"hi"}`)
	e := l.next()
	require.Equal(t, []any{"error", 429.0, codeRateLimit}, []any{e["type"], e["status"], e["code"]})
	require.Equal(t, "0", dig(e, "headers", "x-ratelimit-remaining-requests"))
	require.NotEmpty(t, dig(e, "headers", "retry-after"))
	require.NotContains(t, newNode(t, "hi").dial().turn(`"input":"hi"`).Events[0], "headers", "nothing to tell")
}

func TestAnOverloadOverASocket(t *testing.T) {
	n := newNode(t, "hi", nodeOptions{cost: time.Minute, engine: engine.Config{MaxRunning: 1, MaxQueue: -1}})
	busy, err := n.model.Engine.Submit(t.Context(), engine.Request{Prompt: []engine.Token{'x'}, Logprobs: -1})
	require.NoError(t, err)
	defer busy.Cancel()
	e := n.dial().refused(503, `{"type":"response.create","input":"hi"}`)
	require.Equal(t, codeOverloaded, e["code"])
}

// reload replaces the keys file of a keyed node and reads it again.
func (n *node) reload(list ...keys.Key) {
	n.t.Helper()
	for i := range list {
		list[i].Hash = keys.HashOf(list[i].Name)
	}
	require.NoError(n.t, keys.Edit(n.keysFile, func([]keys.Key) ([]keys.Key, error) { return list, nil }))
	require.NoError(n.t, n.server.keys.Reload())
}

// A key that is revoked, or limited, while its connections are open.
func TestKeysChangeUnderAnOpenSocket(t *testing.T) {
	n := keyed(t, strings.Repeat("word ", 20), Config{}, keys.Key{Name: "a"}, keys.Key{Name: "b"})
	n.Fake.Cost = func(*engine.Batch) time.Duration { return time.Millisecond }
	a, b := n.dial("Authorization", "Bearer a"), n.dial("Authorization", "Bearer b")
	require.Equal(t, "completed", a.turn(`"input":"hi"`).Final()["status"])

	a.send(`{"type":"response.create","input":"runs when its key goes"}`)
	require.Equal(t, "response.created", a.next()["type"])
	n.reload(keys.Key{Name: "b", RequestsPerMinute: 1})
	last := object{}
	for last["type"] != "response.completed" {
		last = a.next()
	}
	e := a.refused(http.StatusUnauthorized, `{"type":"response.create","input":"hi"}`)
	require.Equal(t, "invalid_api_key", e["code"])
	require.Equal(t, websocket.StatusPolicyViolation, a.closed(), "nothing more can come of it")

	b.turn(`"input":"hi"`)
	e = b.refused(http.StatusTooManyRequests, `{"type":"response.create","input":"hi"}`)
	require.Equal(t, codeRateLimit, e["code"], "a new limit holds on connections that are older")
	n.reload(keys.Key{Name: "a"}, keys.Key{Name: "b", Models: []string{"other"}})
	e = b.refused(http.StatusNotFound, `{"type":"response.create","input":"hi"}`)
	require.Equal(t, codeModelNotFound, e["code"])
	n.dial("Authorization", "Bearer a").turn(`"input":"hi"`)
	require.NoError(t, os.WriteFile(n.keysFile, []byte("keys: 7"), 0o600))
	require.Error(t, n.server.keys.Reload())
	n.dial("Authorization", "Bearer a").turn(`"input":"a file that can't be read changes nothing"`)
}

// price makes one kind of token show in the balance as another can't.
var price = keys.Price{Input: 1, Cached: 0.5, Output: 1000}

const granted = 10_000_000

// balanced is a node whose one key has a balance.
func balanced(t *testing.T, answer string, cfg Config) (*node, *keys.Holder) {
	n := keyed(t, answer, cfg, keys.Key{Name: "a", TokensPerMinute: 1_000_000, Balance: &keys.Balance{Granted: granted, Price: price}})
	return n, n.server.keys.Named()[0]
}

// spent is what a usage costs, in whole tokens of the balance.
func spent(t *testing.T, usage any) float64 {
	t.Helper()
	u := usage.(object)
	cached := dig(u, "input_tokens_details", "cached_tokens").(float64)
	return u["input_tokens"].(float64) - cached + cached*price.Cached + u["output_tokens"].(float64)*price.Output
}

// settled waits until nothing is reserved and wants the balance to be what the
// told usages leave of it.
func settled(t *testing.T, h *keys.Holder, usages ...any) {
	t.Helper()
	left := float64(granted)
	for _, u := range usages {
		left -= spent(t, u)
	}
	require.Eventually(t, func() bool { return h.Totals().Balance == int64(left) }, 10*time.Second, time.Millisecond,
		"want %v left", left)
}

// Each turn of a socket is charged what its last event tells, warm-ups too.
func TestTurnsAreChargedWhatTheyTell(t *testing.T) {
	n, h := balanced(t, "a few words", Config{})
	l := n.dial("Authorization", "Bearer a")
	var usages []any
	for _, fields := range []string{`"input":"hello there"`, `"input":"a long prompt that is read","generate":false`, `"input":"a long prompt that is read, and more"`, `"input":"x","max_output_tokens":3`} {
		usages = append(usages, l.read(fields).Final()["usage"])
		settled(t, h, usages...)
	}
	require.EqualValues(t, 0, dig(usages[1], "output_tokens"))
	require.EqualValues(t, 3, dig(usages[3], "output_tokens"))

	limit := int64(granted) - h.Totals().Balance + 5_000 // what is left is little
	n.reload(keys.Key{Name: "a", Balance: &keys.Balance{Granted: limit, Price: price}})
	e := l.refused(http.StatusPaymentRequired, `{"type":"response.create","input":"hi","max_output_tokens":100}`)
	require.Equal(t, "insufficient_quota", e["code"])
	s := l.turn(`"input":"hi","max_output_tokens":2`)
	require.Equal(t, int64(5_000-spent(t, s.Final()["usage"])), h.Totals().Balance)
}

// However a request ends, it is charged what it tells as its usage, and nothing
// stays reserved.
func TestBalancesAfterBadEnds(t *testing.T) {
	long := strings.Repeat("word ", 300)
	slow := func(n *node) *node {
		n.Fake.Cost = func(*engine.Batch) time.Duration { return 2 * time.Millisecond }
		return n
	}
	t.Run("deadline", func(t *testing.T) {
		n, h := balanced(t, long, Config{RequestTimeout: 50 * time.Millisecond})
		slow(n)
		_, out := n.ask("a", `{"input":"hi","stream":true}`)
		_, last, _ := strings.Cut(out, "event: response.failed\ndata: ")
		last, _, _ = strings.Cut(last, "\n")
		usage := dig(decodeObject(t, last), "response", "usage")
		require.Positive(t, dig(usage, "output_tokens"))
		settled(t, h, usage)
	})
	t.Run("client gone", func(t *testing.T) {
		n, h := balanced(t, long, Config{})
		slow(n)
		l := n.dial("Authorization", "Bearer a")
		l.send(`{"type":"response.create","input":"hi"}`)
		for l.next()["type"] != "response.output_text.delta" {
		}
		require.NoError(t, l.conn.CloseNow())
		require.Eventually(t, func() bool { return h.Totals().Output > 0 }, 10*time.Second, time.Millisecond)
		u := h.Totals()
		settled(t, h, object{"input_tokens": float64(u.Input), "output_tokens": float64(u.Output), "input_tokens_details": object{"cached_tokens": float64(u.Cached)}})
		require.Less(t, u.Output, uint64(300))
	})
	t.Run("cancelled in the background", func(t *testing.T) {
		n, h := balanced(t, long, withStore(Config{}))
		slow(n)
		_, out := n.ask("a", `{"input":"hi","background":true}`)
		path := "/v1/responses/" + decodeObject(t, out)["id"].(string)
		require.Less(t, h.Totals().Balance, int64(granted), "what may be used is reserved meanwhile")
		require.Eventually(t, func() bool { return n.model.Engine.Stats().GeneratedTokens > 0 }, 10*time.Second, time.Millisecond)
		settled(t, h, n.fetched("POST", path+"/cancel", 200, "Authorization", "Bearer a")["usage"])
	})
	t.Run("refused by the engine", func(t *testing.T) {
		n, h := balanced(t, "hi", Config{})
		res, _ := n.ask("a", `{"input":"`+strings.Repeat("x", 3000)+`"}`)
		require.Equal(t, 400, res.StatusCode)
		settled(t, h)
	})
	t.Run("a step that fails", func(t *testing.T) {
		n, h := balanced(t, "hi", Config{})
		n.Fake.Fail = func(int, *engine.Batch) error { return os.ErrInvalid }
		res, _ := n.ask("a", `{"input":"hi"}`)
		require.Equal(t, 500, res.StatusCode)
		settled(t, h)
	})
	t.Run("completed in the background", func(t *testing.T) {
		n, h := balanced(t, "hi", withStore(Config{}))
		_, out := n.ask("a", `{"input":"hi","background":true}`)
		path := "/v1/responses/" + decodeObject(t, out)["id"].(string)
		var o object
		require.Eventually(t, func() bool {
			o = n.fetched("GET", path, 200, "Authorization", "Bearer a")
			return terminal(o)
		}, 10*time.Second, time.Millisecond)
		settled(t, h, o["usage"])
	})
}

// A key's requests at once are counted over all the ways in, and given back.
func TestConcurrencyOverAllWays(t *testing.T) {
	n := keyed(t, strings.Repeat("word ", 300), withStore(Config{}), keys.Key{Name: "a", Concurrency: 1})
	n.Fake.Cost = func(*engine.Batch) time.Duration { return time.Millisecond }
	_, out := n.ask("a", `{"input":"hi","background":true}`)
	id := decodeObject(t, out)["id"].(string)
	l := n.dial("Authorization", "Bearer a")
	e := l.refused(429, `{"type":"response.create","input":"hi"}`)
	require.Contains(t, e["message"], "1 requests at once")
	res, _ := n.ask("a", hello)
	require.Equal(t, 429, res.StatusCode)
	n.fetched("POST", "/v1/responses/"+id+"/cancel", 200, "Authorization", "Bearer a")
	n.Say("hi")
	require.Eventually(t, func() bool { // the place is given back behind the answer
		l.send(`{"type":"response.create","input":"hi"}`)
		for {
			switch e := l.next(); e["type"] {
			case "error":
				return false
			case "response.completed":
				return true
			}
		}
	}, 10*time.Second, time.Millisecond)
}
