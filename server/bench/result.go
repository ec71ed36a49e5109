package bench

import (
	"bytes"
	"encoding/json"
	"slices"
	"sort"
	"strconv"
	"time"
)

// Field is one figure of a Result. Names are those of vLLM's serving benchmark
// where it has the figure; those ending in _ms are milliseconds, throughputs
// are by the second.
type Field struct {
	Name  string
	Value float64
}

// Failed counts the failures of one kind.
type Failed struct {
	Kind    string `json:"kind"`
	Count   int    `json:"count"`
	Example string `json:"example"`
}

// Result is what a run came to: figures in a fixed order, and all failures.
type Result struct {
	Fields []Field
	Errors []Failed
}

// Value finds a figure by name.
func (r *Result) Value(name string) (float64, bool) {
	for _, f := range r.Fields {
		if f.Name == name {
			return f.Value, true
		}
	}
	return 0, false
}

// Failures is the number of requests that failed.
func (r *Result) Failures() int {
	n := 0
	for _, e := range r.Errors {
		n += e.Count
	}
	return n
}

// MarshalJSON writes the figures as one object, in order, and the failures.
func (r *Result) MarshalJSON() ([]byte, error) {
	out, err := marshalFields(r.Fields)
	if err != nil {
		return nil, err
	}
	failed := r.Errors
	if failed == nil {
		failed = []Failed{}
	}
	var value bytes.Buffer
	enc := json.NewEncoder(&value)
	enc.SetEscapeHTML(false) // messages are to be read
	if err := enc.Encode(failed); err != nil {
		return nil, err
	}
	out = out[:len(out)-1]
	if len(r.Fields) > 0 {
		out = append(out, ',')
	}
	return append(append(append(out, `"errors":`...), value.Bytes()...), '}'), nil
}

func marshalFields(fields []Field) ([]byte, error) {
	out := []byte{'{'}
	for i, f := range fields {
		value, err := json.Marshal(f.Value)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(strconv.AppendQuote(out, f.Name), ':'), value...)
	}
	return append(out, '}'), nil
}

// newResult draws the figures from samples. Latencies are those of successful
// requests. conversations: samples have turns, and the later ones are told
// apart, since they find their history cached.
func newResult(samples []Sample, took time.Duration, conversations bool) *Result {
	var all, later latencies
	done, input, output, cached, laterInput, laterCached := 0, 0, 0, 0, 0, 0
	for i := range samples {
		s := &samples[i]
		if s.Err != nil {
			continue
		}
		done++
		input, output, cached = input+s.Input, output+s.Output, cached+s.Cached
		all.add(s)
		if s.Turn > 0 {
			later.add(s)
			laterInput, laterCached = laterInput+s.Input, laterCached+s.Cached
		}
	}
	seconds := took.Seconds()
	r := &Result{Errors: countFailures(samples)}
	r.add("duration", seconds)
	r.add("completed", float64(done))
	r.add("failed", float64(len(samples)-done))
	r.add("total_input_tokens", float64(input))
	r.add("total_output_tokens", float64(output))
	r.add("request_throughput", ratio(float64(done), seconds))
	r.add("output_throughput", ratio(float64(output), seconds))
	r.add("total_token_throughput", ratio(float64(input+output), seconds))
	r.add("cached_token_ratio", ratio(float64(cached), float64(input)))
	r.addLatency("ttft", all.ttft)
	r.addLatency("tpot", all.tpot)
	r.addLatency("itl", all.itl)
	r.addLatency("e2el", all.e2el)
	if conversations {
		r.add("later_turns_cached_token_ratio", ratio(float64(laterCached), float64(laterInput)))
		r.add("later_turns_median_ttft_ms", percentile(later.ttft, 0.5))
	}
	return r
}

func (r *Result) add(name string, value float64) { r.Fields = append(r.Fields, Field{name, value}) }

func (r *Result) addLatency(name string, values []float64) {
	r.add("mean_"+name+"_ms", mean(values))
	r.add("median_"+name+"_ms", percentile(values, 0.5))
	r.add("p99_"+name+"_ms", percentile(values, 0.99))
	r.add("max_"+name+"_ms", percentile(values, 1))
}

// latencies are in milliseconds. ITL is between pieces of output, which may
// hold several tokens; TPOT goes by the server's count of tokens.
type latencies struct{ ttft, tpot, itl, e2el []float64 }

func (l *latencies) add(s *Sample) {
	e2el := s.End.Sub(s.Start)
	l.e2el = append(l.e2el, ms(e2el))
	if len(s.Deltas) == 0 {
		return // an answer without output has no first token
	}
	l.ttft = append(l.ttft, ms(s.TTFT()))
	if s.Output > 1 {
		l.tpot = append(l.tpot, ms(e2el-s.TTFT())/float64(s.Output-1))
	}
	l.itl = append(l.itl, gaps(s.Deltas)...)
}

// gaps are the milliseconds between each two times.
func gaps(times []time.Time) []float64 {
	var out []float64
	for i := 1; i < len(times); i++ {
		out = append(out, ms(times[i].Sub(times[i-1])))
	}
	return out
}

func countFailures(samples []Sample) []Failed {
	var out []Failed
	for i := range samples {
		f := samples[i].Err
		if f == nil {
			continue
		}
		at := slices.IndexFunc(out, func(e Failed) bool { return e.Kind == f.Kind })
		if at < 0 {
			at = len(out)
			out = append(out, Failed{Kind: f.Kind, Example: f.Message})
		}
		out[at].Count++
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Kind < out[j].Kind })
	return out
}

// Median takes the median of each figure, and all failures. The results are of
// the same load and so have the same fields.
func Median(results []*Result) *Result {
	if len(results) == 1 {
		return results[0]
	}
	out := &Result{}
	for i, f := range results[0].Fields {
		values := make([]float64, 0, len(results))
		for _, r := range results {
			values = append(values, r.Fields[i].Value)
		}
		out.add(f.Name, percentile(values, 0.5))
	}
	for _, r := range results {
		for _, e := range r.Errors {
			at := slices.IndexFunc(out.Errors, func(o Failed) bool { return o.Kind == e.Kind })
			if at < 0 {
				out.Errors = append(out.Errors, e)
			} else {
				out.Errors[at].Count += e.Count
			}
		}
	}
	return out
}

// Ratios divides each figure of a by that of b; figures that b lacks, or has
// as 0, are left out.
func Ratios(a, b *Result) []Field {
	var out []Field
	for _, f := range a.Fields {
		if v, ok := b.Value(f.Name); ok && v != 0 {
			out = append(out, Field{f.Name, f.Value / v})
		}
	}
	return out
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return ratio(sum, float64(len(values)))
}

// percentile interpolates between the two nearest values; 0 of none.
func percentile(values []float64, p float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	at := p * float64(len(sorted)-1)
	i := int(at)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}
