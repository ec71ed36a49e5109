package bench

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestStallSeesTheStreamStandStill(t *testing.T) {
	s, c := newFake(t)
	s.gap, s.perWord = 5*time.Millisecond, time.Millisecond
	o := Stalled{Seed: 1, PromptWords: 200, MaxTokens: 120, After: 100 * time.Millisecond}
	r, err := Stall(t.Context(), c, o)
	require.NoError(t, err)
	require.GreaterOrEqual(t, value(t, r, "stalled_max_itl_ms"), 150.0)
	require.Less(t, value(t, r, "idle_median_itl_ms"), 50.0)
	require.Greater(t, value(t, r, "stall_factor"), 5.0)
	require.Equal(t, 200, count(t, r, "prompt_input_tokens"))
	require.GreaterOrEqual(t, value(t, r, "prompt_alone_ms"), 200.0)
	require.Positive(t, value(t, r, "prompt_slowdown"))
	log := s.log()
	require.Len(t, log, 3)
	require.NotEqual(t, log[0].Input, log[2].Input, "the prompt must not be cached")
}

func TestStallNeedsAStreamThatLasts(t *testing.T) {
	s, c := newFake(t)
	s.gap, s.perWord = time.Millisecond, time.Millisecond
	_, err := Stall(t.Context(), c, Stalled{PromptWords: 100, MaxTokens: 20, After: 10 * time.Second})
	require.ErrorContains(t, err, "more tokens")
	_, err = Stall(t.Context(), c, Stalled{PromptWords: 1, MaxTokens: 400, After: time.Nanosecond})
	require.ErrorContains(t, err, "too few")
}

func TestStallPassesFailuresOn(t *testing.T) {
	s, c := newFake(t)
	for failing := 1; failing <= 3; failing++ {
		start := len(s.log())
		s.handle = func(n int, w http.ResponseWriter, _ *http.Request) bool {
			if n-start == failing {
				http.Error(w, "no", http.StatusServiceUnavailable)
				return true
			}
			return false
		}
		s.gap = 3 * time.Millisecond
		_, err := Stall(t.Context(), c, Stalled{PromptWords: 10, MaxTokens: 40, After: 20 * time.Millisecond})
		require.ErrorContains(t, err, "HTTP 503", "%d", failing)
	}
}

func TestStallValidate(t *testing.T) {
	for _, o := range []Stalled{{PromptWords: 0, MaxTokens: 9, After: 1}, {PromptWords: 1, MaxTokens: 2, After: 1}, {PromptWords: 1, MaxTokens: 9}} {
		_, err := Stall(t.Context(), nil, o)
		require.Error(t, err)
	}
}
