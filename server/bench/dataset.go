package bench

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// The kinds of Dataset.
const (
	Unique       = "unique"        // nothing in common
	SharedPrefix = "shared-prefix" // one long head, a short question each
	MultiTurn    = "multi-turn"    // conversations that grow
	Repeat       = "repeat"        // each prompt twice in a row
	CodeEdit     = "code-edit"     // a source file to give back with a name changed
	JSONEcho     = "json-echo"     // a document to give back with a field changed
)

// DatasetKinds lists them in the order of help texts.
func DatasetKinds() []string {
	return []string{Unique, SharedPrefix, MultiTurn, Repeat, CodeEdit, JSONEcho}
}

// Dataset makes prompts of random words. The same values give the same prompts.
type Dataset struct {
	Kind        string `json:"kind"`
	Seed        uint64 `json:"seed"`
	PromptWords int    `json:"prompt_words"` // a prompt; in multi-turn the first message; about those of a file or document
	SharedWords int    `json:"shared_words"` // the head of shared-prefix
	TurnWords   int    `json:"turn_words"`   // a later message of multi-turn
	Turns       int    `json:"turns"`        // of multi-turn
}

// Validate says what can't be made.
func (d Dataset) Validate() error {
	if !slices.Contains(DatasetKinds(), d.Kind) {
		return fmt.Errorf("unknown data set %q, there are %s", d.Kind, strings.Join(DatasetKinds(), ", "))
	}
	if d.PromptWords < 1 {
		return fmt.Errorf("prompts of %d words, at least 1 is needed", d.PromptWords)
	}
	if d.Kind == SharedPrefix && d.SharedWords < 1 {
		return fmt.Errorf("a shared head of %d words, at least 1 is needed", d.SharedWords)
	}
	if d.Kind == MultiTurn && (d.Turns < 1 || d.TurnWords < 1) {
		return fmt.Errorf("%d turns of %d words, at least 1 of each is needed", d.Turns, d.TurnWords)
	}
	return nil
}

// turns is the number of requests a session makes.
func (d Dataset) turns() int {
	switch d.Kind {
	case MultiTurn:
		return d.Turns
	case Repeat:
		return 2
	}
	return 1
}

// sticky sessions are not interleaved with others.
func (d Dataset) sticky() bool { return d.Kind == Repeat }

// sharedStream is the random stream of the shared head, past all sessions.
const sharedStream = 1 << 63

// session is the n-th conversation. It belongs to one goroutine at a time.
type session struct {
	data    Dataset
	number  uint64
	turn    int
	history []Message
}

// input is the conversation to send for the current turn.
func (s *session) input() []Message {
	rng := rand.New(rand.NewPCG(s.data.Seed, s.number<<8+uint64(s.turn)))
	switch s.data.Kind {
	case SharedPrefix:
		head := prose(rand.New(rand.NewPCG(s.data.Seed, sharedStream)), s.data.SharedWords)
		return []Message{user(head + fmt.Sprintf("\nQuestion %d: tell at length of %s", s.number, prose(rng, s.data.PromptWords)))}
	case MultiTurn:
		words := s.data.PromptWords
		if s.turn > 0 {
			words = s.data.TurnWords
		}
		return append(s.history, user(prose(rng, words)+"\nGo on with the story."))
	case Repeat:
		rng = rand.New(rand.NewPCG(s.data.Seed, s.number<<8))
	case CodeEdit:
		return []Message{user(codeEdit(rng, s.data.PromptWords))}
	case JSONEcho:
		return []Message{user(jsonEcho(rng, s.data.PromptWords))}
	}
	return []Message{user(prose(rng, s.data.PromptWords) + "\nWrite a very long story about this.")}
}

// answered notes the reply to input and moves to the next turn.
func (s *session) answered(input []Message, reply string) {
	if s.data.Kind == MultiTurn {
		s.history = slices.Concat(input, []Message{{"message", "assistant", reply}})
	}
	s.turn++
}

func (s *session) done() bool { return s.turn >= s.data.turns() }

func user(text string) Message { return Message{"message", "user", text} }

var words = strings.Fields(`river stone meadow lantern copper window market garden silver bridge winter
	harbor basket candle feather mirror orchard pebble saddle timber valley whistle anchor barrel cotton
	quarry thistle ferry millstone hedge cellar chimney acorn loom wharf kettle ribbon plough ember gate`)

func prose(rng *rand.Rand, n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(words[rng.IntN(len(words))])
		if i%12 == 11 {
			b.WriteByte('.')
		}
	}
	return b.String()
}
