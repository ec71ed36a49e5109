package server

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestADeltaAllocatesNothing holds the cost of the path that runs once a token
// and stream.
func TestADeltaAllocatesNothing(t *testing.T) {
	o := &responseOutput{res: newResource("m", &echo{}, time.Now()), now: time.Now}
	o.events.on = true
	o.start()
	o.text([]byte("first"), nil)
	o.body = make([]byte, 0, 1<<20) // grows by doubling; not what is measured
	delta := []byte("wörd \"quoted\"\n")
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		o.events.buf = o.events.buf[:0]
		o.text(delta, nil)
	}))
	c := &chatOutput{chunkWriter: chunkWriter{id: "chatcmpl-1", model: "m", on: true}, content: make([]byte, 0, 1<<20)}
	c.start()
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		c.buf = c.buf[:0]
		c.text(delta, nil)
	}))
	h := newHistogram(.1, .2)
	require.Zero(t, testing.AllocsPerRun(1000, func() { h.observeMany(time.Second, 3) }))
}

func BenchmarkDelta(b *testing.B) {
	o := &responseOutput{res: newResource("m", &echo{}, time.Now()), now: time.Now}
	o.events.on = true
	o.start()
	b.ReportAllocs()
	for b.Loop() {
		o.events.buf, o.body = o.events.buf[:0], o.body[:0]
		o.text([]byte(" hello"), nil)
	}
}

func BenchmarkMetricsPage(b *testing.B) {
	m := newMetrics()
	b.ReportAllocs()
	for b.Loop() {
		m.build(nil, nil, nil, time.Now())
	}
}
