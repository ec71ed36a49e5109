package keys

import (
	"math"
	"time"
)

// bucket is a limit a minute: it holds that much when full, fills evenly, and
// may go below zero when more was used than had been foreseen.
type bucket struct {
	limit int // 0: none
	level float64
	at    time.Time // when level held
}

// resize changes the limit and keeps what has been used.
func (b *bucket) resize(limit int, now time.Time) {
	b.fill(now)
	used := float64(b.limit) - b.level
	b.limit = limit
	b.level = float64(limit) - used
}

// fill brings level up to date.
func (b *bucket) fill(now time.Time) {
	if elapsed := now.Sub(b.at); elapsed > 0 {
		b.level = math.Min(float64(b.limit), b.level+elapsed.Minutes()*float64(b.limit))
	}
	b.at = now
}

// wait is how long until n can be taken. More than the limit can be taken from a
// full bucket: it then stays empty for the longer.
func (b *bucket) wait(n float64, now time.Time) time.Duration {
	if b.limit == 0 {
		return 0
	}
	b.fill(now)
	return b.until(math.Min(n, float64(b.limit)))
}

// until is how long until the level is n.
func (b *bucket) until(n float64) time.Duration {
	lacking := n - b.level
	if lacking <= 1e-9*n { // what is lost in sums of floats
		return 0
	}
	return time.Duration(math.Ceil(lacking / float64(b.limit) * float64(time.Minute)))
}

// take uses n; a negative n gives back.
func (b *bucket) take(n float64) {
	if b.limit > 0 {
		b.level = math.Min(float64(b.limit), b.level-n)
	}
}

// Rate is the state of a limit a minute, for the headers of an answer.
type Rate struct {
	Limit     int // 0: none, and the rest says nothing
	Remaining int
	Reset     time.Duration // until all of it is there again
}

func (b *bucket) rate(now time.Time) Rate {
	if b.limit == 0 {
		return Rate{}
	}
	b.fill(now)
	return Rate{Limit: b.limit, Remaining: int(max(0, b.level+1e-6)), Reset: b.until(float64(b.limit))}
}
