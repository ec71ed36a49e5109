package server

import (
	"math"
	"strconv"
	"sync/atomic"
	"time"
)

// histogram counts durations in buckets. Observing takes no lock and makes no
// garbage: it runs on every delivery of every stream.
type histogram struct {
	bounds []float64 // seconds, ascending
	counts []atomic.Uint64
	sum    atomic.Uint64 // bits of a float64, seconds
}

func newHistogram(bounds ...float64) *histogram {
	return &histogram{bounds: bounds, counts: make([]atomic.Uint64, len(bounds)+1)}
}

func (h *histogram) observe(d time.Duration) { h.observeMany(d, 1) }

// observeMany counts n observations of the same duration.
func (h *histogram) observeMany(d time.Duration, n int) {
	seconds := d.Seconds()
	i := 0
	for i < len(h.bounds) && seconds > h.bounds[i] {
		i++
	}
	h.counts[i].Add(uint64(n))
	for {
		old := h.sum.Load()
		sum := math.Float64bits(math.Float64frombits(old) + seconds*float64(n))
		if h.sum.CompareAndSwap(old, sum) {
			return
		}
	}
}

// append writes the series in the Prometheus text format.
func (h *histogram) append(dst []byte, name, label string) []byte {
	total := uint64(0)
	for i := range h.counts {
		total += h.counts[i].Load()
		dst = append(append(dst, name...), `_bucket{`...)
		dst = append(append(dst, label...), `,le="`...)
		if i < len(h.bounds) {
			dst = strconv.AppendFloat(dst, h.bounds[i], 'g', -1, 64)
		} else {
			dst = append(dst, "+Inf"...)
		}
		dst = append(strconv.AppendUint(append(dst, `"} `...), total, 10), '\n')
	}
	dst = append(append(dst, name...), `_sum{`...)
	dst = append(append(dst, label...), `} `...)
	dst = append(strconv.AppendFloat(dst, math.Float64frombits(h.sum.Load()), 'g', -1, 64), '\n')
	dst = append(append(dst, name...), `_count{`...)
	dst = append(append(dst, label...), `} `...)
	return append(strconv.AppendUint(dst, total, 10), '\n')
}

// mean is the average of all observations, 0 without any.
func (h *histogram) mean() time.Duration {
	total := uint64(0)
	for i := range h.counts {
		total += h.counts[i].Load()
	}
	if total == 0 {
		return 0
	}
	return time.Duration(math.Float64frombits(h.sum.Load()) / float64(total) * float64(time.Second))
}
