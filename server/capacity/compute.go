package capacity

// computeBytes estimates what llama.cpp reserves for a step of rows rows over so
// many cells. Its graph is widest either in a layer, where there are the mask and
// what attention and the feed-forward part hold, or at its end, where there are
// the logits of all rows. It is within a few percent for models of Llama's and
// Qwen's kind.
func (m Model) computeBytes(cells, rows int, flash bool) int64 {
	n := int64(rows)
	layer := n*4*(4*int64(m.Embedding)+2*int64(m.FeedForward)) + int64(cells)*m.ownCellCompute(rows, flash)
	last := n * 4 * (int64(m.Vocab) + 2*int64(m.Embedding))
	bytes := max(layer, last)
	if m.Draft == nil {
		return bytes
	}
	return bytes + m.Draft.computeBytes(cells, rows, flash)
}

// cellCompute is what a cell adds to a layer of each model.
func (m Model) cellCompute(rows int, flash bool) int64 {
	if m.Draft == nil {
		return m.ownCellCompute(rows, flash)
	}
	return m.ownCellCompute(rows, flash) + m.Draft.cellCompute(rows, flash)
}

// ownCellCompute is the mask's column, in two types for flash attention; without
// that, also the weight that each head gives the cell.
func (m Model) ownCellCompute(rows int, flash bool) int64 {
	if flash {
		return int64(rows) * 6
	}
	return int64(rows) * 4 * (1 + int64(m.Heads))
}
