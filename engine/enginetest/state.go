package enginetest

import (
	"encoding/binary"
	"errors"
	"time"

	"quern/engine"
)

// cellBytes is what a saved cell takes: its token and the hash up to there.
const cellBytes = 12

var errState = errors.New("fake: not a state of this stretch")

// StateSize implements engine.StateBackend.
func (f *Fake) StateSize(n int) int {
	if !f.limits.Partial || !f.limits.Unified {
		return 0
	}
	return 8 + n*cellBytes
}

// SeqSave implements engine.StateBackend.
func (f *Fake) SeqSave(seq engine.SeqID, from, to int, dst []byte) (int, error) {
	f.enter("SeqSave")
	defer f.leave()
	if !f.valid(seq) || from < 0 || from >= to || to > len(f.kv.seqs[seq]) || len(dst) < f.StateSize(to-from) || f.StateSize(1) == 0 {
		return 0, f.misuse("SeqSave of [%d,%d) of sequence %d into %d bytes", from, to, seq, len(dst))
	}
	if f.StateCost != nil {
		time.Sleep(f.StateCost(to - from))
	}
	if f.FailSave != nil {
		if err := f.FailSave(from, to); err != nil {
			return 0, err
		}
	}
	le := binary.LittleEndian
	le.PutUint32(dst, uint32(from))
	le.PutUint32(dst[4:], uint32(to))
	for i, c := range f.kv.seqs[seq][from:to] {
		le.PutUint32(dst[8+i*cellBytes:], uint32(c.token))
		le.PutUint64(dst[12+i*cellBytes:], c.hash)
	}
	return f.StateSize(to - from), nil
}

// SeqRestore implements engine.StateBackend. A state that was made after other
// tokens is restored all the same, and poisons what follows.
func (f *Fake) SeqRestore(seq engine.SeqID, from, to int, state []byte) error {
	f.enter("SeqRestore")
	defer f.leave()
	if !f.valid(seq) || len(f.kv.seqs[seq]) != from || from >= to || f.StateSize(1) == 0 {
		return f.misuse("SeqRestore of [%d,%d) into sequence %d of %d", from, to, seq, len(f.kv.seqs[seq]))
	}
	if f.StateCost != nil {
		time.Sleep(f.StateCost(to - from))
	}
	if f.FailRestore != nil {
		if err := f.FailRestore(from, to); err != nil {
			return err
		}
	}
	le := binary.LittleEndian
	switch {
	case len(state) != f.StateSize(to-from) || int(le.Uint32(state)) != from || int(le.Uint32(state[4:])) != to:
		return errState
	case f.kv.used+to-from > f.limits.Cells:
		return engine.ErrNoCells
	}
	for i := range to - from {
		c := f.kv.take(engine.Token(le.Uint32(state[8+i*cellBytes:])), le.Uint64(state[12+i*cellBytes:]))
		f.kv.seqs[seq] = append(f.kv.seqs[seq], c)
	}
	f.restored += to - from
	return nil
}
