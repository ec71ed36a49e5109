// Package engine runs many token sequences through one Backend at a time:
// continuous batching, admission, preemption and prefix reuse. It knows
// neither text nor HTTP nor C.
//
// One goroutine, locked to its OS thread, owns the Backend and everything
// behind it: sequences, the prefix cache, the cell ledger. It runs the loop of
// loop.go, which is the page to read first. Request goroutines reach it through
// Submit and Stream only; what they share with it is the inbox (Engine.mu), the
// output buffer of each Stream (Stream.mu) and the published Stats.
package engine
