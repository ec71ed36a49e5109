package server

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestBodiesAreBoundedTogether: what is held of requests is bounded over all
// connections, and given back when they have been answered.
func TestBodiesAreBoundedTogether(t *testing.T) {
	n := newNode(t, strings.Repeat("word ", 300), nodeOptions{cost: 20 * time.Millisecond, config: Config{MaxBody: 1000}})
	body := func(size int) string {
		return `{"stream":true,"input":"hi","metadata":null` + strings.Repeat(" ", size-43) + `}`
	}
	all := n.server.intake.bytes.Load()
	require.EqualValues(t, 8000, all)
	var streams []func()
	for range 8 {
		hangUp, _ := openStream(t, n, body(900))
		streams = append(streams, hangUp)
	}
	refusal, out := n.do("POST", "/v1/responses", body(900))
	require.Equal(t, 429, refusal.StatusCode, out)
	require.Equal(t, codeOverloaded, errorOf(t, out)["code"])
	require.NotEmpty(t, refusal.Header.Get("Retry-After"))
	l := n.dial()
	e := l.refused(http.StatusServiceUnavailable, body(900))
	require.Equal(t, codeOverloaded, e["code"])
	res, _ := n.do("POST", "/tokenize", `{"prompt":"small ones pass"}`)
	require.Equal(t, 200, res.StatusCode)
	for _, hangUp := range streams {
		hangUp()
	}
	n.Say("ok")
	require.Eventually(t, func() bool { return n.server.intake.bytes.Load() == all }, 10*time.Second, time.Millisecond)
	require.Equal(t, "ok", l.turn(`"input":"the socket is still open"`).Text())
	l.refused(400, `{`)
	require.Eventually(t, func() bool { return n.server.intake.bytes.Load() == all }, 10*time.Second, time.Millisecond)
}

// TestRequestsForTokensTakeTurns: those that ask nothing of the engine wait for a
// place, a bounded number of them.
func TestRequestsForTokensTakeTurns(t *testing.T) {
	n := newNode(t, "hi")
	n.server.intake = newIntake(1<<20, 1)
	n.server.intake.places <- struct{}{} // somebody is at work
	const body = `{"input":"hi"}`
	type result struct {
		status int
		out    string
	}
	results := make(chan result)
	for range intakeTurns {
		go func() {
			res, err := http.Post(n.http.URL+"/v1/responses/render", "application/json", strings.NewReader(body)) //nolint:noctx // a test
			if err != nil {
				results <- result{out: err.Error()}
				return
			}
			defer res.Body.Close()
			out, _ := io.ReadAll(res.Body)
			results <- result{res.StatusCode, string(out)}
		}()
	}
	require.Eventually(t, func() bool { return n.server.intake.turns.Load() == intakeTurns }, 10*time.Second, time.Millisecond)
	for path, body := range map[string]string{
		"/v1/responses/render": body, "/v1/responses/input_tokens": body, "/tokenize": `{"prompt":"x"}`, "/detokenize": `{"tokens":[97]}`,
		"/v1/chat/completions/render": `{"messages":[{"role":"user","content":"hi"}]}`,
	} {
		require.Equal(t, codeOverloaded, n.refused(429, path, body)["code"], path)
	}
	require.Equal(t, "hi", textOf(n.create(body)), "generation is not held up")
	<-n.server.intake.places
	for range intakeTurns {
		r := <-results
		require.Equal(t, 200, r.status, r.out)
	}
	require.Zero(t, n.server.intake.turns.Load())
}
