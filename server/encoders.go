package server

import (
	"runtime"

	"quern/tokenizer"
)

// longText is the length in bytes from which encoding a text counts as work.
const longText = 64 << 10

// encoders bounds how many long texts are encoded at once. Encoding can't be
// stopped and takes a core, which the engine's threads would miss. A nil one
// sets no bound. Any goroutine.
type encoders chan struct{}

func newEncoders() encoders { return make(encoders, max(1, runtime.GOMAXPROCS(0)/2)) }

// enter waits for a place if the text is long, and returns what gives it back.
func (e encoders) enter(size int) (leave func()) {
	if e == nil || size < longText {
		return func() {}
	}
	e <- struct{}{}
	return func() { <-e }
}

// encode makes the tokens of a prompt.
func (m *Model) encode(segments []tokenizer.Segment) ([]tokenizer.Token, error) {
	size := 0
	for i := range segments {
		size += len(segments[i].Text)
	}
	defer m.encoders.enter(size)()
	return m.Tokenizer.Encode(segments)
}
