package server

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"quern/engine"
)

func TestProfileAddsUp(t *testing.T) {
	p := profileOf(engine.Stats{
		Uptime: 10 * time.Second, IdleSum: 2 * time.Second, StepSum: 6 * time.Second, SampleSum: time.Second,
	})
	require.Equal(t, parts{Decode: 5, Sample: 1, Schedule: 2, Idle: 2}, p.Seconds)
	require.Equal(t, parts{Decode: 0.625, Sample: 0.125, Schedule: 0.25}, p.Busy)
	require.Zero(t, profileOf(engine.Stats{}).Busy)
}

func TestProfileOfANode(t *testing.T) {
	n := newNode(t, "hello")
	n.create(`{"input":"hi there, this is a prompt of some length"}`)
	_, body := n.do("GET", "/debug/steps", "")
	var p stepProfile
	require.NoError(t, json.Unmarshal([]byte(body), &p))
	require.Positive(t, p.Steps)
	require.Positive(t, p.PrefillRows)
	require.Equal(t, uint64(5), p.DecodeRows, "h, e, l, l, o after the row that ends the prompt")
	require.Positive(t, p.Seconds.Decode)
	require.InDelta(t, p.UptimeS, p.Seconds.Decode+p.Seconds.Sample+p.Seconds.Schedule+p.Seconds.Idle, 1e-3)
}
