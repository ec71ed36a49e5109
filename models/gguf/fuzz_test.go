package gguf

import (
	"bytes"
	"runtime"
	"testing"
)

// FuzzRead feeds foreign bytes: no panic, and no more memory than the bytes
// can account for.
func FuzzRead(f *testing.F) {
	good := small(f)
	f.Add(good)
	f.Add(good[:200])
	f.Add(good[:len(good)-50])
	f.Add([]byte("GGUF\x03\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		file, err := Read(bytes.NewReader(b), int64(len(b)))
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > 1<<20+uint64(len(b))*200 {
			t.Fatalf("%d bytes allocated for %d bytes of input", used, len(b))
		}
		if err != nil {
			return
		}
		_ = file.Info()
		_ = file.CheckTensors()
		for _, kv := range file.KV {
			_ = kv.Value.String()
		}
	})
}
