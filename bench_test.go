package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// benchServer answers any prompt with one word.
func benchServer(t *testing.T, status int) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/v1/models":
			fmt.Fprint(w, `{"data":[{"id":"tiny"}]}`)
		case status != http.StatusOK:
			http.Error(w, "busy", status)
		default:
			fmt.Fprint(w, "data: {\"type\":\"response.output_text.delta\",\"delta\":\"hi\"}\n\n"+
				"data: {\"type\":\"response.completed\",\"response\":{\"usage\":{\"input_tokens\":4,\"output_tokens\":1,\"input_tokens_details\":{\"cached_tokens\":2}}}}\n\n")
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestBench(t *testing.T) {
	url := benchServer(t, http.StatusOK)
	code, out, errs := quern(t, "bench", "--url", url, "--requests", "4", "--concurrency", "2", "--json", "-")
	require.Zero(t, code, errs)
	require.Contains(t, errs, "cached_token_ratio")
	require.Contains(t, errs, "model tiny")
	var figures struct {
		Completed int
		Cached    float64 `json:"cached_token_ratio"`
	}
	require.NoError(t, json.Unmarshal([]byte(out), &figures))
	require.Equal(t, 4, figures.Completed)
	require.InDelta(t, 0.5, figures.Cached, 0)

	file := filepath.Join(t.TempDir(), "out.json")
	code, out, errs = quern(t, "bench", "--url", url, "--compare", benchServer(t, http.StatusOK), "--reps", "2", "--json", file)
	require.Zero(t, code, errs)
	require.Contains(t, out, "1st / 2nd")
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	var report struct {
		Setup   map[string]any
		Servers []struct{ Runs []any }
		Ratios  map[string]float64
	}
	require.NoError(t, json.Unmarshal(b, &report))
	require.Len(t, report.Servers, 2)
	require.Len(t, report.Servers[1].Runs, 2)
	require.InDelta(t, 1, report.Ratios["completed"], 0)
	require.Equal(t, "load", report.Setup["scenario"])
}

func TestBenchShowsFailures(t *testing.T) {
	code, out, errs := quern(t, "bench", "--url", benchServer(t, http.StatusTooManyRequests), "--requests", "3")
	require.Equal(t, exitFailed, code)
	require.Contains(t, out, "HTTP 429")
	require.Contains(t, errs, "3 requests failed")
}

func TestBenchUsage(t *testing.T) {
	for _, args := range [][]string{
		{}, {"--url", "ftp://x"}, {"--url", "http://x", "--reps", "0"}, {"--url", "http://x", "--scenario", "y"},
		{"--url", "http://x", "--dataset", "y"}, {"--url", "http://x", "extra"}, {"--url", "http://x", "--scenario", "stall", "--max-tokens", "1"},
	} {
		code, _, errs := quern(t, append([]string{"bench"}, args...)...)
		require.Equal(t, exitUsage, code, "%v: %s", args, errs)
	}
}
