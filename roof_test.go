package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"quern/cgo"
	"quern/models/gguf"
)

func TestRoofOfAModel(t *testing.T) {
	var r roofReport
	r.of(cgo.Roof{ReadBytes: 1000, FloatProducts: 300, Int8Products: 600}, gguf.Work{DecodeBytes: 100, Products: 20})
	require.InDelta(t, 10, r.DecodeTokens, 1e-9)
	require.InDelta(t, 30, r.PrefillTokens, 1e-9)

	var none roofReport
	none.of(cgo.Roof{ReadBytes: 1000, FloatProducts: 300}, gguf.Work{})
	require.Zero(t, none.DecodeTokens)
}

func TestBenchRoof(t *testing.T) {
	code, out, errs := quern(t, "bench", "roof", "--threads", "1", "--json")
	require.Zero(t, code, errs)
	var r roofReport
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	require.Positive(t, r.ReadBytes)
	require.Equal(t, 1, r.Threads)
	code, _, errs = quern(t, "bench", "roof", "no-such.gguf", "--threads", "1")
	require.NotZero(t, code)
	require.Contains(t, errs, "no-such.gguf")
}
