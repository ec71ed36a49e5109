package llama

import (
	"context"
	"fmt"
	"slices"
	"time"

	"quern/cgo"
)

// Tuner measures which settings a model is fastest with, between loading it and
// making its context. What others do on the machine meanwhile is measured, too.
type Tuner struct {
	AnyThreads bool          // choose the threads of a step, up to Options.Threads
	AnyUBatch  bool          // choose the rows computed at once, up to Options.UBatch
	Budget     time.Duration // for each of the two
	Done       func(Tuning)  // is told the outcome
}

// Tuning is what a Tuner has found: zero is what it has left as it was.
type Tuning struct {
	Threads      int     `json:"threads,omitempty"`       // of one row
	ThreadsBatch int     `json:"threads_batch,omitempty"` // of more
	UBatch       int     `json:"ubatch,omitempty"`
	Trials       []Trial `json:"trials"`

	Took time.Duration `json:"took_ns"`
}

// Trial is the median of what was measured with some setting.
type Trial struct {
	What    string  `json:"what"` // decode, prefill or ubatch
	Setting int     `json:"setting"`
	Rate    float64 `json:"tokens_per_second"`
}

const (
	// rows of a trial of prefill, and of one of micro-batches.
	prefillRows = 64
	ubatchRows  = 512
	// rounds of trials: fewer say nothing.
	leastRounds, mostRounds = 3, 15
	// better is by how much a setting must beat the one that it replaces.
	better = 1.05
)

// tune changes what the Tuner may choose in o.
func (t *Tuner) tune(ctx context.Context, m *cgo.Model, o *Options) error {
	var found Tuning
	begun := time.Now()
	if settings := fractions(o.Threads); t.AnyThreads && len(settings) > 1 {
		c, err := trialContext(m, *o, ubatchRows)
		if err != nil {
			return err
		}
		defer c.Close()
		for _, what := range []struct {
			name   string
			rows   int
			chosen *int
		}{{"decode", 1, &found.Threads}, {"prefill", prefillRows, &found.ThreadsBatch}} {
			best, trials := race(ctx, what.name, settings, what.rows, t.Budget/2, func(threads int, end time.Time) error {
				if err := c.SetThreads(threads, threads); err != nil {
					return err
				}
				return trial(c, what.rows, end)
			})
			*what.chosen = best
			found.Trials = append(found.Trials, trials...)
		}
		o.Threads, o.ThreadsBatch = found.Threads, found.ThreadsBatch
	}
	if settings := halves(min(o.UBatch, ubatchRows)); t.AnyUBatch && len(settings) > 1 {
		best, trials := race(ctx, "ubatch", settings, ubatchRows, t.Budget, func(ubatch int, end time.Time) error {
			c, err := trialContext(m, *o, ubatch)
			if err != nil {
				return err
			}
			defer c.Close()
			return trial(c, ubatchRows, end)
		})
		if best != settings[0] {
			found.UBatch, o.UBatch = best, best
		}
		found.Trials = append(found.Trials, trials...)
	}
	found.Took = time.Since(begun)
	if t.Done != nil {
		t.Done(found)
	}
	return ctx.Err()
}

// fractions are the thread counts worth a trial, all of them first.
func fractions(threads int) []int {
	return slices.Compact([]int{threads, max(1, threads*3/4), max(1, threads/2), max(1, threads/4)})
}

// halves are the micro-batches worth a trial.
func halves(ubatch int) []int {
	var all []int
	for ; ubatch >= 128; ubatch /= 2 {
		all = append(all, ubatch)
	}
	return all
}

// race takes rounds of trials, one of each setting in turn, until the budget is
// spent, and says which setting computes its rows fastest. The first one counts
// unless another is clearly better, and if there was no time to tell.
func race(ctx context.Context, what string, settings []int, rows int, budget time.Duration, run func(setting int, end time.Time) error) (int, []Trial) {
	took := make([][]time.Duration, len(settings))
	end := time.Now().Add(budget)
	for round := range mostRounds + 1 {
		for i, s := range settings {
			start := time.Now()
			if start.After(end) || ctx.Err() != nil || run(s, end) != nil {
				return decide(what, settings, rows, took)
			}
			if round > 0 { // the first one warms up
				took[i] = append(took[i], time.Since(start))
			}
		}
	}
	return decide(what, settings, rows, took)
}

func decide(what string, settings []int, rows int, took [][]time.Duration) (int, []Trial) {
	var trials []Trial
	best, first := 0, 0.0
	most := 0.0
	for i, times := range took {
		if len(times) < leastRounds {
			return settings[0], trials
		}
		slices.Sort(times)
		rate := float64(rows) / times[len(times)/2].Seconds()
		trials = append(trials, Trial{what, settings[i], rate})
		if i == 0 {
			first = rate
		}
		if rate > most && (i == 0 || rate > first*better) {
			best, most = i, rate
		}
	}
	return settings[best], trials
}

// trialContext is one as o wants it, but small.
func trialContext(m *cgo.Model, o Options, ubatch int) (*cgo.Context, error) {
	c, err := cgo.NewContext(m, cgo.ContextParams{
		Ctx: 2 * ubatchRows, Batch: ubatchRows, UBatch: ubatch, SeqMax: 1, Threads: o.Threads, ThreadsBatch: o.batchThreads(),
		Unified: true, KVType: o.KVType, FlashAttn: o.FlashAttn,
	})
	if err != nil {
		return nil, fmt.Errorf("tune: %w", err)
	}
	return c, nil
}

// trial is a step of so many rows after a few others, cut off at the end.
func trial(c *cgo.Context, rows int, end time.Time) error {
	if c.SeqPosMax(0)+1+rows > c.Params().Ctx {
		c.Clear()
	}
	b := c.Batch()
	b.N = 0
	for range rows {
		b.Add(0, int32(c.SeqPosMax(0)+1+b.N), 0, -1, nil)
	}
	defer time.AfterFunc(time.Until(end), c.Abort).Stop()
	return c.Step()
}
