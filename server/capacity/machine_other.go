//go:build !linux

package capacity

import "runtime"

// Cores is how many threads a step may use.
func Cores() int { return runtime.NumCPU() }

// Memory is how many bytes this process can still take: not known here.
func Memory() int64 { return 0 }

// Swap is how many bytes can be swapped out beside that: not known here.
func Swap() int64 { return 0 }

// CPU is what the system calls the processor: not known here.
func CPU() string { return "" }
