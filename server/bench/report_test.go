package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func at(ms int) time.Time { return time.UnixMilli(int64(ms)) }

func TestResultFigures(t *testing.T) {
	samples := []Sample{
		{Start: at(0), Deltas: []time.Time{at(100), at(110), at(130)}, End: at(140), Input: 10, Output: 5, Cached: 4},
		{Start: at(0), Deltas: []time.Time{at(200)}, End: at(200), Input: 30, Output: 1, Cached: 26, Turn: 1},
		{Start: at(0), End: at(50), Input: 10, Output: 0}, // completed without output
		{Start: at(0), Deltas: []time.Time{at(1)}, End: at(9000), Err: &Failure{"HTTP 429", "full"}},
	}
	r := newResult(samples, 2*time.Second, true)
	for name, want := range map[string]float64{
		"duration": 2, "completed": 3, "failed": 1, "total_input_tokens": 50, "total_output_tokens": 6,
		"request_throughput": 1.5, "output_throughput": 3, "total_token_throughput": 28, "cached_token_ratio": 0.6,
		"mean_ttft_ms": 150, "median_ttft_ms": 150, "max_ttft_ms": 200, "mean_tpot_ms": 10, "mean_itl_ms": 15,
		"max_itl_ms": 20, "mean_e2el_ms": 130, "p99_e2el_ms": 198.8, "median_e2el_ms": 140,
		"later_turns_cached_token_ratio": 26.0 / 30, "later_turns_median_ttft_ms": 200,
	} {
		require.InDelta(t, want, value(t, r, name), 1e-6, name)
	}
	require.Equal(t, []Failed{{"HTTP 429", 1, "full"}}, r.Errors)

	empty := newResult(nil, 0, false)
	for _, f := range empty.Fields {
		require.Zero(t, f.Value, f.Name)
	}
}

func TestPercentile(t *testing.T) {
	values := []float64{4, 1, 3, 2}
	for p, want := range map[float64]float64{0: 1, 0.5: 2.5, 1: 4, 0.99: 3.97} {
		require.InDelta(t, want, percentile(values, p), 1e-9)
	}
	require.Equal(t, []float64{4, 1, 3, 2}, values, "left as it is")
	require.Zero(t, percentile(nil, 0.5))
	require.InDelta(t, 7, percentile([]float64{7}, 0.99), 0)
}

func result(v float64, failed ...Failed) *Result {
	return &Result{Fields: []Field{{"a", v}, {"b", 2 * v}, {"zero", 0}}, Errors: failed}
}

func TestMedianAndRatios(t *testing.T) {
	m := Median([]*Result{result(3, Failed{"x", 1, "e"}), result(1), result(2, Failed{"x", 2, "f"}, Failed{"y", 1, "g"})})
	require.Equal(t, []Field{{"a", 2}, {"b", 4}, {"zero", 0}}, m.Fields)
	require.Equal(t, []Failed{{"x", 3, "e"}, {"y", 1, "g"}}, m.Errors)
	require.Equal(t, []Field{{"a", 0.5}, {"b", 0.5}}, Ratios(result(1), result(2)))
}

func TestMeasureTakesTurns(t *testing.T) {
	a, b := &Client{URL: "a"}, &Client{URL: "b", Model: "m"}
	var order []string
	sides, err := Measure(t.Context(), []*Client{a, b}, 3, func(_ context.Context, c *Client, rep int) (*Result, error) {
		order = append(order, c.URL)
		return result(float64(rep + 1)), nil
	})
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b", "a", "b", "a", "b"}, order)
	require.Equal(t, "m", sides[1].Model)
	require.Len(t, sides[0].Runs, 3)
	v, _ := sides[0].Median.Value("a")
	require.InDelta(t, 2, v, 0)

	broken := errors.New("broken")
	_, err = Measure(t.Context(), []*Client{a}, 1, func(context.Context, *Client, int) (*Result, error) { return nil, broken })
	require.ErrorIs(t, err, broken)
	require.ErrorContains(t, err, "a: ")
}

func TestMeasureKeepsWhatWasDoneBeforeAnInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	count := func(after int) func(context.Context, *Client, int) (*Result, error) {
		n := 0
		return func(context.Context, *Client, int) (*Result, error) {
			if n++; n == after {
				cancel()
			}
			return result(1), nil
		}
	}
	clients := []*Client{{URL: "a"}, {URL: "b"}}
	sides, err := Measure(ctx, clients, 5, count(3))
	require.NoError(t, err)
	require.Len(t, sides[0].Runs, 2)
	require.Len(t, sides[1].Runs, 1)
	_, err = Measure(ctx, clients, 5, count(9))
	require.ErrorIs(t, err, context.Canceled)
}

func TestReportJSON(t *testing.T) {
	one := NewReport("setup", []Side{{URL: "u", Median: result(1), Runs: []*Result{result(1)}}})
	require.JSONEq(t, `{"a":1,"b":2,"zero":0,"errors":[]}`, encode(t, one))

	two := NewReport("setup", []Side{
		{URL: "u", Model: "m", Median: result(1, Failed{"x<", 1, "e"}), Runs: []*Result{result(1)}},
		{URL: "v", Model: "n", Median: result(2), Runs: []*Result{result(2)}},
	})
	require.Equal(t, 1, two.Failures())
	require.JSONEq(t, `{"setup":"setup","servers":[
		{"url":"u","model":"m","median":{"a":1,"b":2,"zero":0,"errors":[{"kind":"x<","count":1,"example":"e"}]},"runs":[{"a":1,"b":2,"zero":0,"errors":[]}]},
		{"url":"v","model":"n","median":{"a":2,"b":4,"zero":0,"errors":[]},"runs":[{"a":2,"b":4,"zero":0,"errors":[]}]}],
		"ratios":{"a":0.5,"b":0.5}}`, encode(t, two))
	require.Contains(t, encode(t, two), `"x<"`)
	require.JSONEq(t, `{"errors":[]}`, string(must(json.Marshal(&Result{}))))
}

func TestReportTable(t *testing.T) {
	r := NewReport(nil, []Side{
		{URL: "first", Median: result(1.5, Failed{"HTTP 429", 3, "full"}), Runs: []*Result{result(1.5)}},
		{URL: "second", Median: result(3), Runs: []*Result{result(3)}},
	})
	var b bytes.Buffer
	r.WriteTable(&b)
	for _, want := range []string{"first", "second", "1st / 2nd", "1.500", "0.500", "HTTP 429", "full"} {
		require.Contains(t, b.String(), want)
	}
}

func encode(t *testing.T, r *Report) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, r.WriteJSON(&b))
	return b.String()
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}
