package engine

import "time"

// tierCounts are what publish shows of the tiers.
type tierCounts struct {
	ram, disk          tierUse
	savedBlocks        uint64
	written            uint64
	saveTime, loadTime time.Duration
	evicted            uint64 // blocks
	failed, unwritten  uint64 // blocks that were not saved, or not written
	lost               uint64 // blocks that the store could not give
}

type tierUse struct {
	blocks, tokens uint64
	time           time.Duration
}

// publish puts the state of the tiers into the statistics.
func (t *tiers) publish(s *Stats) {
	if t == nil {
		return
	}
	c := &t.stats
	s.RAM = TierStats{
		Blocks: t.arena.Taken(), Bytes: int64(t.arena.Taken()) * int64(t.arena.Slot()),
		Capacity:  int64(t.arena.Capacity()) * int64(t.arena.Slot()),
		HitBlocks: c.ram.blocks, HitTokens: c.ram.tokens, RestoreTime: c.ram.time,
		Saved: c.savedBlocks, SaveTime: c.saveTime, NotSaved: c.failed, Evicted: c.evicted,
	}
	if t.store == nil {
		return
	}
	s.Disk = TierStats{HitBlocks: c.disk.blocks, HitTokens: c.disk.tokens, RestoreTime: c.disk.time + c.loadTime,
		Saved: c.written, NotSaved: c.unwritten, Lost: c.lost}
	s.Disk.Blocks, s.Disk.Bytes, s.Disk.Capacity = t.store.Usage()
}
