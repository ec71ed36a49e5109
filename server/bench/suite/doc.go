// Package suite measures servers side by side: it starts each with the same
// model, threads, places and KV cells, gives all of them the same work in turn,
// and writes what came of it as a table.
//
// A Peer is a way to start one server; its settings are those that a user of it
// gets by default. A Work is one kind of load with the figures worth showing.
// Works with the same Setup run on the same servers, turn by turn, so that what
// else the machine does hits all alike. A server that fails at a work is shown
// as having failed and holds up nothing else.
//
// Command quern bench suite is its only caller.
package suite
