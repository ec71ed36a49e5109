package engine

// rowCosts learns how the time of a step goes with its sampled rows, while other
// things change it for all counts alike: the length of contexts, other work of
// the machine. So it keeps the time of one row, which follows quickly, and what
// counts of rows cost in terms of it. Single steps may be held up by anything:
// none is believed to have taken more than twice what was expected.
type rowCosts struct {
	one      average   // seconds of a step with one row
	relative []average // by count: a step's time by that of one row; 0 = not seen
}

func newRowCosts(most int) rowCosts {
	r := rowCosts{relative: make([]average, most+1)}
	r.relative[1] = 1
	return r
}

func (r *rowCosts) observe(rows int, seconds float64) {
	if r.one == 0 {
		r.one = average(seconds / r.steps(rows))
		return
	}
	expected := r.steps(rows)
	r.one.add(min(seconds/expected, 2*float64(r.one)), 0.2)
	if rows > 1 {
		r.relative[rows] = average(expected)
		r.relative[rows].add(min(seconds/float64(r.one), 2*expected), 0.2)
	}
}

// leastRow is what a row adds to a step at least, in steps of one row, whatever
// was measured.
const leastRow = 0.02

// step estimates the seconds of a step with so many rows; 0 = nothing known.
func (r *rowCosts) step(rows int) float64 {
	return float64(r.one) * max(r.steps(rows), 1+leastRow*float64(rows-1))
}

// steps estimates a step with so many rows in steps of one, by counts around it
// that were seen. Beyond all of these, a row adds a tenth of a step.
func (r *rowCosts) steps(rows int) float64 {
	if rows == 0 {
		return 0
	}
	lo, hi := rows, rows+1
	for r.relative[lo] == 0 {
		lo--
	}
	least := float64(r.relative[lo])
	if lo == rows {
		return least
	}
	for hi < len(r.relative) && r.relative[hi] == 0 {
		hi++
	}
	if hi == len(r.relative) {
		return least + float64(rows-lo)/10
	}
	return least + (float64(r.relative[hi])-least)*float64(rows-lo)/float64(hi-lo)
}
