// Package keys knows who may call a node, and how much.
//
// It owns the keys file (file.go), which holds digests and limits and is edited
// by hand or by quern keys; the ring of all keys of a running node (ring.go),
// which reads the file again when it changes; the use that each key makes of the
// node (holder.go, bucket.go); and the ledger of what was spent of balances
// (ledger.go), which survives a restart. A request holds a Lease from when it
// enters to when it leaves.
//
// All methods may be called on any goroutine.
package keys
