package engine

// slot is a sequence of the draft model. It keeps what it has computed when its
// owner ends: the next turn of a conversation goes on from it.
type slot struct {
	id      SeqID
	sampler Sampler
	owner   *sequence
	tokens  []Token // computed
	sure    int     // so many of them are known to be its owner's
	stale   bool    // the backend holds more than tokens
	used    uint64  // when it last got an owner

	coming int // rows of it in the step at hand
	row    int // of the batch: its last one
}

// slotFor gives s a slot, if there is one: that which holds most of its tokens,
// or else the one unused for longest.
func (d *drafter) slotFor(s *sequence) *slot {
	if s.slot != nil {
		return s.slot
	}
	var best *slot
	most, latest := -1, uint64(0)
	for _, k := range d.slots {
		latest = max(latest, k.used)
		if k.owner != nil {
			continue
		}
		n := common(k.tokens, s.tokens)
		if n > most || n == most && k.used < best.used {
			best, most = k, n
		}
	}
	if best != nil {
		best.owner, best.sure, best.used = s, 0, latest+1
		s.slot = best
	}
	return best
}

// leave takes the slot from a sequence that ends or waits.
func (s *sequence) leave() {
	if s.slot != nil {
		s.slot.owner, s.slot = nil, nil
	}
}

// sync forgets what differs from the owner's tokens, and the last of these: its
// row is computed again, for what it says.
func (k *slot) sync(tokens []Token) {
	most := min(len(k.tokens), len(tokens)-1)
	for k.sure < most && k.tokens[k.sure] == tokens[k.sure] {
		k.sure++
	}
	k.sure = min(k.sure, most)
	if k.sure < len(k.tokens) {
		k.tokens, k.stale = k.tokens[:k.sure], true
	}
	k.coming = 0
}

func (k *slot) add(b *Batch, t Token, pos int, want int32) {
	b.Token[b.N], b.Pos[b.N], b.Seq[b.N], b.Want[b.N], b.Sampler[b.N] = t, int32(pos), k.id, want, k.sampler
	b.N++
}

func (k *slot) grow(t Token) {
	k.tokens = append(k.tokens, t)
	k.coming = 0
}

// drop empties a slot. If the backend can't, nothing is drafted in it any more:
// its positions don't follow.
func (d *drafter) drop(k *slot) {
	k.tokens, k.sure, k.coming, k.stale = k.tokens[:0], 0, 0, false
	if err := d.backend.SeqRemove(k.id, 0); err != nil {
		d.log.Error("sequence of the draft model lost", "seq", k.id, "err", err)
	}
}

func (d *drafter) clear() {
	for _, k := range d.slots {
		d.drop(k)
	}
}
