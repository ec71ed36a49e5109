package server

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestObfuscationHidesTheSizesOfDeltas: only where asked for, with the text and
// the chunks as they are otherwise.
func TestObfuscationHidesTheSizesOfDeltas(t *testing.T) {
	n := newNode(t, "Hello there, wörld."+call(`{"city": "Paris"}`))
	for _, row := range []struct{ path, body, delta string }{
		{"/v1/responses", `{"input":"hi","stream":true,` + weatherTool, ".delta"},
		{"/v1/chat/completions", `{"messages":[{"role":"user","content":"hi"}],"stream":true,` + weatherTool, `chat.completion.chunk`},
	} {
		_, plain := n.do("POST", row.path, row.body+`}`)
		require.NotContains(t, plain, "obfuscation")
		_, padded := n.do("POST", row.path, row.body+`,"stream_options":{"include_obfuscation":true}}`)
		frames, deltas := strings.SplitAfter(padded, "\n\n"), 0
		for _, frame := range frames {
			if strings.Contains(frame, row.delta) {
				deltas++
				require.Contains(t, frame, `,"obfuscation":"`)
				require.Zero(t, len(frame)%obfuscationBlock, "%d bytes: %s", len(frame), frame)
			}
		}
		require.Greater(t, deltas, 20)
		require.Len(t, frames, strings.Count(plain, "\n\n")+1)
	}
	s := n.stream(`{"input":"hi","stream_options":{"include_obfuscation":true}}`)
	require.Contains(t, s.Text(), "Hello there, wörld.")
}
