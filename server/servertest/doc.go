// Package servertest reads event streams of POST /v1/responses and checks them
// against the grammar of the contract: framing, order, ids, indexes, texts that
// add up, one terminal event, [DONE]. Tests of the server use it on every
// stream. Check returns what is wrong instead of failing, so that the checker
// itself can be tested.
package servertest
