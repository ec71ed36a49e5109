package bench

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const goodStream = "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"usage\":null}}\n\n" +
	"data: {\"type\":\"response.reasoning_text.delta\",\"delta\":\"hm\"}\n\n" +
	"data: {\"type\":\"response.output_text.delta\",\"delta\":\"a\"}\n\ndata:{\"type\":\"response.output_text.delta\",\"delta\":\"b\"}\r\n\r\n" +
	"data: {\"type\":\"response.completed\",\"response\":{\"usage\":{\"input_tokens\":7,\"output_tokens\":3,\"input_tokens_details\":{\"cached_tokens\":2}}}}\n\n"

func TestReadStream(t *testing.T) {
	var s Sample
	seen := 0
	require.NoError(t, s.read(strings.NewReader(goodStream), func() { seen++ }))
	require.Equal(t, "ab", s.Text, "reasoning is output, but no text of the answer")
	require.Equal(t, []int{7, 3, 2, 3, 3}, []int{s.Input, s.Output, s.Cached, len(s.Deltas), seen})
}

// A stream is a success only if its end was seen.
func FuzzReadStream(f *testing.F) {
	f.Add(goodStream)
	f.Add("data: {\"type\":\"error\",\"error\":{\"code\":\"x\"}}\n\n")
	f.Add("data: [DONE]\n\ndata: null\n\ndata: {}")
	f.Fuzz(func(t *testing.T, stream string) {
		var s Sample
		err := s.read(strings.NewReader(stream), func() {})
		if err == nil {
			require.Contains(t, stream, "response")
		}
	})
}
