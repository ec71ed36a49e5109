package tokenizer

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// stopWhole is what the whole text gives: cut before the stop string that
// completes first, the longest of those that complete together.
func stopWhole(text string, stops []string) (out, stop string) {
	end := len(text) + 1
	for _, s := range stops {
		i := strings.Index(text, s)
		if s == "" || i < 0 {
			continue
		}
		if e := i + len(s); e < end || (e == end && len(s) > len(stop)) {
			end, stop = e, s
		}
	}
	if stop == "" {
		return text, ""
	}
	return text[:end-len(stop)], stop
}

// checkStop feeds text in parts of the given sizes and checks that the result
// is that of the whole text, and that as much comes out each time as is sure.
func checkStop(t *testing.T, text string, stops []string, sizes func() int) {
	t.Helper()
	want, stop := stopWhole(text, stops)
	m := NewStopMatcher(stops)
	var out []byte
	for at := 0; at < len(text); {
		n := min(max(sizes(), 1), len(text)-at)
		emit, stopped := m.Push([]byte(text[at : at+n]))
		at += n
		out = append(out, emit...)
		require.Equal(t, len(out), m.Emitted())
		if stopped {
			require.NotEmpty(t, stop)
			break
		}
		require.Equal(t, len(longestOpen(text[:at], stops)), m.Held(), "%q", text[:at])
		require.Equal(t, at, len(out)+m.Held())
	}
	if stop != "" {
		emit, stopped := m.Push([]byte("more"))
		require.True(t, stopped)
		require.Empty(t, emit)
	}
	out = append(out, m.Flush()...)
	require.Equal(t, want, string(out), "%q stops %q", text, stops)
	require.Equal(t, stop, m.Stopped())
	require.Equal(t, len(out), m.Emitted())
	require.Zero(t, m.Held())
}

// longestOpen is the longest end of text that begins a stop string.
func longestOpen(text string, stops []string) string {
	for i := range len(text) {
		for _, s := range stops {
			if strings.HasPrefix(s, text[i:]) {
				return text[i:]
			}
		}
	}
	return ""
}

func TestStopMatcherCases(t *testing.T) {
	cases := []struct {
		text  string
		stops []string
		want  string
		stop  string
	}{
		{"alpha beta gamma delta", []string{"beta gamma"}, "alpha ", "beta gamma"},
		{"ABC DEFGHIJ", []string{"DEFGHIJ"}, "ABC ", "DEFGHIJ"},
		{"ABC DEFGHI", []string{"DEFGHIJ"}, "ABC DEFGHI", ""},
		{"ababac", []string{"abac"}, "ab", "abac"},
		{"xabcd", []string{"abcd", "bc"}, "xa", "bc"},
		{"xabc", []string{"bc", "abc", "c"}, "x", "abc"},
		{"aaa", []string{"aa", "aa", ""}, "", "aa"},
		{"text", nil, "text", ""},
		{"世界", []string{"界"}, "世", "界"},
		{"a\nb", []string{"\n"}, "a", "\n"},
		{"", []string{"x"}, "", ""},
		{"Observation: x", []string{"Observation:", "Obs"}, "", "Obs"},
	}
	for _, c := range cases {
		out, stop := stopWhole(c.text, c.stops)
		require.Equal(t, c.want, out)
		require.Equal(t, c.stop, stop)
		for n := 1; n <= max(1, len(c.text)); n++ {
			checkStop(t, c.text, c.stops, func() int { return n })
		}
	}
}

func TestStopMatcherAnySplit(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 0))
	random := func(n int) string {
		b := make([]byte, r.IntN(n))
		for i := range b {
			b[i] = "ab|"[r.IntN(3)]
		}
		return string(b)
	}
	for range 20000 {
		stops := make([]string, r.IntN(5))
		for i := range stops {
			stops[i] = random(6)
		}
		checkStop(t, random(30), stops, func() int { return 1 + r.IntN(5) })
	}
}

func FuzzStopMatcher(f *testing.F) {
	f.Add("hello world", "wor", "ld", uint64(3))
	f.Add("\xff\xfe\xff", "\xfe", "\xff\xff", uint64(9))
	f.Fuzz(func(t *testing.T, text, a, b string, split uint64) {
		if len(text) > 300 {
			return
		}
		checkStop(t, text, []string{a, b}, func() int {
			split = split*6364136223846793005 + 1442695040888963407
			return int(split>>61) + 1
		})
	})
}

func TestStopMatcherDoesNotAllocate(t *testing.T) {
	m := NewStopMatcher([]string{"</answer>", "\n\n\n"})
	parts := [][]byte{[]byte("hello"), []byte(" <"), []byte("/an"), []byte("other>"), []byte("\n\n"), []byte("x")}
	run := func() {
		for _, p := range parts {
			m.Push(p)
		}
	}
	run()
	require.Zero(t, testing.AllocsPerRun(100, run))
}

func BenchmarkStopMatcher(b *testing.B) {
	text := [][]byte{[]byte("hello"), []byte(" world"), []byte(", <b"), []byte("old"), []byte("\n")}
	for name, stops := range map[string][]string{"none": nil, "four": {"</answer>", "\n\nHuman:", "Observation:", "<|end|>"}} {
		b.Run(name, func(b *testing.B) {
			m := NewStopMatcher(stops)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				m.Push(text[i%len(text)])
			}
		})
	}
}
