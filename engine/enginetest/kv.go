package enginetest

import "quern/engine"

// cell is one KV cell, held by so many sequences.
type cell struct {
	token   engine.Token
	hash    uint64 // of all tokens of its sequence up to here
	holders int
}

// kv is the cache: each sequence is a list of cells by position.
type kv struct {
	limits engine.Limits
	seqs   [][]*cell
	free   []*cell
	used   int
}

func newKV(l engine.Limits) *kv {
	k := &kv{limits: l, seqs: make([][]*cell, l.Seqs)}
	cells := make([]cell, l.Cells)
	for i := range cells {
		k.free = append(k.free, &cells[i])
	}
	return k
}

// room says whether the rows of a batch find cells.
func (k *kv) room(b *engine.Batch) bool {
	if k.limits.Unified {
		return k.used+b.N <= k.limits.Cells
	}
	for id := range k.seqs {
		n := len(k.seqs[id])
		for _, s := range b.Seq[:b.N] {
			if int(s) == id {
				n++
			}
		}
		if n > k.limits.Cells/k.limits.Seqs {
			return false
		}
	}
	return true
}

func (k *kv) add(seq engine.SeqID, t engine.Token) *cell {
	h := uint64(14695981039346656037)
	if s := k.seqs[seq]; len(s) > 0 {
		h = s[len(s)-1].hash
	}
	c := k.take(t, mix(h^uint64(t)))
	k.seqs[seq] = append(k.seqs[seq], c)
	return c
}

func (k *kv) take(t engine.Token, hash uint64) *cell {
	c := k.free[len(k.free)-1]
	k.free = k.free[:len(k.free)-1]
	*c = cell{t, hash, 1}
	k.used++
	return c
}

func (k *kv) copy(src, dst engine.SeqID, n int) {
	for _, c := range k.seqs[src][:n] {
		if k.limits.Unified {
			c.holders++
		} else {
			c = k.take(c.token, c.hash)
		}
		k.seqs[dst] = append(k.seqs[dst], c)
	}
}

func (k *kv) remove(seq engine.SeqID, from int) {
	s := k.seqs[seq]
	for _, c := range s[from:] {
		if c.holders--; c.holders == 0 {
			k.used--
			k.free = append(k.free, c)
		}
	}
	clear(s[from:])
	k.seqs[seq] = s[:from]
}

// mix spreads the bits of x (the finalizer of splitmix64).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
