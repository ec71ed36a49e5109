package engine

import "time"

// costs learns what steps cost on this machine, to say how much prefill fits
// into the next one. All it knows comes from the steps themselves.
type costs struct {
	factor  float64 // a mixed step may last so many decode steps
	maxStep float64 // seconds, when nobody decodes
	least   int     // rows of prefill in any step
	batch   int

	decode []average // seconds of a step with nothing but so many sampled rows: decode rows and drafts
	alone  average   // seconds a prefill row, without decode rows
	mixed  average   // seconds a prefill row, beside decode rows
	tried  int       // largest prefill tried beside decode rows
	rows   rowCosts  // what more or fewer sampled rows would cost
}

// average is an exponentially weighted mean; zero = nothing known.
type average float64

func (a *average) add(x, weight float64) {
	if *a == 0 {
		*a = average(x)
		return
	}
	*a += average(weight * (x - float64(*a)))
}

func newCosts(c Config, l Limits) *costs {
	return &costs{
		factor: c.ITLFactor, maxStep: c.MaxStep.Seconds(), least: c.MinChunk, batch: l.Batch,
		decode: make([]average, c.MaxRunning+maxDrafted+1),
		tried:  2 * c.MinChunk,
		rows:   newRowCosts(c.MaxRunning + maxDrafted),
	}
}

// observe learns from a step of so many sampled and prefill rows. A few rows of
// prefill say little about what many cost.
func (c *costs) observe(decode, prefill int, took time.Duration) {
	t, n := took.Seconds(), float64(prefill)
	weight := 0.3 * min(1, n/float64(2*c.least))
	switch {
	case prefill == 0:
		c.decode[decode].add(t, 0.2)
		c.rows.observe(decode, t)
	case decode == 0:
		c.alone.add(t/n, weight)
	default:
		c.mixed.add(max(t-c.step(decode), t/10)/n, weight)
		c.tried = max(c.tried, prefill)
	}
}

// row estimates the seconds that a row of prefill takes; 0 = not known.
func (c *costs) row() float64 {
	if c.alone != 0 {
		return float64(c.alone)
	}
	return float64(c.mixed)
}

// step estimates a step with nothing but so many decode rows, by the nearest
// count that was seen between half and twice as many; 0 = not known.
func (c *costs) step(decode int) float64 {
	for d := range decode + 1 {
		if n := decode - d; 2*n >= decode && c.decode[n] > 0 {
			return float64(c.decode[n])
		}
		if n := decode + d; n < len(c.decode) && c.decode[n] > 0 {
			return float64(c.decode[n])
		}
	}
	return 0
}

// prefillRows estimates what so many rows of prefill add to a step.
func (c *costs) prefillRows(n int) float64 {
	row := c.mixed
	if row == 0 {
		row = c.alone
	}
	return float64(n) * float64(row)
}

// chunk is how many prefill rows the next step may carry beside so many decode
// rows. 0 means: measure a step without any first.
func (c *costs) chunk(decode int) int {
	if decode == 0 {
		if c.alone == 0 {
			return c.round(float64(2 * c.least))
		}
		return c.round(c.maxStep / float64(c.alone))
	}
	step := c.step(decode)
	if step == 0 {
		return 0
	}
	row := c.mixed
	if row == 0 {
		row = c.alone
	}
	if row == 0 {
		return c.least
	}
	// A row costs more in a small chunk than in a large one, and the other way
	// round on a GPU: don't trust the estimate far from where it was made.
	rows := min((c.factor-1)*step/float64(row), float64(2*c.tried))
	return c.round(rows)
}

// round makes rows a multiple that suits matrix kernels, within the limits.
func (c *costs) round(rows float64) int {
	n := int(min(rows, float64(c.batch)))
	if n >= 64 {
		n -= n % 32
	} else {
		n -= n % 8
	}
	return max(n, c.least)
}
