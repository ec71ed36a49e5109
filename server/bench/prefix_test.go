package bench

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPrefixIsColdThenWarm(t *testing.T) {
	s, c := newFake(t)
	s.perWord = time.Millisecond
	o := Repeated{Seed: 4, PromptWords: 60, MaxTokens: 2}
	r, err := Prefix(t.Context(), c, o)
	require.NoError(t, err)
	require.Zero(t, value(t, r, "cold_cached_token_ratio"))
	require.Greater(t, value(t, r, "warm_cached_token_ratio"), 0.9)
	require.GreaterOrEqual(t, value(t, r, "cold_ttft_ms"), 60.0)
	require.Positive(t, value(t, r, "cold_prefill_throughput"))
	log := s.log()
	require.Len(t, log, 2)
	require.Equal(t, log[0].Input, log[1].Input)

	require.NoError(t, PrefixAgain(t.Context(), c, o, r))
	require.Equal(t, log[0].Input, s.log()[2].Input)
	require.InDelta(t, value(t, r, "restored_ttft_ms")/value(t, r, "cold_ttft_ms"), value(t, r, "restored_share_of_cold"), 1e-9)

	o.Seed++
	_, err = Prefix(t.Context(), c, o)
	require.NoError(t, err)
	require.NotEqual(t, log[0].Input, s.log()[3].Input)
	o.Seed, o.PromptWords = 4, 120
	r, err = Prefix(t.Context(), c, o)
	require.NoError(t, err)
	require.Less(t, value(t, r, "cold_cached_token_ratio"), 0.1, "a longer prompt begins otherwise")
}

func TestPrefixPassesFailuresOn(t *testing.T) {
	s, c := newFake(t)
	s.handle = func(n int, w http.ResponseWriter, _ *http.Request) bool {
		if n == 2 {
			http.Error(w, "no", http.StatusServiceUnavailable)
		}
		return n == 2
	}
	_, err := Prefix(t.Context(), c, Repeated{PromptWords: 3, MaxTokens: 1})
	require.ErrorContains(t, err, "HTTP 503")
	for _, o := range []Repeated{{MaxTokens: 1}, {PromptWords: 1}} {
		_, err := Prefix(t.Context(), c, o)
		require.Error(t, err)
	}
}

func TestEchoPrompts(t *testing.T) {
	for _, kind := range []string{CodeEdit, JSONEcho} {
		d := Dataset{Kind: kind, Seed: 3, PromptWords: 100}
		require.NoError(t, d.Validate())
		text := func(number uint64) string { return (&session{data: d, number: number}).input()[0].Content }
		first, again := text(1), text(1)
		require.Equal(t, first, again)
		require.NotEqual(t, text(1), text(2))
		n := len(strings.Fields(text(1)))
		require.Greater(t, n, 80, kind)
		require.Less(t, n, 300, kind)
		if kind == JSONEcho {
			body := strings.Split(text(1), "```")[1]
			require.True(t, json.Valid([]byte(strings.TrimPrefix(body, "json"))), body)
		}
	}
}
