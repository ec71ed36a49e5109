package bench

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func smallLoad(kind string) Load {
	return Load{
		Dataset:     Dataset{Kind: kind, Seed: 1, PromptWords: 5, SharedWords: 20, TurnWords: 3, Turns: 3},
		Concurrency: 2, Requests: 6, MaxTokens: 3,
	}
}

func value(t *testing.T, r *Result, name string) float64 {
	t.Helper()
	v, ok := r.Value(name)
	require.True(t, ok, name)
	return v
}

func count(t *testing.T, r *Result, name string) int {
	t.Helper()
	return int(value(t, r, name))
}

func TestRunClosedLoop(t *testing.T) {
	s, c := newFake(t)
	s.first, s.gap = 20*time.Millisecond, 5*time.Millisecond
	l := smallLoad(Unique)
	l.Requests, l.Concurrency, l.Warmup = 8, 3, 2
	r, err := Run(t.Context(), c, l)
	require.NoError(t, err)
	require.Equal(t, 8, count(t, r, "completed"))
	require.Zero(t, value(t, r, "failed"))
	require.Equal(t, 24, count(t, r, "total_output_tokens"))
	require.Equal(t, int64(3), s.max.Load())
	require.Len(t, s.log(), 10, "with the warm-up")
	require.GreaterOrEqual(t, value(t, r, "median_ttft_ms"), 20.0)
	require.GreaterOrEqual(t, value(t, r, "median_itl_ms"), 4.0)
	require.GreaterOrEqual(t, value(t, r, "median_tpot_ms"), 4.0)
	require.GreaterOrEqual(t, value(t, r, "median_e2el_ms"), value(t, r, "median_ttft_ms")+8)
	require.InDelta(t, 24/value(t, r, "duration"), value(t, r, "output_throughput"), 0.001)
	for _, req := range s.log() {
		require.Equal(t, "fake", req.Model)
		require.Equal(t, "Bearer secret", req.key)
		require.True(t, req.Stream)
		require.Equal(t, 3, req.MaxTokens)
		require.NotNil(t, req.Temperature)
	}
	seen := map[string]bool{}
	for _, req := range s.log() {
		require.False(t, seen[req.Input[0].Content], "a prompt comes twice")
		seen[req.Input[0].Content] = true
	}
}

func TestRunOpenLoopDoesNotWaitForAnswers(t *testing.T) {
	s, c := newFake(t)
	s.first = 300 * time.Millisecond
	l := smallLoad(Unique)
	l.Rate, l.Requests, l.Concurrency = 200, 20, 1
	r, err := Run(t.Context(), c, l)
	require.NoError(t, err)
	require.Equal(t, 20, count(t, r, "completed"))
	require.Greater(t, s.max.Load(), int64(5))
	log := s.log()
	spread := log[len(log)-1].at.Sub(log[0].at)
	require.Greater(t, spread, 20*time.Millisecond)
}

func TestRunStopsAtItsDuration(t *testing.T) {
	s, c := newFake(t)
	s.gap = 2 * time.Millisecond
	for _, rate := range []float64{0, 50} {
		l := smallLoad(MultiTurn)
		l.Requests, l.Duration, l.Rate = 0, 150*time.Millisecond, rate
		r, err := Run(t.Context(), c, l)
		require.NoError(t, err)
		require.Greater(t, value(t, r, "completed"), 2.0)
		require.Less(t, value(t, r, "duration"), 5.0)
		require.Zero(t, r.Failures())
	}
}

func TestRunSharedPrefix(t *testing.T) {
	s, c := newFake(t)
	r, err := Run(t.Context(), c, smallLoad(SharedPrefix))
	require.NoError(t, err)
	require.Greater(t, value(t, r, "cached_token_ratio"), 0.4)
	log := s.log()
	require.Equal(t, log[0].Input[0].Content[:80], log[1].Input[0].Content[:80])
	require.NotEqual(t, log[0].Input[0].Content, log[1].Input[0].Content)
}

func TestRunMultiTurn(t *testing.T) {
	s, c := newFake(t)
	l := smallLoad(MultiTurn)
	l.Sessions, l.Requests, l.Concurrency = 4, 12, 1
	r, err := Run(t.Context(), c, l)
	require.NoError(t, err)
	require.Greater(t, value(t, r, "later_turns_cached_token_ratio"), 0.3)
	require.Positive(t, value(t, r, "later_turns_median_ttft_ms"))
	log := s.log()
	require.Len(t, log, 12)
	for i, req := range log {
		require.Len(t, req.Input, 1+2*(i/4), "sessions take turns")
		if i >= 4 {
			before := log[i-4].Input
			require.Equal(t, before, req.Input[:len(before)])
			reply := req.Input[len(before)]
			require.Equal(t, Message{"message", "assistant", "w0 w1 w2 "}, reply)
		}
	}
}

func TestRunRepeat(t *testing.T) {
	s, c := newFake(t)
	l := smallLoad(Repeat)
	l.Concurrency = 1
	r, err := Run(t.Context(), c, l)
	require.NoError(t, err)
	log := s.log()
	for i := 0; i < len(log); i += 2 {
		require.Equal(t, log[i].Input, log[i+1].Input)
	}
	require.NotEqual(t, log[0].Input, log[2].Input)
	require.Greater(t, value(t, r, "later_turns_cached_token_ratio"), 0.8)
}

func TestSameSeedSamePrompts(t *testing.T) {
	prompts := func(seed uint64) (out []string) {
		s, c := newFake(t)
		l := smallLoad(Unique)
		l.Concurrency, l.Dataset.Seed = 1, seed
		_, err := Run(t.Context(), c, l)
		require.NoError(t, err)
		for _, req := range s.log() {
			out = append(out, req.Input[0].Content)
		}
		return out
	}
	first, again := prompts(7), prompts(7)
	require.Equal(t, first, again)
	require.NotEqual(t, first, prompts(8))
}

func TestFailuresAreCountedByKind(t *testing.T) {
	s, c := newFake(t)
	s.handle = func(n int, w http.ResponseWriter, r *http.Request) bool {
		switch n % 8 {
		case 1:
			http.Error(w, `{"error":{"message":"queue is full"}}`, http.StatusTooManyRequests)
		case 2:
			fmt.Fprint(w, "data: {\"type\":\"response.failed\",\"response\":{\"error\":{\"code\":\"server_error\",\"message\":\"broke\"}}}\n\n")
		case 3:
			fmt.Fprint(w, "data: {\"type\":\"response.output_text.delta\",\"delta\":\"x\"}\n\n")
		case 4:
			fmt.Fprint(w, "data: {\"type\":\"error\",\"message\":\"flat\"}\n\n")
		case 5:
			fmt.Fprint(w, "data: {nope\n\n")
		case 6:
			panic(http.ErrAbortHandler)
		case 7:
			fmt.Fprint(w, "data: {\"type\":\"response.completed\",\"response\":{}}\n\n")
		default:
			return false
		}
		return true
	}
	l := smallLoad(MultiTurn)
	l.Concurrency, l.Requests = 1, 16
	r, err := Run(t.Context(), c, l)
	require.NoError(t, err)
	require.Equal(t, 2, count(t, r, "completed"))
	require.Equal(t, 14, count(t, r, "failed"))
	require.Equal(t, 14, r.Failures())
	kinds := map[string]int{}
	for _, e := range r.Errors {
		kinds[e.Kind] = e.Count
		require.NotEmpty(t, e.Example)
	}
	require.Equal(t, map[string]int{"HTTP 429": 2, "response.failed": 2, "stream": 6, "error": 2, "connection": 2}, kinds)
}

func TestTimeoutAndInterrupt(t *testing.T) {
	s, c := newFake(t)
	s.first = time.Second
	l := smallLoad(Unique)
	l.Timeout, l.Requests, l.Concurrency = 30*time.Millisecond, 2, 2
	r, err := Run(t.Context(), c, l)
	require.NoError(t, err)
	require.Equal(t, "timeout", r.Errors[0].Kind)
	require.Equal(t, 2, r.Errors[0].Count)

	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(30*time.Millisecond, cancel)
	l.Timeout, l.Requests = 0, 1000
	start := time.Now()
	r, err = Run(ctx, c, l)
	require.NoError(t, err)
	require.Less(t, time.Since(start), 900*time.Millisecond)
	require.Equal(t, "interrupted", r.Errors[0].Kind)
}

func TestWarmUpThatFailsEndsTheRun(t *testing.T) {
	s, c := newFake(t)
	s.handle = func(_ int, w http.ResponseWriter, _ *http.Request) bool {
		http.Error(w, "no", http.StatusUnauthorized)
		return true
	}
	l := smallLoad(Unique)
	l.Warmup = 1
	_, err := Run(t.Context(), c, l)
	require.ErrorContains(t, err, "HTTP 401")
}

func TestValidate(t *testing.T) {
	for name, change := range map[string]func(*Load){
		"unknown data set": func(l *Load) { l.Dataset.Kind = "x" },
		"prompts":          func(l *Load) { l.Dataset.PromptWords = 0 },
		"shared head":      func(l *Load) { l.Dataset.Kind, l.Dataset.SharedWords = SharedPrefix, 0 },
		"turns":            func(l *Load) { l.Dataset.Kind, l.Dataset.Turns = MultiTurn, 0 },
		"bounded":          func(l *Load) { l.Requests = 0 },
		"rate":             func(l *Load) { l.Rate = -1 },
		"at a time":        func(l *Load) { l.Concurrency = 0 },
		"answers":          func(l *Load) { l.MaxTokens = 0 },
		"sessions":         func(l *Load) { l.Sessions = 1 },
	} {
		l := smallLoad(Unique)
		change(&l)
		_, err := Run(t.Context(), nil, l)
		require.ErrorContains(t, err, name)
	}
}

func TestNewClient(t *testing.T) {
	for in, want := range map[string]string{
		"http://h:1": "http://h:1/v1", "http://h:1/": "http://h:1/v1", "http://h:1/v1": "http://h:1/v1",
		"http://h:1/v1/": "http://h:1/v1", "h:1": "http://h:1/v1", "https://h/base": "https://h/base/v1",
	} {
		c, err := NewClient(in, "", "")
		require.NoError(t, err)
		require.Equal(t, want, c.URL)
	}
	for _, in := range []string{"", "ftp://h", "http://", "http://a b"} {
		_, err := NewClient(in, "", "")
		require.Error(t, err, in)
	}
}

func TestFindModel(t *testing.T) {
	_, c := newFake(t)
	c.Model = ""
	require.NoError(t, c.FindModel(t.Context()))
	require.Equal(t, "fake", c.Model)
	c.Model = "mine"
	require.NoError(t, c.FindModel(t.Context()))
	require.Equal(t, "mine", c.Model)
}
