package soaktest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"time"
)

// Memory is what the process held over time, in bytes. The first figures are
// taken when a quarter of the time is over: by then all that is made once is
// there.
type Memory struct {
	HeapFirst, HeapLast, HeapMost uint64 // in use on the Go heap, after a collection
	RSSFirst, RSSLast, RSSMost    uint64 // resident; 0 where that is not known
	Goroutines                    int    // at the end, with all clients still there
}

// HeapGrowth is how much more the heap held at last.
func (m Memory) HeapGrowth() int64 { return int64(m.HeapLast) - int64(m.HeapFirst) }

// RSSGrowth is how much more was resident at last.
func (m Memory) RSSGrowth() int64 { return int64(m.RSSLast) - int64(m.RSSFirst) }

func (m Memory) String() string {
	mib := func(n uint64) string { return strconv.FormatFloat(float64(n)/(1<<20), 'f', 1, 64) }
	return fmt.Sprintf("heap %s MiB, then %s, at most %s; resident %s MiB, then %s, at most %s; %d goroutines",
		mib(m.HeapFirst), mib(m.HeapLast), mib(m.HeapMost), mib(m.RSSFirst), mib(m.RSSLast), mib(m.RSSMost), m.Goroutines)
}

// watch looks at the memory until ctx ends.
func watch(ctx context.Context, d time.Duration) Memory {
	var m Memory
	tick := time.NewTicker(min(d/20+time.Millisecond, time.Second))
	defer tick.Stop()
	start := time.Now()
	for {
		select {
		case <-ctx.Done():
			return m
		case <-tick.C:
		}
		heap, rss := now()
		if time.Since(start) < d/4 {
			continue
		}
		if m.HeapFirst == 0 {
			m.HeapFirst, m.RSSFirst = heap, rss
		}
		m.HeapLast, m.RSSLast = heap, rss
		m.HeapMost, m.RSSMost = max(m.HeapMost, heap), max(m.RSSMost, rss)
		m.Goroutines = runtime.NumGoroutine()
	}
}

func now() (heap, rss uint64) {
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	if raw, err := os.ReadFile("/proc/self/statm"); err == nil {
		if fields := bytes.Fields(raw); len(fields) > 1 {
			pages, _ := strconv.ParseUint(string(fields[1]), 10, 64) // 0 where it is none
			rss = pages * uint64(os.Getpagesize())
		}
	}
	return s.HeapAlloc, rss
}
