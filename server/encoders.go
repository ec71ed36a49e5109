package server

import (
	"context"
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
// Those who leave meanwhile don't get one: the error is why ctx has ended.
func (e encoders) enter(ctx context.Context, size int) (leave func(), err error) {
	if e == nil || size < longText {
		return func() {}, nil
	}
	select {
	case e <- struct{}{}:
		return func() { <-e }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// encode makes the tokens of a prompt.
func (m *Model) encode(ctx context.Context, segments []tokenizer.Segment) ([]tokenizer.Token, error) {
	size := 0
	for i := range segments {
		size += len(segments[i].Text)
	}
	leave, err := m.encoders.enter(ctx, size)
	if err != nil {
		return nil, err
	}
	defer leave()
	return m.Tokenizer.Encode(segments)
}
