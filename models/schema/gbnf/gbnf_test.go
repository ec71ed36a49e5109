package gbnf_test

import (
	"strings"
	"testing"

	"quern/models/schema/gbnf"

	"github.com/stretchr/testify/require"
)

func TestAccepts(t *testing.T) {
	for _, c := range []struct {
		grammar  string
		yes, not []string
	}{
		{`root ::= "a" [b-d]* "e"`, []string{"ae", "abcde"}, []string{"", "a", "aee", "ax"}},
		{"root ::= x{2,3} | \"q\"\nx ::= [0-9] # digit\n", []string{"12", "123", "q"}, []string{"1", "1234", "qq"}},
		{`root ::= "\"" ([^"\\] | "\\" ["\\])+ "\""`, []string{`"x"`, `"\""`}, []string{`""`, `"\"`}},
		{`root ::= ("a" root)? "b"`, []string{"b", "abb"}, []string{"", "ba"}},
		{"root ::= | \"x\" root", []string{"", "xxx"}, []string{"y"}},
		{"root ::= .{2}", []string{"日本", "ab"}, []string{"日"}},
		{`root ::= "\u00e9\U0001F600\x41\t"`, []string{"é😀A\t"}, []string{"é"}},
	} {
		g, err := gbnf.Parse(c.grammar)
		require.NoError(t, err, c.grammar)
		for _, s := range c.yes {
			require.True(t, g.Accepts(s), "%s must accept %q", c.grammar, s)
		}
		for _, s := range c.not {
			require.False(t, g.Accepts(s), "%s must refuse %q", c.grammar, s)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for _, s := range []string{
		"", "a ::= \"x\"", "root ::= x", "root := \"x\"", "root ::= \"x", "root ::= [a", "root ::= *", "root ::= (\"a\"",
		"root ::= \"a\"{3,2}", "root ::= \"a\"{0,2001}", "root ::= root \"a\"", "root ::= x root\nx ::= \"a\"?", `root ::= "\q"`,
		"root ::= \"a\" |\nb ::= \"c\"", // the newline after | is skipped, so b is a reference
	} {
		_, err := gbnf.Parse(s)
		require.Error(t, err, "%q", s)
	}
}

func TestDerivedSentencesAreAccepted(t *testing.T) {
	g, err := gbnf.Parse("root ::= \"[\" (v (\",\" v){0,4})? \"]\"\nv ::= root | [0-9]+ | \"\\\"\" [^\"]* \"\\\"\"")
	require.NoError(t, err)
	d, endless := gbnf.NewDeriver(g, 7)
	require.Empty(t, endless)
	long := 0
	for range 300 {
		s := d.Sentence(60)
		require.True(t, g.Accepts(s), s)
		long = max(long, len(s))
	}
	require.Greater(t, long, 20)
	_, endless = gbnf.NewDeriver(mustParse(t, "root ::= \"a\" root"), 1)
	require.Equal(t, "root", endless)
}

func TestPeak(t *testing.T) {
	m := gbnf.NewMatcher(mustParse(t, `root ::= "ab" | "ac" | "ad"`))
	require.Equal(t, 3, m.Peak())
	require.True(t, m.Feed("a"))
	require.False(t, m.CanEnd())
	require.False(t, m.Feed("x"))
}

func FuzzParse(f *testing.F) {
	f.Add(`root ::= "a" [b-d]* ("e" | root)? .{1,2}`)
	f.Add("root ::= | x\nx ::= [^a\\x00-\\x1f]+ # c")
	f.Fuzz(func(t *testing.T, src string) {
		if len(src) > 500 || strings.Count(src, "{") > 2 {
			return
		}
		_, _ = gbnf.Parse(src)
	})
}

func mustParse(t *testing.T, src string) *gbnf.Grammar {
	t.Helper()
	g, err := gbnf.Parse(src)
	require.NoError(t, err)
	return g
}
