package bench

import (
	"context"
	"encoding/json"
	"io"
	"strconv"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// Side is one server of a report.
type Side struct {
	URL    string    `json:"url"`
	Model  string    `json:"model"`
	Median *Result   `json:"median"`
	Runs   []*Result `json:"runs"`
}

// Report is what one or two servers made of the same load.
type Report struct {
	Setup  any     `json:"setup"`
	Sides  []Side  `json:"servers"`
	Ratios figures `json:"ratios,omitempty"` // of the medians, the first server's over the second's
}

// Failures is the number of requests that failed, in all runs.
func (r *Report) Failures() int {
	n := 0
	for _, s := range r.Sides {
		n += s.Median.Failures()
	}
	return n
}

// Measure runs f reps times for each client, in turn, so that what else the
// machine does hits all alike. f gets the number of the repetition, by which
// to choose other prompts each time.
func Measure(ctx context.Context, clients []*Client, reps int, f func(ctx context.Context, c *Client, rep int) (*Result, error)) ([]Side, error) {
	sides := make([]Side, len(clients))
	for n := 0; n < reps*len(clients) && (n == 0 || ctx.Err() == nil); n++ {
		i := n % len(clients)
		r, err := f(ctx, clients[i], n/len(clients))
		if err != nil {
			return nil, &SideError{clients[i].URL, err}
		}
		sides[i].Runs = append(sides[i].Runs, r)
	}
	for i, c := range clients {
		if len(sides[i].Runs) == 0 {
			return nil, &SideError{c.URL, ctx.Err()}
		}
		sides[i].URL, sides[i].Model = c.URL, c.Model
		sides[i].Median = Median(sides[i].Runs)
	}
	return sides, nil
}

// SideError says which server a run failed at.
type SideError struct {
	URL string
	Err error
}

func (e *SideError) Error() string { return e.URL + ": " + e.Err.Error() }
func (e *SideError) Unwrap() error { return e.Err }

// NewReport compares the first two sides if there are two.
func NewReport(setup any, sides []Side) *Report {
	r := &Report{Setup: setup, Sides: sides}
	if len(sides) == 2 {
		r.Ratios = Ratios(sides[0].Median, sides[1].Median)
	}
	return r
}

// WriteJSON writes everything. With one server and one run its figures stand
// at the top, as in the files of vLLM's benchmark.
func (r *Report) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if len(r.Sides) == 1 && len(r.Sides[0].Runs) == 1 {
		return enc.Encode(r.Sides[0].Median)
	}
	return enc.Encode(r)
}

// figures are written as one object, in order.
type figures []Field

func (f figures) MarshalJSON() ([]byte, error) { return marshalFields(f) }

// WriteTable writes the figures for people: medians where there are more runs.
func (r *Report) WriteTable(w io.Writer) {
	t := table.NewWriter()
	t.SetOutputMirror(w)
	t.SetStyle(table.StyleLight)
	head := table.Row{"figure"}
	columns := []table.ColumnConfig{}
	for i, s := range r.Sides {
		head = append(head, s.URL)
		columns = append(columns, table.ColumnConfig{Number: i + 2, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	if r.Ratios != nil {
		head = append(head, "1st / 2nd")
		columns = append(columns, table.ColumnConfig{Number: len(head), Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.Style().Format.Header = text.FormatDefault
	t.SetColumnConfigs(columns)
	t.AppendHeader(head)
	ratios := Result{Fields: r.Ratios}
	for _, f := range r.Sides[0].Median.Fields {
		row := table.Row{f.Name}
		for _, s := range r.Sides {
			v, _ := s.Median.Value(f.Name)
			row = append(row, number(v))
		}
		if r.Ratios != nil {
			if v, ok := ratios.Value(f.Name); ok {
				row = append(row, strconv.FormatFloat(v, 'f', 3, 64))
			} else {
				row = append(row, "-")
			}
		}
		t.AppendRow(row)
	}
	t.Render()
	r.writeFailures(w)
}

func (r *Report) writeFailures(w io.Writer) {
	if r.Failures() == 0 {
		return
	}
	t := table.NewWriter()
	t.SetOutputMirror(w)
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	t.AppendHeader(table.Row{"server", "failure", "count", "example"})
	t.SetColumnConfigs([]table.ColumnConfig{{Number: 4, WidthMax: 80}})
	for _, s := range r.Sides {
		for _, e := range s.Median.Errors {
			t.AppendRow(table.Row{s.URL, e.Kind, e.Count, e.Example})
		}
	}
	t.Render()
}

// number is short: whole numbers as they are, others with three places.
func number(v float64) string {
	if v == float64(int64(v)) {
		return strconv.FormatInt(int64(v), 10)
	}
	return strconv.FormatFloat(v, 'f', 3, 64)
}
