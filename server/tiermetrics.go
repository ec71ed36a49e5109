package server

import "quern/engine"

// tiers tells of what is below the KV cache, a series for each tier.
func (p *page) tiers(s *engine.Stats) {
	type value = func(t *engine.TierStats) float64
	for _, f := range []struct {
		name, kind, help string
		value            value
	}{
		{"bytes", "gauge", "Bytes that saved prefixes take.", func(t *engine.TierStats) float64 { return float64(t.Bytes) }},
		{"capacity_bytes", "gauge", "Bytes that they may take.", func(t *engine.TierStats) float64 { return float64(t.Capacity) }},
		{"blocks", "gauge", "Blocks of saved prefixes, up to 128 tokens each.", func(t *engine.TierStats) float64 { return float64(t.Blocks) }},
		{"hits_total", "counter", "Blocks restored from the tier.", func(t *engine.TierStats) float64 { return float64(t.HitBlocks) }},
		{"hit_tokens_total", "counter", "Prompt tokens restored from the tier.", func(t *engine.TierStats) float64 { return float64(t.HitTokens) }},
		{"restore_seconds_total", "counter", "Time that took, the reading of files included.", func(t *engine.TierStats) float64 { return t.RestoreTime.Seconds() }},
		{"saved_total", "counter", "Blocks that came into the tier.", func(t *engine.TierStats) float64 { return float64(t.Saved) }},
		{"save_seconds_total", "counter", "Time that took of the loop.", func(t *engine.TierStats) float64 { return t.SaveTime.Seconds() }},
		{"not_saved_total", "counter", "Blocks that failed to.", func(t *engine.TierStats) float64 { return float64(t.NotSaved) }},
		{"evicted_total", "counter", "Blocks that made room for others.", func(t *engine.TierStats) float64 { return float64(t.Evicted) }},
		{"lost_total", "counter", "Blocks that could not be read back.", func(t *engine.TierStats) float64 { return float64(t.Lost) }},
	} {
		name := "quern:prefix_tier_" + f.name
		p.head(name, f.kind, f.help)
		p.line(name, `,tier="ram"`, f.value(&s.RAM))
		p.line(name, `,tier="disk"`, f.value(&s.Disk))
	}
	p.head("quern:prefix_misses_total", "counter", "Requests by why their prompt was not cached to its end; none: it was.")
	for kind, n := range s.Misses {
		p.line("quern:prefix_misses_total", `,kind="`+engine.Miss(kind).String()+`"`, float64(n))
	}
}
