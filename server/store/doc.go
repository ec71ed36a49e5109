// Package store keeps responses, so that clients can fetch, continue and delete
// them: in memory, or in one file that survives a restart.
//
// A Store owns the index of what there is (store.go): by key and by last use, so
// that what is old or too much goes, least recently used first. The records
// themselves are packed (record.go) and lie with a keeper: a map (memory.go) or a
// bbolt file (disk.go). What a keeper gives back is never trusted: a damaged
// record is one that is not there.
//
// All methods may be called on any goroutine. One lock guards index and keeper,
// also while a write waits for the disk.
package store
