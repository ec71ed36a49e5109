package tier

import "fmt"

// Arena is memory outside of the Go heap, cut into slots of one size. The
// garbage collector neither scans it nor counts it when it decides how far the
// heap may grow, and a slot that is used again costs no page faults. One
// goroutine uses it.
type Arena struct {
	memory []byte
	slot   int
	fresh  int      // bytes handed out for the first time
	free   [][]byte // handed back
	taken  int
}

// NewArena reserves room for as many slots as the bytes hold. The system
// provides pages when they are first written.
func NewArena(bytes int64, slot int) (*Arena, error) {
	slot = (slot + page - 1) / page * page
	n := bytes / int64(slot)
	if n < 1 {
		return nil, fmt.Errorf("%d bytes hold no block of %d", bytes, slot)
	}
	m, err := reserve(int(n) * slot)
	if err != nil {
		return nil, fmt.Errorf("reserve %d bytes: %w", int(n)*slot, err)
	}
	return &Arena{memory: m, slot: slot}, nil
}

// Take returns a slot, or nil if all are taken. Its content is undefined.
func (a *Arena) Take() []byte {
	if n := len(a.free); n > 0 {
		s := a.free[n-1]
		a.free = a.free[:n-1]
		a.taken++
		return s
	}
	if a.fresh+a.slot > len(a.memory) {
		return nil
	}
	s := a.memory[a.fresh : a.fresh+a.slot : a.fresh+a.slot]
	a.fresh += a.slot
	a.taken++
	return s
}

// Give takes a slot back.
func (a *Arena) Give(slot []byte) {
	a.taken--
	a.free = append(a.free, slot[:a.slot])
}

// Capacity is the number of slots, Taken how many are in use.
func (a *Arena) Capacity() int { return len(a.memory) / a.slot }

// Taken is the number of slots in use.
func (a *Arena) Taken() int { return a.taken }

// Slot is the size of a slot in bytes.
func (a *Arena) Slot() int { return a.slot }

// Close gives the memory back to the system; no slot may be touched any more.
func (a *Arena) Close() error {
	m := a.memory
	a.memory, a.free = nil, nil
	return release(m)
}
