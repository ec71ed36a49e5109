package server

import (
	"quern/models/chat"
)

// task is one generation as asked for, whichever endpoint it came by: both
// decode into it, and nothing behind it knows an endpoint.
type task struct {
	items        []inputItem
	instructions string
	tools        toolset
	choice       toolChoice
	parallel     bool // several calls in one answer are welcome
	maxCalls     int  // of one answer; 0 sets no limit
	format       textFormat

	sampling  sampling
	maxOutput int  // tokens; 0 asks for whatever fits
	silent    bool // the prompt is read into the cache, and nothing answered
	stops     []string
	logprobs  int // -1 none, else the number of alternatives per token

	thinking *bool // nil leaves it to the template
	// thoughtLimit is how many tokens the model may think, 0 being none; nil
	// leaves it to the node.
	thoughtLimit *int
	effort       string // reasoning effort in the template's words; "" is its default
	kwargs       []chat.KV

	plain        bool          // one message, then the calls, no reasoning
	requirements []requirement // of the node that may do it

	truncate  bool   // drop the oldest turns of an input that is too long
	cacheSalt string // separates the prefix cache from that of others
	pinned    bool   // its prefix has a name, and is kept longer than those that have none
}

// beSilent makes a task that only reads its prompt. A token is sampled, since an
// engine stops no earlier; nobody is told of it, and nobody pays for it.
func (t *task) beSilent() { t.silent, t.maxOutput = true, 1 }

// sampling says how tokens are chosen. Echoed as it was asked for.
type sampling struct {
	Temperature float64
	TopP        float64
	TopK        int // 0 is off
	MinP        float64
	Presence    float64
	Frequency   float64
	Repeat      float64 // 1 is off
	Seed        *int64  // nil takes a random one
}
