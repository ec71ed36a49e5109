// Package bench loads a server that answers POST /v1/responses and measures
// what its clients see.
//
// A Dataset makes prompts, the same for the same seed. Run sends them, as many
// at a time as asked (closed loop) or as they arrive by chance at a mean rate
// (open loop); Stall measures what a long prompt does to a running stream, and
// Prefix what a prompt gains when it comes again. A Result names its figures as vLLM's serving benchmark does. Failed requests
// are counted by kind and never drop out of a report.
//
// It knows nothing of the server but its wire format, so any server of the
// Responses API can be measured. Command quern bench is its only caller.
package bench
