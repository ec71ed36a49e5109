package toolcall

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Markers of a family in any order, with what may stand between them, are read the
// same however they come, and nothing of them is lost.
func TestMarkersInAnyOrder(t *testing.T) {
	words := []string{
		"ping", "note", "all", "\n", " ", "x", "to=functions.", "to=note", " to=self", "analysis", "final", "commentary", "json",
		`{"text":"a"}`, `{"name":"ping","args":{}}`, "{", "}", "[", "]", `"`, `'`, "(", ")", "text='a'", "<", ">", "text>", "é", "</",
	}
	for i := range rows {
		f := &rows[i]
		t.Run(f.Name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(uint64(i), 7))
			markers := f.Markers()
			for range 150 {
				var parts []string
				for range 2 + rng.IntN(14) {
					if len(markers) > 0 && rng.IntN(3) > 0 {
						parts = append(parts, markers[rng.IntN(len(markers))])
					} else {
						parts = append(parts, words[rng.IntN(len(words))])
					}
				}
				in := strings.Join(parts, "")
				o := Options{Tools: testTools, Bare: rng.IntN(2) == 0, StartInReasoning: rng.IntN(4) == 0}
				cut := rng.IntN(3) == 0
				want := probe(t, f, o, []string{in}, cut)
				require.Equal(t, want, probe(t, f, o, strings.Split(in, ""), cut), "%q in characters", in)
				require.Equal(t, want, probe(t, f, o, randomSplit(rng, in), cut), in)

				byToken := o
				byToken.Lookup = lookupIn(f)
				visible := lex(f, byToken, tokens(f, in, nil, true), cut)
				control := lex(f, byToken, tokens(f, in, nil, false), cut)
				require.Equal(t, visible, control, "%q, markers with and without a text of their own", in)
			}
		})
	}
}
