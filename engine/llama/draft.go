package llama

import (
	"bytes"
	"errors"
	"fmt"
)

// CheckDraft says why d can't draft for b: what it says must mean the same there.
// Vocabularies may be padded to different lengths, as they are within families.
func (b *Backend) CheckDraft(d *Backend) error {
	if !d.limits.Partial {
		return errors.New("its state can't be taken back (it is recurrent or hybrid), so it can't draft")
	}
	if !b.limits.Partial {
		return errors.New("the model's state can't be taken back (it is recurrent or hybrid), so nothing can be drafted for it")
	}
	ours, theirs := b.Vocab(), d.Vocab()
	for i := range int32(min(ours.Size(), theirs.Size())) {
		if x, y := ours.Piece(i), theirs.Piece(i); !bytes.Equal(x, y) {
			return fmt.Errorf("it has another vocabulary: token %d is %q there and %q in the model", i, y, x)
		}
		if ours.IsEOG(i) != theirs.IsEOG(i) || ours.IsControl(i) != theirs.IsControl(i) {
			return fmt.Errorf("it has another vocabulary: token %d, %q, has other attributes than in the model", i, ours.Piece(i))
		}
	}
	return nil
}
