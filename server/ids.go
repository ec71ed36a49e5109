package server

import (
	"crypto/rand"
	"encoding/hex"
)

// Prefixes of ids; clients and test suites look for them.
const (
	prefixResponse   = "resp_"
	prefixMessage    = "msg_"
	prefixCall       = "call_"
	prefixFunction   = "fc_"
	prefixCustom     = "ctc_"
	prefixReasoning  = "rs_"
	prefixCompaction = "cmp_"
	prefixCompletion = "chatcmpl-"
	prefixText       = "cmpl-"
	prefixRequest    = "req_"
)

// newID returns the prefix and 128 random bits in hex.
func newID(prefix string) string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: the runtime ends the process instead
	return prefix + hex.EncodeToString(b[:])
}
