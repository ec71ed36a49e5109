package capacity

import (
	"fmt"
	"strings"
)

const (
	// program is for what has no line of its own in a plan: the program, the
	// vocabulary, requests in flight.
	program = 128 << 20
	// fewest rows that are computed at once before cells are given up: below
	// this, prefill loses more than a longer context gains.
	fewestRows = 128
	// stateShare is the part of free memory, one in so many, that the states of
	// recurrent layers may take for idle sequences.
	stateShare = 8
	// short is a context that is worth less prefill speed to make longer.
	short = 8192
)

// Ask is what a node is set to.
type Ask struct {
	Cells     int // 0: Fit chooses
	Parallel  int
	Sequences int // ids of sequences, running and idle; Fit may choose fewer
	UBatch    int
	AnyUBatch bool // Fit may choose fewer
	KVType    string
	Flash     bool
	AnyForm   bool  // Fit may leave weights as the mapped file has them
	CacheRAM  int64 // negative: a quarter of what is free
}

// Plan is what a node takes of memory, in bytes, and what Fit has chosen. The
// copied weights and the KV cache are there from the start and can't be dropped.
// Mapped weights are the file's pages, which the system drops and reads again
// when memory is short. The rest grows with use up to what is said here.
type Plan struct {
	Cells    int    `json:"cells"`
	Limit    string `json:"limit"` // of the cells: set, model, parallel, comfort or memory
	UBatch   int    `json:"ubatch"`
	Seqs     int    `json:"sequences"`
	KVType   string `json:"kv_type"`
	Unpacked bool   `json:"unpacked"` // weights stay as the file has them, since copies don't fit
	Rough    bool   `json:"rough"`    // the header doesn't tell all: the cache may be smaller

	Mapped    int64 `json:"mapped_weights"`
	Copied    int64 `json:"copied_weights"`
	KV        int64 `json:"kv"`
	State     int64 `json:"state"`    // of recurrent layers, for each sequence
	Compute   int64 `json:"compute"`  // buffers of a step with all its rows
	Logits    int64 `json:"logits"`   // a row for each sequence
	Prefixes  int64 `json:"prefixes"` // that leave the KV cache, at most
	Program   int64 `json:"program"`
	Available int64 `json:"available"` // 0: not known
	Swap      int64 `json:"swap"`

	model Model
	fewer bool // rows than the default
}

// Firm is what has to be in memory, or in swap, from the start.
func (p Plan) Firm() int64 { return p.Copied + p.KV + p.State + p.Program }

// Busy is what is in use while requests run, without kept prefixes.
func (p Plan) Busy() int64 { return p.Firm() + p.Mapped + p.Compute + p.Logits }

// Fit makes the plan of a node: what Ask leaves open is chosen so that memory
// suffices. available 0 means that it is not known; swap is what can be swapped
// out besides. The plan may still exceed memory, see Check.
func Fit(m Model, a Ask, available, swap int64) (Plan, error) {
	if available > 0 && m.StateBytes > 0 {
		// Two for each that runs: itself, and where the next turn goes on.
		fit := available / stateShare / m.StateBytes
		a.Sequences = int(max(int64(2*a.Parallel+1), min(int64(a.Sequences), fit)))
	}
	p, err := plan(m, a, available, swap)
	if err != nil || available <= 0 {
		return p, err
	}
	for p.tight() && a.AnyUBatch && a.UBatch > fewestRows {
		a.UBatch = max(fewestRows, a.UBatch/2)
		if p, err = plan(m, a, available, swap); err != nil {
			return p, err
		}
		p.fewer = true
	}
	if a.AnyForm && m.Copied > 0 && p.Check() != nil {
		m.WeightBytes, m.Copied = m.FileBytes, 0
		other, err := plan(m, a, available, swap)
		if err != nil {
			return p, err
		}
		if other.Check() == nil {
			other.Unpacked, other.fewer = true, p.fewer
			return other, nil
		}
	}
	return p, nil
}

// tight tells a plan that has a short context, or none that fits, for memory.
func (p Plan) tight() bool {
	return p.Limit == "memory" && p.Cells < min(short, p.model.TrainContext) || p.Firm()+p.Compute > p.Available
}

// plan adds up what Ask comes to.
func plan(m Model, a Ask, available, swap int64) (Plan, error) {
	p := Plan{
		Cells: a.Cells, Limit: "set", UBatch: a.UBatch, Seqs: a.Sequences, KVType: a.KVType, Rough: m.Odd,
		Mapped: m.WeightBytes - m.Copied, Copied: m.Copied, Program: program, Available: available, Swap: swap, model: m,
	}
	if a.Cells == 0 {
		m.WeightBytes += m.StateBytes * int64(a.Sequences)
		choice, err := Cells(m, a, available)
		if err != nil {
			return p, err
		}
		p.Cells, p.Limit = choice.Cells, choice.Limit
	}
	cell, err := m.CellBytes(a.KVType)
	if err != nil {
		return p, err
	}
	p.KV = cell * int64((p.Cells+granule-1)/granule*granule)
	p.Compute = m.computeBytes(p.Cells, a.UBatch, a.Flash)
	p.State = m.StateBytes * int64(a.Sequences)
	p.Logits = int64(a.Sequences) * int64(m.Vocab) * 4
	if p.Prefixes = a.CacheRAM; a.CacheRAM < 0 {
		p.Prefixes = max(0, available-p.Busy()) / 4
	}
	return p, nil
}

// Check says why a plan can't work: nil if it can, or if that is not known.
func (p Plan) Check() error {
	if p.Available <= 0 || p.Rough || p.Firm() <= p.Available+p.Swap {
		return nil
	}
	return fmt.Errorf("%d KV cells take %s as %s, copied weights %s, the program %s: more than the %s of memory that are free. %s",
		p.Cells, mebi(p.KV), p.KVType, mebi(p.Copied), mebi(p.Program), mebi(p.Available+p.Swap), p.advice())
}

// advice is what would work.
func (p Plan) advice() string {
	cells := p.most(p.KVType)
	if cells < least {
		return "A smaller model or quantization is needed"
	}
	var text strings.Builder
	fmt.Fprintf(&text, "At most %d cells fit (--ctx-size)", cells)
	for _, t := range []string{"q8_0", "q4_0"} {
		if more := p.most(t); more > cells {
			fmt.Fprintf(&text, ", %d with --kv-type %s", more, t)
		}
	}
	return text.String()
}

// most is how many cells of a type fit.
func (p Plan) most(kvType string) int {
	cell, err := p.model.CellBytes(kvType)
	if err != nil || cell == 0 {
		return 0
	}
	return max(0, int((p.Available+p.Swap-p.Copied-p.Program)/cell/granule*granule))
}

// Warnings are what works, but not well.
func (p Plan) Warnings() []string {
	var w []string
	if p.Unpacked {
		w = append(w, "packed copies of the weights don't fit into memory: products read them as the file has them, which is slower")
	}
	if p.fewer {
		w = append(w, fmt.Sprintf("memory is short: %d rows are computed at once, which makes prompts slower", p.UBatch))
	}
	if p.Available <= 0 || p.Rough || p.Firm() > p.Available+p.Swap {
		return w
	}
	switch {
	case p.Firm() > p.Available:
		w = append(w, fmt.Sprintf("%s are needed at once and %s are free: the system will swap", mebi(p.Firm()), mebi(p.Available)))
	case p.Busy() > p.Available && p.Mapped > 0:
		w = append(w, fmt.Sprintf("requests need up to %s and %s are free: parts of the weights will be read from the file again and again",
			mebi(p.Busy()), mebi(p.Available)))
	case p.Busy() > p.Available:
		w = append(w, fmt.Sprintf("requests need up to %s and %s are free", mebi(p.Busy()), mebi(p.Available)))
	case p.Busy()+p.Prefixes > p.Available:
		w = append(w, fmt.Sprintf("kept prefixes may take %s, and requests leave %s", mebi(p.Prefixes), mebi(p.Available-p.Busy())))
	}
	return w
}

func mebi(bytes int64) string { return fmt.Sprintf("%d MiB", (bytes+1<<19)>>20) }
