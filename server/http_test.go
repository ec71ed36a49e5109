package server

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"quern/engine"
	"quern/server/servertest"
)

func TestKeys(t *testing.T) {
	n := newNode(t, "hi", nodeOptions{config: Config{APIKeys: []string{"one", "two"}}})
	for _, row := range []struct {
		header string
		status int
	}{{"", 401}, {"Bearer wrong", 401}, {"Basic one", 401}, {"Bearer ", 401}, {"Bearer one", 200}, {"bearer two", 200}} {
		res, body := n.do("POST", "/v1/responses", `{"input":"hi"}`, "Authorization", row.header)
		require.Equal(t, row.status, res.StatusCode, row.header)
		if row.status == 401 {
			require.Equal(t, "invalid_api_key", errorOf(t, body)["code"])
			require.Contains(t, res.Header.Get("WWW-Authenticate"), "Bearer")
		}
	}
	for path, status := range map[string]int{"/health": 200, "/metrics": 200, "/version": 200, "/healthz/live": 200, "/readyz": 200, "/v1/models": 401, "/v1/loads": 401} {
		res, _ := n.do("GET", path, "")
		require.Equal(t, status, res.StatusCode, path)
	}
}

func TestItemsOfAnotherKeyAreNotFound(t *testing.T) {
	n := newNode(t, "secret", nodeOptions{config: Config{APIKeys: []string{"one", "two"}}})
	_, body := n.do("POST", "/v1/responses", `{"input":"hi"}`, "Authorization", "Bearer one")
	var o object
	require.NoError(t, json.Unmarshal([]byte(body), &o))
	id := dig(o, "output", 0, "id").(string)
	ref := `{"input":[{"type":"item_reference","id":"` + id + `"},{"role":"user","content":"x"}]}`
	res, _ := n.do("POST", "/v1/responses", ref, "Authorization", "Bearer two")
	require.Equal(t, 404, res.StatusCode)
	res, _ = n.do("POST", "/v1/responses", ref, "Authorization", "Bearer one")
	require.Equal(t, 200, res.StatusCode)
}

func TestContentTypes(t *testing.T) {
	n := newNode(t, "hi")
	for kind, status := range map[string]int{
		"application/json": 200, "application/json; charset=utf-8": 200, "Application/JSON;charset=UTF-8": 200,
		"text/plain": 415, "application/x-www-form-urlencoded": 415, "": 415, "application/json; charset=latin1": 415, ";;": 415,
	} {
		res, body := n.do("POST", "/v1/responses", `{"input":"hi"}`, "Content-Type", kind)
		require.Equal(t, status, res.StatusCode, kind)
		if status == 415 {
			require.Contains(t, errorOf(t, body)["message"], "application/json")
		}
	}
}

func gzipped(s string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(s))
	_ = w.Close()
	return b.String()
}

func zstded(s string) string {
	e, _ := zstd.NewWriter(nil)
	return string(e.EncodeAll([]byte(s), nil))
}

func TestCompressedBodies(t *testing.T) {
	n := newNode(t, "hi", nodeOptions{config: Config{MaxBody: 4096}})
	body := `{"input":"hello gzip"}`
	bomb := `{"input":"` + strings.Repeat("a", 1<<20) + `"}`
	for _, row := range []struct {
		encoding, body string
		status         int
	}{
		{"gzip", gzipped(body), 200}, {"zstd", zstded(body), 200}, {"identity", body, 200}, {"GZIP", gzipped(body), 200},
		{"gzip", gzipped(bomb), 413}, {"zstd", zstded(bomb), 413}, {"", bomb, 413},
		{"gzip", body, 400}, {"zstd", body, 400}, {"gzip", gzipped(body)[:20], 400}, {"br", body, 415},
	} {
		res, out := n.do("POST", "/v1/responses", row.body, "Content-Encoding", row.encoding)
		require.Equal(t, row.status, res.StatusCode, "%s: %s", row.encoding, out)
		if row.status != 200 {
			errorOf(t, out)
		}
	}
}

func TestAnswersAreCompressedWhereAsked(t *testing.T) {
	n := newNode(t, strings.Repeat("All work and no play. ", 80))
	for _, row := range []struct{ accept, encoding string }{
		{"gzip", "gzip"}, {"zstd,gzip", "zstd"}, {"gzip;q=1, zstd;q=0.5", "gzip"}, {"gzip;q=0", ""}, {"br", ""}, {"identity", ""},
	} {
		res, out := n.do("POST", "/v1/responses", `{"input":"hi"}`, "Accept-Encoding", row.accept)
		require.Equal(t, row.encoding, res.Header.Get("Content-Encoding"), row.accept)
		plain := out
		switch row.encoding {
		case "gzip":
			r, err := gzip.NewReader(strings.NewReader(out))
			require.NoError(t, err)
			raw, err := io.ReadAll(r)
			require.NoError(t, err)
			plain = string(raw)
		case "zstd":
			d, err := zstd.NewReader(nil)
			require.NoError(t, err)
			raw, err := d.DecodeAll([]byte(out), nil)
			require.NoError(t, err)
			plain = string(raw)
		}
		require.Contains(t, plain, `"object":"response"`)
	}
	res, out := n.do("POST", "/v1/responses", `{"input":"hi","stream":true}`, "Accept-Encoding", "zstd,gzip")
	require.Empty(t, res.Header.Get("Content-Encoding"), "streams are never compressed")
	servertest.Valid(t, out)
}

func TestUnknownRoutes(t *testing.T) {
	n := newNode(t, "hi")
	for _, row := range []struct {
		method, path string
		status       int
		says         string
	}{
		{"POST", "/responses", 404, "/v1/responses"}, {"POST", "/chat/completions", 404, "/v1/chat/completions"},
		{"GET", "/models/x/y", 404, "/v1/models/x/y"}, {"POST", "/v1/nothing", 404, "/v1/nothing"}, {"GET", "/", 404, "GET /"},
		{"POST", "/v1/responses/nothing/at/all", 404, "nothing"}, {"GET", "/v1/responses", 405, "GET"}, {"DELETE", "/health", 405, "DELETE"},
	} {
		res, body := n.do(row.method, row.path, "")
		require.Equal(t, row.status, res.StatusCode, row.path)
		require.Contains(t, errorOf(t, body)["message"], row.says)
	}
}

func TestRequestIDs(t *testing.T) {
	n := newNode(t, "hi")
	res, _ := n.do("GET", "/version", "", "X-Request-Id", "mine-1")
	require.Equal(t, "mine-1", res.Header.Get("X-Request-Id"))
	res, _ = n.do("GET", "/version", "")
	require.True(t, strings.HasPrefix(res.Header.Get("X-Request-Id"), prefixRequest))
	res, _ = n.do("GET", "/version", "", "X-Request-Id", strings.Repeat("x", 500))
	require.True(t, strings.HasPrefix(res.Header.Get("X-Request-Id"), prefixRequest))
}

func TestModels(t *testing.T) {
	n := newNode(t, "hi")
	n.model.ID = "org/name"
	_, body := n.do("GET", "/v1/models?client_version=1", "")
	var list object
	require.NoError(t, json.Unmarshal([]byte(body), &list))
	require.Equal(t, "list", list["object"])
	require.Len(t, list["data"], 2)
	entry := dig(list, "data", 0).(object)
	require.Equal(t, "org/name", entry["id"])
	require.EqualValues(t, 2000, entry["max_model_len"])
	require.EqualValues(t, 2000, entry["context_length"])
	require.NotEmpty(t, dig(entry, "tool_format", "name"))
	require.Equal(t, "org/name", dig(list, "models", 0, "slug"))
	for path, status := range map[string]int{"/v1/models/org/name": 200, "/v1/models/alias": 200, "/v1/models/other": 404} {
		res, body := n.do("GET", path, "")
		require.Equal(t, status, res.StatusCode, body)
	}
}

func TestTokenEndpoints(t *testing.T) {
	n := newNode(t, "hi")
	_, body := n.do("POST", "/v1/responses/input_tokens", `{"input":"hi"}`)
	var count struct {
		Object      string `json:"object"`
		InputTokens int    `json:"input_tokens"`
	}
	require.NoError(t, json.Unmarshal([]byte(body), &count))
	require.Equal(t, "response.input_tokens", count.Object)
	one := n.create(`{"input":"hi"}`)
	require.EqualValues(t, dig(one, "usage", "input_tokens"), count.InputTokens)

	var rendered struct {
		TokenIDs []int  `json:"token_ids"`
		Prompt   string `json:"prompt"`
	}
	for path, body := range map[string]string{"/v1/responses/render": `{"input":"hi"}`, "/v1/chat/completions/render": `{"messages":[{"role":"user","content":"hi"}]}`} {
		_, out := n.do("POST", path, body)
		require.NoError(t, json.Unmarshal([]byte(out), &rendered))
		require.Len(t, rendered.TokenIDs, count.InputTokens)
		require.Equal(t, n.LastPrompt(), rendered.Prompt)
	}
	_, body = n.do("POST", "/tokenize", `{"prompt":"a<|im_end|>","return_token_strs":true}`)
	require.JSONEq(t, `{"count":2,"max_model_len":2000,"tokens":[97,257],"token_strs":["a","<|im_end|>"]}`, body)
	_, body = n.do("POST", "/tokenize", `{"content":"ab"}`)
	require.JSONEq(t, `{"count":2,"max_model_len":2000,"tokens":[97,98],"token_strs":null}`, body)
	_, body = n.do("POST", "/tokenize", `{"messages":[{"role":"user","content":"hi"}]}`)
	require.Contains(t, body, `"count":21`)
	_, body = n.do("POST", "/detokenize", `{"tokens":[97,257]}`)
	require.JSONEq(t, `{"prompt":"a<|im_end|>","content":"a<|im_end|>"}`, body)
	require.Equal(t, "tokens[1]", n.refused(400, "/detokenize", `{"tokens":[1,99999]}`)["param"])
	require.Equal(t, "prompt", n.refused(400, "/tokenize", `{}`)["param"])
	res, _ := n.do("POST", "/flush_cache", `{}`)
	require.Equal(t, 200, res.StatusCode)
}

func TestLoadingAndDraining(t *testing.T) {
	n := newNode(t, "hi", nodeOptions{noModel: true})
	for _, path := range []string{"/health", "/readyz"} {
		res, body := n.do("GET", path, "")
		require.Equal(t, 503, res.StatusCode)
		require.Equal(t, codeLoading, errorOf(t, body)["code"])
	}
	res, body := n.do("POST", "/v1/responses", `{"input":"hi"}`)
	require.Equal(t, 503, res.StatusCode)
	require.NotEmpty(t, res.Header.Get("Retry-After"))
	errorOf(t, body)
	_, page := n.do("GET", "/metrics", "")
	require.Contains(t, page, `vllm:num_requests_running{model_name=""} 0`)

	n.server.SetModel(n.model)
	res, _ = n.do("GET", "/health", "")
	require.Equal(t, 200, res.StatusCode)
	require.NoError(t, n.server.Drain(context.Background()))
	res, _ = n.do("GET", "/health", "")
	require.Equal(t, 503, res.StatusCode)
	res, body = n.do("POST", "/v1/responses", `{"input":"hi"}`)
	require.Equal(t, 503, res.StatusCode)
	require.Equal(t, codeDraining, errorOf(t, body)["code"])
	require.NotEmpty(t, res.Header.Get("Retry-After"))
	res, _ = n.do("GET", "/metrics", "")
	require.Equal(t, 200, res.StatusCode)
}

// openStream starts a stream and returns once its first text has come. rest
// reads it to the end, hangUp drops it.
func openStream(t *testing.T, n *node, body string) (hangUp func(), rest func() string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "POST", n.http.URL+"/v1/responses", strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	res, err := n.http.Client().Do(req) //nolint:bodyclose // hangUp and rest close it
	require.NoError(t, err)
	require.Equal(t, 200, res.StatusCode)
	var got bytes.Buffer
	buf := make([]byte, 4096)
	for !bytes.Contains(got.Bytes(), []byte("output_text.delta")) {
		k, err := res.Body.Read(buf)
		got.Write(buf[:k])
		require.NoError(t, err, got.String())
	}
	return func() { _ = res.Body.Close() }, func() string {
		_, _ = io.Copy(&got, res.Body)
		_ = res.Body.Close()
		return got.String()
	}
}

func TestDrainLetsStreamsFinish(t *testing.T) {
	n := newNode(t, strings.Repeat("word ", 20), nodeOptions{cost: time.Millisecond})
	_, rest := openStream(t, n, `{"input":"hi","stream":true}`)
	done := make(chan error, 1)
	go func() { done <- n.server.Drain(context.Background()) }()
	s := servertest.Valid(t, rest())
	require.Equal(t, strings.Repeat("word ", 20), s.Text())
	require.NoError(t, <-done)
}

func TestDrainEndsStreamsThatTakeTooLong(t *testing.T) {
	n := newNode(t, strings.Repeat("word ", 300), nodeOptions{cost: 5 * time.Millisecond})
	_, rest := openStream(t, n, `{"input":"hi","stream":true}`)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	require.Error(t, n.server.Drain(ctx))
	s := servertest.Valid(t, rest())
	require.Len(t, s.Of("response.failed"), 1)
	require.Len(t, s.Of("error"), 1)
	require.Equal(t, codeDraining, dig(s.Final(), "error", "code"))
}

func TestClientGoneStopsTheGeneration(t *testing.T) {
	n := newNode(t, strings.Repeat("word ", 300), nodeOptions{cost: 2 * time.Millisecond})
	hangUp, _ := openStream(t, n, `{"input":"hi","stream":true}`)
	require.Equal(t, 1, n.model.Engine.Stats().Running)
	hangUp()
	require.Eventually(t, func() bool { return n.model.Engine.Stats().Running == 0 }, 5*time.Second, time.Millisecond)
	_, page := n.do("GET", "/metrics", "")
	require.Eventually(t, func() bool {
		_, page = n.do("GET", "/metrics", "")
		return strings.Contains(page, `finished_reason="abort"} 1`)
	}, 5*time.Second, 10*time.Millisecond, page)
}

func TestQueueFull(t *testing.T) {
	n := newNode(t, strings.Repeat("word ", 100), nodeOptions{cost: 2 * time.Millisecond, engine: engine.Config{MaxRunning: 1, MaxQueue: -1}})
	hangUp, _ := openStream(t, n, `{"input":"hi","stream":true}`)
	defer hangUp()
	refusal, body := n.do("POST", "/v1/responses", `{"input":"hi"}`)
	require.Equal(t, 429, refusal.StatusCode, body)
	require.NotEmpty(t, refusal.Header.Get("Retry-After"))
	require.Regexp(t, `try again in \d+s`, errorOf(t, body)["message"])
	require.Equal(t, "server_is_overloaded", errorOf(t, body)["code"])
}

func TestDeadline(t *testing.T) {
	n := newNode(t, strings.Repeat("word ", 300), nodeOptions{cost: 5 * time.Millisecond, config: Config{RequestTimeout: 50 * time.Millisecond}})
	e := n.refused(http.StatusGatewayTimeout, "/v1/responses", `{"input":"hi"}`)
	require.Equal(t, codeTimeout, e["code"])
	s := n.stream(`{"input":"hi"}`)
	require.Len(t, s.Of("response.failed"), 1)
	require.Equal(t, codeTimeout, dig(s.Final(), "error", "code"))
}

// TestNeverBegan: a request whose time runs out in the queue is told that the
// node is overloaded, and pays nothing.
func TestNeverBegan(t *testing.T) {
	n := newNode(t, strings.Repeat("word ", 300), nodeOptions{
		cost: time.Millisecond, engine: engine.Config{MaxRunning: 1}, config: Config{RequestTimeout: 10 * time.Millisecond},
	})
	first, err := n.model.Engine.Submit(t.Context(), engine.Request{Prompt: []engine.Token{'x'}, Logprobs: -1})
	require.NoError(t, err)
	defer first.Cancel()
	e := n.refused(http.StatusServiceUnavailable, "/v1/responses", `{"input":"hi"}`)
	require.Equal(t, "server_is_overloaded", e["code"])
	require.Contains(t, e["message"], "10ms")
	s := n.stream(`{"input":"hi"}`)
	require.Equal(t, "server_is_overloaded", dig(s.Final(), "error", "code"))
	require.EqualValues(t, 0, dig(s.Final(), "usage", "total_tokens"))
}

func TestHeartbeats(t *testing.T) {
	n := newNode(t, "hi", nodeOptions{cost: 120 * time.Millisecond, config: Config{Heartbeat: 20 * time.Millisecond, Progress: 60 * time.Millisecond}})
	s := n.stream(`{"input":"hi"}`)
	require.Positive(t, s.Comments)
	require.Greater(t, len(s.Of("response.in_progress")), 1)
	require.Equal(t, "hi", s.Text())
}

func TestAFailedStepFailsItsRequestAlone(t *testing.T) {
	fail := false
	n := newNode(t, "hello", nodeOptions{prepare: func(n *node) {
		n.Fake.Fail = func(int, *engine.Batch) error {
			if fail {
				return io.ErrUnexpectedEOF
			}
			return nil
		}
	}})
	fail = true
	e := n.refused(http.StatusInternalServerError, "/v1/responses", `{"input":"hi"}`)
	require.Equal(t, codeServerError, e["code"])
	s := n.stream(`{"input":"hi"}`)
	require.Len(t, s.Of("response.failed"), 1)
	fail = false
	require.Equal(t, "hello", textOf(n.create(`{"input":"hi"}`)))
}

func TestAPanicIsA500AndOthersGoOn(t *testing.T) {
	var log lockedBuffer
	s := New(Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	s.handler.(*gin.Engine).GET("/panic", func(*gin.Context) { panic("oh no") })
	n := newNode(t, "hi")
	n.http.Config.Handler = s.Handler()
	res, body := n.do("GET", "/panic", "")
	require.Equal(t, 500, res.StatusCode)
	require.NotContains(t, errorOf(t, body)["message"], "oh no")
	require.Contains(t, log.String(), "oh no")
	require.Contains(t, log.String(), "http_test.go")
	res, _ = n.do("GET", "/version", "")
	require.Equal(t, 200, res.StatusCode)
}

func TestTheLogLine(t *testing.T) {
	for _, prompts := range []bool{false, true} {
		var log lockedBuffer
		n := newNode(t, "my answer", nodeOptions{config: Config{
			Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})), LogPrompts: prompts,
		}})
		n.do("POST", "/v1/responses", `{"input":"my secret","stream":true}`, "X-Request-Id", "r1")
		n.do("GET", "/health", "")
		n.http.Close() // waits for the handlers
		for _, want := range []string{"request_id=r1", "status=200", "response_id=resp_", "input_tokens=", "cached_tokens=", "output_tokens=10", "reason=stop", "ttft=", "stream=true"} {
			require.Contains(t, log.String(), want)
		}
		require.Equal(t, prompts, strings.Contains(log.String(), "secret"))
		require.Equal(t, prompts, strings.Contains(log.String(), "my answer"))
		require.Equal(t, 1, strings.Count(log.String(), "level=INFO"), "probes are logged at debug level: %s", log.String())
	}
}

func TestCacheIsolation(t *testing.T) {
	n := newNode(t, "ok", nodeOptions{config: Config{APIKeys: []string{"one", "two"}, CacheIsolation: true}})
	cached := func(key string) float64 {
		_, body := n.do("POST", "/v1/responses", `{"input":"`+strings.Repeat("a long prompt ", 10)+`"}`, "Authorization", "Bearer "+key)
		var o object
		require.NoError(t, json.Unmarshal([]byte(body), &o))
		return dig(o, "usage", "input_tokens_details", "cached_tokens").(float64)
	}
	require.Zero(t, cached("one"))
	require.NotZero(t, cached("one"))
	require.Zero(t, cached("two"))
}

func TestTheConfiguredOutputLimit(t *testing.T) {
	n := newNode(t, strings.Repeat("word ", 20), nodeOptions{config: Config{MaxOutputTokens: 7}})
	one := n.create(`{"input":"hi"}`)
	require.EqualValues(t, 7, dig(one, "usage", "output_tokens"))
	require.Nil(t, one["max_output_tokens"])
	require.EqualValues(t, 9, dig(n.create(`{"input":"hi","max_output_tokens":9}`), "usage", "output_tokens"))
	require.EqualValues(t, 5, dig(n.create(`{"input":"`+strings.Repeat("x", 1976)+`"}`), "usage", "output_tokens"), "no more than there is room for")
}

// TestAHalfSentBodyHoldsNobodyUp: the connection ends at the body's time limit.
func TestAHalfSentBodyHoldsNobodyUp(t *testing.T) {
	n := newNode(t, "hi", nodeOptions{config: Config{BodyTimeout: 50 * time.Millisecond}})
	c, err := net.Dial("tcp", n.http.Listener.Addr().String())
	require.NoError(t, err)
	defer c.Close()
	_, err = c.Write([]byte("POST /v1/responses HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"))
	require.NoError(t, err)
	require.Equal(t, "hi", textOf(n.create(`{"input":"x"}`)))
	_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
	got, err := io.ReadAll(c)
	require.NoError(t, err)
	require.Contains(t, string(got), "408")
}

func TestASlowReaderLosesItsStreamAlone(t *testing.T) {
	n := newNode(t, strings.Repeat("word ", 380), nodeOptions{config: Config{WriteTimeout: 100 * time.Millisecond}})
	c, err := net.Dial("tcp", n.http.Listener.Addr().String())
	require.NoError(t, err)
	defer c.Close()
	_ = c.(*net.TCPConn).SetReadBuffer(1024)
	body := `{"input":"hi","stream":true,"top_logprobs":20}`
	_, err = c.Write([]byte("POST /v1/responses HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: " + itoa(len(body)) + "\r\n\r\n" + body))
	require.NoError(t, err)
	require.Len(t, textOf(n.create(`{"input":"x"}`)), 1900)
}

func itoa(n int) string { return string(appendInt(nil, n)) }
