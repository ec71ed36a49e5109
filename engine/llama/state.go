package llama

import (
	"errors"
	"fmt"

	"quern/engine"
)

var errStretch = errors.New("the state is of other positions")

// StateSize implements engine.StateBackend. Recurrent states can't be cut, and
// only a unified cache lets a sequence be put together from parts.
func (b *Backend) StateSize(n int) int {
	if !b.limits.Partial || !b.limits.Unified {
		return 0
	}
	return b.context.StateBound(n)
}

// SeqSave implements engine.StateBackend: llama.cpp saves whole sequences, so
// the stretch becomes one for a moment. It shares the cells.
func (b *Backend) SeqSave(seq engine.SeqID, from, to int, dst []byte) (int, error) {
	if err := b.context.SeqCopy(seq, b.spare, from, to); err != nil {
		return 0, err
	}
	err := b.holds(from, to)
	n := 0
	if err == nil {
		n, err = b.context.SeqStateTo(b.spare, dst)
	}
	if e := b.SeqRemove(b.spare, 0); err == nil {
		err = e
	}
	return n, err
}

// SeqRestore implements engine.StateBackend.
func (b *Backend) SeqRestore(seq engine.SeqID, from, to int, state []byte) error {
	if end := b.context.SeqPosMax(seq) + 1; end != from {
		return fmt.Errorf("[%d,%d) after %d positions: %w", from, to, end, errStretch)
	}
	if err := b.context.SetSeqState(b.spare, state); err != nil {
		return translate(err)
	}
	err := b.holds(from, to)
	if err == nil {
		err = b.context.SeqCopy(b.spare, seq, from, to)
	}
	if e := b.SeqRemove(b.spare, 0); err == nil {
		err = e
	}
	return err
}

// holds checks that the spare sequence has just these positions: a sliding
// window may have taken some.
func (b *Backend) holds(from, to int) error {
	if lo, hi := b.context.SeqPosMin(b.spare), b.context.SeqPosMax(b.spare); lo != from || hi != to-1 {
		return fmt.Errorf("[%d,%d) in place of [%d,%d): %w", lo, hi+1, from, to, errStretch)
	}
	return nil
}

// StateKind names what saved states fit, but for the weights.
func (b *Backend) StateKind() string { return b.context.StateKind() }
