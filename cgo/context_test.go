package cgo

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestGreedyText(t *testing.T) {
	c := newContext(t, ContextParams{})
	prompt := chatPrompt(t, "What is the capital of France?")
	a := complete(t, c, 0, prompt, 24, SamplerParams{})
	require.Contains(t, detok(t, a), "Paris")
	c.Clear()
	b := complete(t, c, 0, prompt, 24, SamplerParams{})
	require.Equal(t, a, b)
	t.Log(detok(t, a))
}
