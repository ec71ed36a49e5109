// Package tier holds what the engine's prefix tiers are made of: Arena is the
// memory of the host tier, Disk keeps blocks in files that outlive the process.
//
// A Block is a stretch of the tokens of some prefix together with what the KV
// cache held for them, opaque bytes here. Its Key stands for all tokens up to
// its end, so equal keys mean equal prefixes.
//
// # Files of a Disk
//
// DIR/<identity>/<key>: a header with all that names the block, its tokens, the
// state packed by zstd; both parts have a checksum. Files are written under
// another name and renamed, so that a reader, of this process or another one,
// finds a whole file or none; a power cut may still tear one, which the checksum
// finds. Nothing read is trusted: a file that is torn, of another identity or
// under a wrong name is a miss and is deleted. The identity says what a state
// depends on beside its tokens: weights, KV type, engine build.
//
// Any number of processes may use one directory. Each holds the whole of it
// under its own cap and learns from time to time what the others have written.
//
// # Goroutines
//
// A Disk has one that writes and one that reads; Put, Get, Touch and Drop only
// queue work for them, and may be called from any goroutine.
package tier
