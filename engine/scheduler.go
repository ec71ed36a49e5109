package engine

// There is no prefill phase and no decode phase. Each sequence has tokens that
// are computed and tokens that are pending; each step spends one budget of rows
// on pending ones. A sequence with one pending token is decoding, or as good as.

// budget is what one step may spend.
type budget struct {
	rows    int // of the batch
	cells   int // that are free or can be freed
	prefill int // rows for sequences with more than one pending token
}

// share gives rows of the next step to the sequence at an index.
type share struct{ seq, rows int }

// plan spends the budget on sequences, given as their pending token counts,
// oldest first. Decode rows come first. Of the prefill, up to half goes to whoever
// has least left, so that a short prompt isn't stuck behind a long one, and the
// rest by turn, so that a long one isn't starved by short ones: in the order of the
// indices in turns, or, where that is empty, of arrival. The shares come out
// decode first.
func plan(dst []share, pending, turns []int, b budget) []share {
	room := min(b.rows, b.cells)
	shortest := -1
	for i, n := range pending {
		switch {
		case n == 1 && room > 0:
			dst = append(dst, share{i, 1})
			room--
		case n > 1 && (shortest < 0 || n < pending[shortest]):
			shortest = i
		}
	}
	room = min(room, b.prefill)
	if shortest < 0 || room == 0 {
		return dst
	}
	head := min(pending[shortest], room/2)
	room -= head
	for at := range pending {
		i := at
		if len(turns) > 0 {
			i = turns[at]
		}
		n := pending[i]
		if n <= 1 {
			continue
		}
		rows := 0
		if i == shortest {
			rows, n = head, n-head
		}
		more := min(n, room)
		room -= more
		if rows+more > 0 {
			dst = append(dst, share{i, rows + more})
		}
	}
	return dst
}

// starved says that the cells don't suffice for all decode rows and for some
// progress of the oldest sequence.
func starved(pending []int, cells int) bool {
	need := 0
	for i, n := range pending {
		if n == 1 || i == 0 {
			need++
		}
	}
	return need > cells
}
