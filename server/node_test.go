package server

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"quern/engine"
	"quern/models/template"
	"quern/models/toolcall"
	"quern/server/servertest"
)

// node is a server over a scripted engine.
type node struct {
	*servertest.Script
	t      testing.TB
	server *Server
	http   *httptest.Server
	model  *Model

	keysFile string // of a keyed node
}

// nodeOptions changes what newNode makes.
type nodeOptions struct {
	config   Config
	engine   engine.Config
	cost     time.Duration // of a step
	template string
	prepare  func(*node) // before the engine starts
	noModel  bool
}

// newNode starts a node that answers every prompt with answer.
func newNode(t testing.TB, answer string, opts ...nodeOptions) *node {
	t.Helper()
	o := nodeOptions{}
	if len(opts) > 0 {
		o = opts[0]
	}
	n := &node{t: t, Script: servertest.NewScript(t, answer)}
	n.Fake.Cost = func(*engine.Batch) time.Duration { return o.cost }
	if o.prepare != nil {
		o.prepare(n)
	}
	if o.engine.MaxLength == 0 {
		o.engine.MaxLength = 2000
	}
	eng := engine.New(n.Fake, o.engine)
	if o.template == "" {
		o.template = servertest.Template
	}
	source := o.template
	if source == noTemplate {
		source = ""
	}
	tmpl, err := template.New(source, template.Options{EOS: "<|im_end|>"})
	require.NoError(t, err)
	marks := "<think></think>"
	if o.template == plainTemplate {
		marks = ""
	}
	format, reason := toolcall.ForTemplate(o.template + marks)
	n.model = &Model{
		ID: "test-model", Aliases: []string{"alias"}, Created: time.Unix(1700000000, 0), ContextLength: eng.MaxLength(),
		Info:     Facts{Architecture: "llama", Quantization: "Q4", KVBlockTokens: 16, Parallel: 8},
		Template: tmpl, Format: format, FormatReason: reason, Tokenizer: n.Tokenizer, Engine: eng,
		Defaults: Sampling{Temperature: 1, TopP: 1, RepeatPenalty: 1},
	}
	n.server = New(o.config)
	if !o.noModel {
		n.server.SetModel(n.model)
	}
	n.http = httptest.NewServer(n.server.Handler())
	t.Cleanup(func() {
		n.http.Close()
		require.NoError(t, eng.Close())
	})
	return n
}

// reply is an answer whose body has been read.
type reply struct {
	StatusCode int
	Header     http.Header
}

// do sends a request and returns the answer and its body.
func (n *node) do(method, path, body string, headers ...string) (reply, string) {
	n.t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), method, n.http.URL+path, strings.NewReader(body))
	require.NoError(n.t, err)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := n.http.Client().Do(req)
	require.NoError(n.t, err)
	defer res.Body.Close()
	out, err := io.ReadAll(res.Body)
	require.NoError(n.t, err)
	return reply{res.StatusCode, res.Header}, string(out)
}

type object = map[string]any

// create posts to /v1/responses and wants a valid resource.
func (n *node) create(body string) object {
	n.t.Helper()
	res, out := n.do("POST", "/v1/responses", body)
	require.Equal(n.t, http.StatusOK, res.StatusCode, out)
	require.Equal(n.t, "application/json", res.Header.Get("Content-Type"))
	var o object
	require.NoError(n.t, json.Unmarshal([]byte(out), &o))
	require.Empty(n.t, servertest.CheckResource(o), out)
	return o
}

// stream posts the same body with stream set and wants a valid stream.
func (n *node) stream(body string) *servertest.Stream {
	n.t.Helper()
	res, out := n.do("POST", "/v1/responses", `{"stream":true,`+strings.TrimPrefix(body, "{"))
	require.Equal(n.t, http.StatusOK, res.StatusCode, out)
	require.Equal(n.t, "text/event-stream", res.Header.Get("Content-Type"))
	return servertest.Valid(n.t, out)
}

// both creates and streams, and wants the same output; it returns that of the
// stream.
func (n *node) both(body string) (object, *servertest.Stream) {
	n.t.Helper()
	one, s := n.create(body), n.stream(body)
	require.Equal(n.t, scrub(one), scrub(s.Final()), "streamed and collected responses differ")
	return one, s
}

// scrub takes ids and times out of a response.
func scrub(o object) object {
	raw, _ := json.Marshal(o)
	var out object
	_ = json.Unmarshal(raw, &out)
	delete(out, "id")
	delete(out, "created_at")
	delete(out, "completed_at")
	if u, ok := out["usage"].(object); ok {
		delete(u, "input_tokens_details")
	}
	for _, item := range out["output"].([]any) {
		delete(item.(object), "id")
		delete(item.(object), "call_id")
	}
	return out
}

// refused posts a body and wants an error of this status; it returns the error.
func (n *node) refused(status int, path, body string) object {
	n.t.Helper()
	res, out := n.do("POST", path, body)
	require.Equal(n.t, status, res.StatusCode, out)
	return errorOf(n.t, out)
}

func errorOf(t testing.TB, body string) object {
	t.Helper()
	var o struct{ Error object }
	require.NoError(t, json.NewDecoder(bytes.NewReader([]byte(body))).Decode(&o), body)
	require.NotEmpty(t, o.Error["message"], body)
	require.NotEmpty(t, o.Error["type"], body)
	for _, key := range []string{"param", "code"} {
		_, there := o.Error[key]
		require.True(t, there, "%s is missing in %s", key, body)
	}
	return o.Error
}

// items returns the output items of one type.
func items(o object, kind string) []object {
	var out []object
	for _, item := range o["output"].([]any) {
		if item.(object)["type"] == kind {
			out = append(out, item.(object))
		}
	}
	return out
}

// textOf joins the visible text.
func textOf(o object) string {
	text := ""
	for _, m := range items(o, "message") {
		for _, p := range m["content"].([]any) {
			text += p.(object)["text"].(string)
		}
	}
	return text
}

// dig walks down keys and indexes.
func dig(v any, path ...any) any {
	for _, p := range path {
		switch p := p.(type) {
		case string:
			v = v.(object)[p]
		case int:
			v = v.([]any)[p]
		}
	}
	return v
}
