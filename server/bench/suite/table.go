package suite

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// WriteMarkdown writes the report: medians with the least and the most, ratios
// of the medians, and where the time of the steps went.
func (r *Report) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	r.figures(&b)
	r.profiles(&b)
	for _, n := range r.notes() {
		fmt.Fprintf(&b, "\n- %s", n)
	}
	b.WriteString("\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *Report) figures(b *strings.Builder) {
	head := append([]string{"work", "figure"}, r.Peers...)
	for _, p := range r.Peers[1:] {
		head = append(head, "÷ "+p)
	}
	writeRow(b, head...)
	writeRow(b, slices.Repeat([]string{"---"}, len(head))...)
	for _, row := range r.Rows {
		for i, f := range row.Work.Figures {
			title := row.Work.Title
			if i > 0 {
				title = ""
			}
			writeRow(b, append([]string{title, f.Title}, r.cells(row, f)...)...)
		}
	}
}

// cells are those of a figure: the peers', then the ratios.
func (r *Report) cells(row *Row, f Figure) []string {
	var out, ratios []string
	first := row.Sides[0].median(f)
	for i, s := range row.Sides {
		out = append(out, r.cell(s, f))
		if i == 0 {
			continue
		}
		ratio := "–"
		if v := s.median(f); v != 0 && first != 0 {
			ratio = strconv.FormatFloat(first/v, 'f', 2, 64)
		}
		ratios = append(ratios, ratio)
	}
	return append(out, ratios...)
}

func (r *Report) cell(s *Side, f Figure) string {
	switch {
	case s.Absent:
		return "–"
	case s.Failed != nil:
		return "failed"
	case len(s.Runs) == 0:
		return "not run"
	}
	values := s.values(f)
	text := short(s.median(f)) + " " + f.Unit
	if len(values) > 1 {
		text += fmt.Sprintf(" (%s–%s)", short(values[0]), short(values[len(values)-1]))
	}
	roof := map[Bound]float64{Memory: r.Roof.Decode, Products: r.Roof.Prefill}[f.Roof]
	if roof > 0 {
		text += fmt.Sprintf(", %.0f %% of the roof", 100*s.median(f)/roof)
	}
	return text
}

// values are sorted.
func (s *Side) values(f Figure) []float64 {
	var out []float64
	for _, run := range s.Runs {
		out = append(out, f.Value(run))
	}
	slices.Sort(out)
	return out
}

// median is 0 where there is nothing.
func (s *Side) median(f Figure) float64 {
	v := s.values(f)
	switch n := len(v); {
	case n == 0:
		return 0
	case n%2 == 0:
		return (v[n/2-1] + v[n/2]) / 2
	default:
		return v[n/2]
	}
}

// profiles is the table of where the time went, of the servers that tell.
func (r *Report) profiles(b *strings.Builder) {
	first := true
	for _, row := range r.Rows {
		for i, s := range row.Sides {
			busy := s.Profile.busy()
			if busy <= 0 || s.Profile.Steps == 0 {
				continue
			}
			if first {
				b.WriteString("\n")
				writeRow(b, "work", "server", "a step", "model", "sampling", "scheduling", "idle")
				writeRow(b, slices.Repeat([]string{"---"}, 7)...)
				first = false
			}
			p := s.Profile.Seconds
			total := max(busy, s.Profile.took)
			share := func(v float64) string { return fmt.Sprintf("%.1f %%", 100*v/total) }
			writeRow(b, row.Work.Title, r.Peers[i], fmt.Sprintf("%.1f ms", 1000*busy/s.Profile.Steps),
				share(p.Decode), share(p.Sample), share(p.Schedule), share(total-busy))
		}
	}
}

func (r *Report) notes() []string {
	notes := slices.Clone(r.Notes)
	for _, row := range r.Rows {
		for i, s := range row.Sides {
			if s.Failed != nil {
				notes = append(notes, fmt.Sprintf("%s, %s: %s", r.Peers[i], row.Work.Name, s.Failed))
			}
		}
	}
	return notes
}

func writeRow(b *strings.Builder, cells ...string) {
	b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}

// short has three figures that matter.
func short(v float64) string {
	switch {
	case v == 0:
		return "0"
	case v >= 99.95:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 9.995:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case v >= 0.9995:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return strconv.FormatFloat(v, 'f', 3, 64)
}
