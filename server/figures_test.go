package server

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"quern/engine"
	"quern/server/jsonvalue"
)

// agentRequest is a first request of the kind that coding agents send: 40 KB,
// a long system text, a dozen tools.
func agentRequest() []byte {
	var b strings.Builder
	text := func(n int) string { return strings.Repeat(`Do what the user asks, and \"say\" so.\n`, n/43) }
	b.WriteString(`{"model":"test-model","stream":true,"store":false,"parallel_tool_calls":true,"tool_choice":"auto",` +
		`"include":["reasoning.encrypted_content"],"reasoning":{"summary":"auto"},"prompt_cache_key":"0b5d5e1c","input":[` +
		`{"type":"message","role":"developer","content":[{"type":"input_text","text":"` + text(20_000) + `"}]},` +
		`{"type":"message","role":"developer","content":[{"type":"input_text","text":"` + text(5_000) + `"}]},` +
		`{"type":"message","role":"user","content":[{"type":"input_text","text":"` + text(2_000) + `"}]},` +
		`{"type":"message","role":"user","content":[{"type":"input_text","text":"hello"}]}],"tools":[`)
	for i := range 12 {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"type":"function","name":"tool_%d","strict":false,"description":"%s","parameters":{"type":"object","properties":{"path":{"type":"string","description":"%s"},"lines":{"type":"array","items":{"type":"number"}}},"required":["path"],"additionalProperties":false}}`, i, text(600), text(200))
	}
	b.WriteString("]}")
	return []byte(b.String())
}

// validateAndEncode is what a request costs besides template, tokenizer and
// engine: reading, the first events, a text, the last ones.
func validateAndEncode(doc []byte) int {
	v, err := jsonvalue.Parse(doc, maxDepth)
	if err != nil {
		panic(err)
	}
	req, refused := decodeCreate(contracts[0], &Model{Defaults: Sampling{Temperature: 1, TopP: 1}}, v, recall{}, nil)
	if refused != nil {
		panic(refused)
	}
	if refused := (Limits{}).withDefaults().check(&req.task); refused != nil {
		panic(refused)
	}
	if _, refused := req.conversation(); refused != nil {
		panic(refused)
	}
	o := &responseOutput{res: newResource("m", &req.echo, time.Now()), now: time.Now}
	o.events.on = true
	o.start()
	o.text([]byte("Hello."), nil)
	o.finish(outcome{})
	return len(o.events.buf)
}

// TestAgentRequestAllocations holds the figure of 200 allocations.
func TestAgentRequestAllocations(t *testing.T) {
	doc := agentRequest()
	require.InDelta(t, 40_000, len(doc), 6_000)
	n := testing.AllocsPerRun(20, func() { validateAndEncode(doc) })
	t.Logf("%d bytes: %.0f allocations", len(doc), n)
	require.Less(t, n, 200.)
}

func BenchmarkAgentRequest(b *testing.B) {
	doc := agentRequest()
	b.SetBytes(int64(len(doc)))
	b.ReportAllocs()
	for b.Loop() {
		validateAndEncode(doc)
	}
}

// TestAStreamAllocatesNothingADelta runs the whole way of tokens to bytes: a
// stream of 1,000 more costs no more.
func TestAStreamAllocatesNothingADelta(t *testing.T) {
	n := newNode(t, "")
	stream := func(deltas int) func() {
		return func() {
			req := &createRequest{}
			req.logprobs = -1
			o := &responseOutput{res: newResource("m", &req.echo, time.Now()), now: time.Now, body: make([]byte, 0, 1<<16)}
			o.events.on = true
			o.events.buf = make([]byte, 0, 1<<16)
			tr := newTranscript(n.model, &job{task: &req.task}, o)
			for i := range deltas {
				tr.push(&engine.Output{Token: engine.Token('a' + i%26)})
				o.events.buf = o.events.buf[:0]
			}
		}
	}
	few, many := testing.AllocsPerRun(20, stream(1000)), testing.AllocsPerRun(20, stream(2000))
	t.Logf("1,000 deltas: %.0f allocations, 2,000: %.0f", few, many)
	require.InDelta(t, few, many, 8, "growth by doubling aside")
}
