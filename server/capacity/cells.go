package capacity

import "fmt"

const (
	// comfortable is how many cells are worth having by default: more of them
	// keep more idle conversations, but all are zeroed, and so resident, at start.
	comfortable = 1 << 16
	// least is what a node gets even where the estimate says that memory is
	// short: the estimate is rough, and mapped weights can be paged.
	least = 2048
	// granule is what llama.cpp rounds a cache to.
	granule = 256
)

// Model is what the size of a KV cache depends on.
type Model struct {
	HeadsKV      int // of all layers together
	HeadDimK     int
	HeadDimV     int
	TrainContext int // longest sequence

	Embedding, FeedForward, Heads, Vocab int

	FileBytes   int64 // of the weights in the file
	WeightBytes int64 // of the weights as loaded
	Copied      int64 // of them in memory of the process, not mapped
	StateBytes  int64 // of the recurrent layers, for each sequence
	Odd         bool  // the cache is not just keys and values of all heads: it may be smaller

	Draft *Model // a second model beside it, with as many cells
}

// CellBytes is the size of one cell, which is one position of one sequence.
func (m Model) CellBytes(kvType string) (int64, error) {
	// Quantized types store blocks of 32 values and a scale.
	blockBytes := map[string]int64{"f16": 64, "q8_0": 34, "q4_0": 18}[kvType]
	if blockBytes == 0 {
		return 0, fmt.Errorf("kv type %q is not f16, q8_0 or q4_0", kvType)
	}
	// A layer's row is whole blocks in what can be loaded at all.
	row := func(dim int) int64 { return int64(m.HeadsKV) * int64(dim) * blockBytes / 32 }
	bytes := row(m.HeadDimK) + row(m.HeadDimV)
	if m.Draft == nil {
		return bytes, nil
	}
	more, err := m.Draft.CellBytes(kvType)
	return bytes + more, err
}

// Choice is a number of cells and what kept it from being larger.
type Choice struct {
	Cells int
	Limit string // model, parallel, comfort or memory
}

// Cells chooses the size of the cache: room for as many full conversations as
// run at once up to a comfortable number of cells, and always for one where
// memory allows. The cache takes at most half of what the weights leave of
// available bytes, or all but a tenth if one conversation needs that much;
// available 0 means that it is not known. It is in whole granules.
func Cells(m Model, a Ask, available int64) (Choice, error) {
	cell, err := m.CellBytes(a.KVType)
	if err != nil {
		return Choice{}, err
	}
	if cell == 0 || m.TrainContext <= 0 {
		return Choice{Cells: least, Limit: "model"}, nil
	}
	choice := wanted(m.TrainContext, a.Parallel)
	if available > 0 {
		fixed := m.computeBytes(0, a.UBatch, a.Flash)
		cell += m.cellCompute(a.UBatch, a.Flash)
		left := max(0, available-m.WeightBytes-program-fixed)
		fits := max(left/2/cell, min(left*9/10/cell, int64(m.TrainContext)), least)
		if fits < int64(choice.Cells) {
			choice = Choice{Cells: int(fits), Limit: "memory"}
		}
	}
	if choice.Limit == "memory" {
		choice.Cells = choice.Cells / granule * granule
	} else {
		choice.Cells = (choice.Cells + granule - 1) / granule * granule
	}
	return choice, nil
}

// wanted is the choice where memory is no concern.
func wanted(train, parallel int) Choice {
	all := train * max(1, parallel)
	switch {
	case train >= comfortable:
		return Choice{Cells: train, Limit: "model"}
	case all > comfortable:
		return Choice{Cells: comfortable, Limit: "comfort"}
	default:
		return Choice{Cells: all, Limit: "parallel"}
	}
}
