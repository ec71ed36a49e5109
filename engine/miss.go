package engine

import (
	"context"
	"log/slog"

	"quern/engine/tier"
)

// Miss says why a prompt was not cached to its end.
type Miss int

// The kinds of misses, from what the client sends to what the node lacks.
const (
	MissNone    Miss = iota
	MissNew          // nothing known begins like it
	MissDiffers      // what is known goes on with another token
	MissEnds         // it goes on where what is known ends, as the next turn does
	MissEvicted      // what would have been known has made room for something else
	MissCost         // to compute it is quicker than to restore it
	MissSlow         // it did not come from the store in time
	MissStore        // the store could not give it: it was gone, torn or foreign
	MissState        // the backend did not take it
	MissCells        // no cells were free for it
	MissGone         // it was dropped while it was waited for
	MissKinds
)

var missNames = [MissKinds]string{
	"none", "new", "differs", "ends", "evicted", "cost", "slow", "store", "state", "cells", "gone",
}

func (m Miss) String() string { return missNames[m] }

// missOf tells why a prompt of which so many tokens are resident or saved is not
// known further.
func (e *Engine) missOf(s *sequence, known int) Miss {
	if known >= len(s.tokens)-1 {
		return MissNone
	}
	if s.miss != MissNone {
		return s.miss
	}
	salt := s.request.CacheSalt
	if t := e.tiers; t != nil && t.past.hasNext(salt, s.tokens, known) {
		return MissEvicted
	}
	n, at := e.cache.index.lookup(salt, s.tokens)
	ends := at == nil || n == at.depth && len(at.children) == 0
	if t := e.tiers; t != nil {
		if path, k := t.find(salt, s.tokens); k > n {
			last := path[len(path)-1]
			n, ends = k, k == last.end() && len(last.children) == 0
		}
	}
	switch {
	case n == 0:
		return MissNew
	case ends:
		return MissEnds
	}
	return MissDiffers
}

// logMiss says where a prompt departs from all that is known, and why.
func (e *Engine) logMiss(s *sequence, why Miss) {
	e.stats.Misses[why]++
	log := e.config.Logger
	if why == MissNone || !log.Enabled(context.Background(), slog.LevelDebug) {
		return
	}
	log.Debug("prefix ends before the prompt", "request", s.request.ID,
		"prompt", len(s.tokens), "first_differing", s.computed(), "why", why.String())
}

// ghosts remember which blocks have gone lately, to tell a miss for want of room
// from one of something new.
type ghosts struct {
	ring []tier.Key
	next int
	set  map[tier.Key]bool

	granule int
}

const mostGhosts = 1 << 14

func newGhosts(granule int) ghosts { return ghosts{set: map[tier.Key]bool{}, granule: granule} }

func (g *ghosts) add(k tier.Key) {
	if g.set[k] {
		return
	}
	if len(g.ring) < mostGhosts {
		g.ring = append(g.ring, k)
	} else {
		delete(g.set, g.ring[g.next])
		g.ring[g.next] = k
		g.next = (g.next + 1) % mostGhosts
	}
	g.set[k] = true
}

// hasNext says whether the block has gone that holds the token after the first n
// of a prompt.
func (g *ghosts) hasNext(salt string, prompt []Token, n int) bool {
	if len(g.set) == 0 {
		return false
	}
	k := tier.RootKey(salt)
	for at := 0; at < len(prompt); at += g.granule {
		k = tier.KeyOf(k, prompt[at:min(at+g.granule, len(prompt))])
		if at+g.granule > n {
			return g.set[k]
		}
	}
	return false
}
