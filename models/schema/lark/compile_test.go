package lark

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"quern/models/schema"
	"quern/models/schema/gbnf"
)

// mustCompile compiles a grammar, one that is ambiguous, too.
func mustCompile(t testing.TB, grammar string) *gbnf.Grammar {
	t.Helper()
	c, err := compile(grammar, "input")
	require.NoError(t, err, grammar)
	g, err := gbnf.Parse(c.GBNF())
	require.NoError(t, err, c.GBNF())
	return g
}

// asInput is a text as a model writes it for a custom tool.
func asInput(text string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(text); err != nil {
		panic(err)
	}
	return `{"input": ` + strings.NewReplacer(`\u0008`, `\b`, `\u000c`, `\f`).Replace(strings.TrimSpace(b.String())) + `}`
}

// patchGrammar describes edits of files, with the notation that agents use for
// theirs: names from common, literals with escapes, expressions that may match
// nothing, aliases.
const patchGrammar = `start: begin section+ end   // the whole
begin: "=== Patch" LF
end: "=== Done" LF?

# what happens to a file
section: create | drop | edit
create: "=== Create " path LF added+
drop: "=== Drop " path LF
edit: "=== Edit " path LF moved? (place | line)+ last?
path: /(.+)/
added: "+" /(.*)/ LF -> line
moved: "=== As " path LF
place: ("@@" | "@@ " /(.+)/) LF
line: ("+" | "-" | " ") /(.*)/ LF
last: "=== End" LF

%import common.LF
`

const calcGrammar = `?start: sum
?sum: product | sum "+" product -> add | sum "-" product -> sub
?product: atom | product "*" atom | product "/" atom
?atom: NUMBER | "-" atom | NAME | "(" sum ")"
%import common.CNAME -> NAME
%import common.NUMBER
%import common.WS_INLINE
%ignore WS_INLINE
`

var cases = []struct {
	name, grammar string
	yes, no       []string
}{
	{"literal", `start: "a\"b\\\n"`, []string{"a\"b\\\n"}, []string{"a\"b\\n", ""}},
	{"string in single case", `start: "Select"i`, []string{"select", "SELECT", "sElEcT"}, []string{"selec"}},
	{"escapes", `start: "\x41\u00e9\U0001F600\d"`, []string{`Aé😀\d`}, []string{"A"}},
	{"range", `start: "a".."f"~2`, []string{"af", "cc"}, []string{"ag", "a", "aaa"}},
	{"range of others", `start: "à".."ü"+`, []string{"éè"}, []string{"e"}},
	{"expression", `start: /[a-c]+\/x|"/`, []string{"abc/x", `"`}, []string{"x", "/x"}},
	{"flags", "start: /a.b/is", []string{"A\nB", "a b"}, []string{"a\n"}},
	{"a dot has no line break", "start: /a.b/", []string{"a b"}, []string{"a\nb", "A b"}},
	{"escapes of an expression", `start: /\u00e9\U0001F600\x41\t/`, []string{"é😀A\t"}, []string{"é"}},
	{"operators", `start: "a"? "b"* "c"+`, []string{"c", "abbcc", "ac"}, []string{"", "ab", "aac"}},
	{"counts", `start: "a"~2 "b"~1..2 "c"{0,1} "d"{2} "e"{1,}`, []string{"aabdde", "aabbcddee"}, []string{"aabcdd", "abdde", "aabccdde"}},
	{"group and maybe", `start: ("a" | "b") ["c" | "d"] "."`, []string{"a.", "bd."}, []string{"c.", "."}},
	{"empty alternative", "start: \"x\" rest\nrest: | \"y\" rest\n", []string{"x", "xyy"}, []string{"", "y"}},
	{"several lines", "start: \"a\"\n     | \"b\"  -> other\n\n     | (\"c\"\n        | \"d\")\n", []string{"a", "b", "c", "d"}, []string{"ab"}},
	{"continued line", "start: \"a\" \\\n \"b\"", []string{"ab"}, []string{"a"}},
	{"names and priorities", "start.2: ?x\n", nil, nil},
	{"prefixes", "!start: _a b\n_a.3: \"a\"\n?b.-1: /b/\n", []string{"ab"}, nil},
	{"terminals", "start: WORD (\" \" WORD)*\nWORD.2: LETTER+ | _X\nLETTER: \"a\"..\"c\"\n_X: \"x\" | /y{2}/\n", []string{"ab", "abc x yy"}, []string{"y", "ab ", "ax"}},
	{"hyphens", "start: my-rule\nmy-rule: \"a\"\n", []string{"a"}, nil},
	{"comments", "// a\nstart: \"#\" /\\/\\// # b\n// c", []string{"#//"}, nil},
	{"template", "start: _sep{pair, \",\"}\n_sep{x, s}: x (s x)*\npair: \"a\" | _sep{\"b\", \"-\"}\n", []string{"a", "a,a", "b-b,a"}, []string{"a-a", "b,"}},
	{"template of a template", "start: two{two{A}}\ntwo{x}: x x\nA: \"a\"", []string{"aaaa"}, []string{"aa"}},
	{"ignored", "start: \"a\" \"b\"\n%ignore \" \"\n%ignore \"#\"", []string{"ab", "a b", "a # b ", "a#b"}, []string{" ab", "a.b"}},
	{"imports", "start: (INT | ESCAPED_STRING) NEWLINE\n%import common (INT, ESCAPED_STRING)\n%import common.NEWLINE", []string{"12\n", "\"a\\\"b\"\r\n"}, []string{"\"a\n", "1"}},
	{"left recursion", `start: start "," ITEM | ITEM` + "\nITEM: /[a-z]/", []string{"a", "a,b,c"}, []string{"", ",a", "a,"}},
	{"left recursion of two", "start: a\na: b \"x\" | \"p\"\nb: a \"y\" | \"q\"\n", []string{"p", "qx", "pyx", "qxyx"}, []string{"q", "py", "x"}},
	{"left recursion behind nothing", "start: E? start \"x\" | \"y\"\nE: \"e\"", []string{"y", "yx", "eyx", "eyxx", "eeyxx"}, []string{"x", "e", "eey"}},
	{"recursion of what may be empty", "start: start start | \"a\" | \n", []string{"", "a", "aaa"}, []string{"b"}},
	{"unit cycle", "start: a\na: b | \"x\"\nb: a | \"y\"\n", []string{"x", "y"}, []string{"", "xy"}},
	{"repeated emptiness", "start: (/a*/ [\"b\"])* \"c\"", []string{"c", "aac", "bbabc"}, []string{"", "a"}},
	{"operators of any side", `start: start "+" start | "-" start | /\d+/`, []string{"1", "1+2+3", "-1+-2"}, []string{"+1", "1+"}},
	{"calculator", calcGrammar, []string{"1", "1+2*3", "-(a_1 - 2.5e3) / 4", "((1))"}, []string{"", "1+", "(1", "1 2"}},
	{"endless branch", "start: \"a\" | loop\nloop: \"b\" loop\n", []string{"a"}, []string{"b", "ba"}},
	{"unicode", "start: /[^\\x00-\\x7f]+/ \"日本\"", []string{"äö日本"}, []string{"日本", "a日本"}},
	{"patch", patchGrammar,
		[]string{"=== Patch\n=== Drop a b\n=== Done", "=== Patch\n=== Create x.go\n+\n+\t\"hi\" \\n\n=== Edit y\n=== As z\n@@ f\n-a\n+b\n c\n=== End\n=== Done\n"},
		[]string{"", "=== Patch\n=== Done", "=== Patch\n=== Create x\n=== Done", "=== Patch\n=== Edit y\na\n=== Done", "=== Patch\n=== Drop \n=== Done"}},
}

func TestCompile(t *testing.T) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if c.yes == nil {
				_, err := Compile(c.grammar, "input")
				require.Error(t, err)
				return
			}
			g := mustCompile(t, c.grammar)
			for _, s := range c.yes {
				require.True(t, g.Accepts(asInput(s)), "must accept %q", s)
			}
			for _, s := range c.no {
				require.False(t, g.Accepts(asInput(s)), "must refuse %q", s)
			}
		})
	}
}

// What the rules derive follows the definitions, read another way.
func TestWalksFollow(t *testing.T) {
	for _, c := range cases {
		src, err := parse(c.grammar)
		if err != nil || c.yes == nil {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			d, endless := gbnf.NewDeriver(mustCompile(t, c.grammar), 1)
			require.Empty(t, endless)
			for range 20 {
				var call struct{ Input string }
				s := d.Sentence(60)
				require.NoError(t, json.Unmarshal([]byte(s), &call), s)
				require.True(t, follows(src, call.Input), "%q", call.Input)
			}
		})
	}
}

func TestFaults(t *testing.T) {
	for grammar, want := range map[string]string{
		"":                                      "there is no rule start",
		"start":                                 "line 1: expected :, got the end",
		"start: \"a":                            `line 1: " is not closed`,
		"\nstart: /a":                           "line 2: / is not closed",
		"start: (\"a\"":                         "line 1: expected ), got the end",
		"start: [\"a\"":                         "line 1: expected ], got the end",
		"start: \"a\")":                         "line 1: unexpected )",
		"start: *":                              "line 1: unexpected *",
		"start: \"a\" b: \"c\"":                 "line 1: unexpected :",
		"start: \"a\"+*":                        "line 1: unexpected *",
		"start: b\n":                            "line 1: the rule b is not defined",
		"start: \"a\"\nx: Y":                    "line 2: the terminal Y is not defined",
		"start: A\nA: b\nb: \"x\"":              "line 2: a terminal can't refer to the rule b",
		"start: A\nA: \"x\" A":                  "line 2: the terminal A refers to itself",
		"start: \"a\"\nstart: \"b\"":            "line 2: start is defined twice",
		"start{x}: x":                           "there is no rule start",
		"start: t\nt{x}: x":                     "line 1: the rule t takes 1 arguments, not 0",
		"start: t{\"a\", \"b\"}\nt{x}: x":       "line 1: the rule t takes 1 arguments, not 2",
		"start: /(a/":                           "line 1: /(a/ is not a regular expression",
		"start: /[z-a]/":                        "line 1: /[z-a]/ is not a regular expression",
		"start: \"b\"..\"a\"":                   "backwards",
		"start: \"ab\"..\"c\"":                  "a range is of two characters",
		"start: \"a\"~3..2":                     "repetition from 3 to 2 is backwards",
		"start: \"a\"~x":                        "expected a count, got x",
		"start: \"\\xg1\"":                      "bad escape",
		"start: ^":                              "unexpected '^'",
		"start: \"a\"\n%import common.NOTHING":  "line 2: common has no NOTHING",
		"start: \"a\"\n%import common.INT -> x": "line 2: x is not the name of a terminal",
		"start: \"a\"\n% ignore \" \"":          "% without a name",
		"start: \"a\" start":                    "no text follows the grammar",
		"\xff":                                  "not UTF-8",
		"start: \"a\"\n%ignore start":           "line 2: a terminal can't refer to the rule start",
		"start.x: \"a\"":                        "expected a priority, got x",
		"start: \"a\" -> \"b\"":                 "expected the name of an alias",
	} {
		_, err := Compile(grammar, "input")
		require.ErrorContains(t, err, want, grammar)
		require.False(t, schema.IsBeyond(err), "%q: %v", grammar, err)
		var e *Error
		require.ErrorAs(t, err, &e)
	}
}

func TestBeyond(t *testing.T) {
	deep := "start: " + strings.Repeat("(", 100) + `"a"` + strings.Repeat(")", 100)
	doubling := "start: A00\nA30: \"ab\"\n"
	rules := "start: r00\nr30: \"a\"\n"
	for i := range 30 {
		doubling += strings.NewReplacer("N", itoa(i), "M", itoa(i+1)).Replace("AN: AM AM\n")
		rules += strings.NewReplacer("N", itoa(i), "M", itoa(i+1)).Replace("rN: rM \"b\" | rM \"c\"\n")
	}
	var many strings.Builder
	many.WriteString("start: ")
	for i := range 2000 {
		fmt.Fprintf(&many, "/[ab]*a[ab]{9}%d/ ", i)
	}
	for grammar, want := range map[string]string{
		many.String():                 "the terminals are too large together",
		"start: /^a/":                 "anchor",
		"start: /a\\b/":               "anchor",
		"start: /a(?!b)/":             "is not held",
		"start: /(a)\\1/":             "is not held",
		"start: /a/x":                 "the flag x",
		"%declare A\nstart: A":        "%declare is not held",
		"%override start: \"a\"":      "%override is not held",
		"%import .other.X\nstart: X":  "only terminals of common",
		"%import python.X\nstart: X":  "only terminals of common",
		"start: %json {}":             "%json is not held",
		"start: <tok>":                "not of Lark's notation",
		"start[lazy]: /a/":            "options of a rule",
		"start: A\nA{x}: \"a\"":       "is a template",
		"start: t{t}\nt{x}: x{\"a\"}": "takes 1 arguments, not 0",
		"start: t{\"a\"}\nt{x}: \"b\" t{y{x}}\ny{x}: x x": "more than",
		"start: \"a\"~3000":                          "more than 2000 repetitions",
		"start: /[ab]*a[ab]{14}/":                    "too large",
		"start: " + strings.Repeat("\"a\" ", 30_000): "exceeds",
		"start: " + strings.Repeat("A ", 21_000):     "more than 20000 parts",
		deep:                                         "nested deeper",
		doubling:                                     "exceeds 4000 bytes",
		rules:                                        "ambiguous",
		"start: x start y | x\nx: \"a\" | \"aa\" | \"aaa\"\ny: [\"b\"] [\"c\"]": "ambiguous",
	} {
		from := time.Now()
		_, err := Compile(grammar, "input")
		require.ErrorContains(t, err, want, clip(grammar))
		if !strings.Contains(want, "arguments") {
			require.True(t, schema.IsBeyond(err), "%s: %v", clip(grammar), err)
		}
		if d := time.Since(from); d > time.Second {
			t.Log(clip(grammar), d)
		}
	}
}

func itoa(n int) string { return string(rune('0'+n/10)) + string(rune('0'+n%10)) }

// A run of white space that is ignored has an end.
func TestIgnoredBlanksAreBounded(t *testing.T) {
	g := mustCompile(t, "start: \"a\" \"b\"\n%import common.WS\n%ignore WS")
	require.True(t, g.Accepts(asInput("a"+strings.Repeat(" ", maxBlank)+"b\n")))
	require.False(t, g.Accepts(asInput("a"+strings.Repeat(" ", maxBlank+1)+"b")))
}

// A recorded request of an agent, where one lies beside the checkout.
func TestRecordedGrammar(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "shared", "requests", "codex_known_slug.json"))
	if err != nil {
		t.Skip("needs ../shared/requests:", err)
	}
	var body struct {
		Tools []struct {
			Format struct{ Syntax, Definition string }
		}
	}
	require.NoError(t, json.Unmarshal(raw, &body))
	found := false
	for _, tool := range body.Tools {
		if tool.Format.Syntax != "lark" {
			continue
		}
		found = true
		src, err := parse(tool.Format.Definition)
		require.NoError(t, err)
		d, endless := gbnf.NewDeriver(mustCompile(t, tool.Format.Definition), 2)
		require.Empty(t, endless)
		for range 30 {
			var call struct{ Input string }
			require.NoError(t, json.Unmarshal([]byte(d.Sentence(120)), &call))
			require.True(t, follows(src, call.Input), call.Input)
		}
	}
	require.True(t, found)
}

func FuzzCompile(f *testing.F) {
	for _, c := range cases {
		f.Add(c.grammar)
	}
	f.Add("start: t{t{A}} | start? start\nt{x}: x x* | \nA: /a*/i\n%ignore A")
	f.Fuzz(func(t *testing.T, grammar string) {
		from := time.Now()
		c, err := Compile(grammar, "input")
		if d := time.Since(from); d > 10*time.Second {
			t.Fatalf("took %s", d)
		}
		if err != nil {
			var e *Error
			require.ErrorAs(t, err, &e)
			require.Less(t, len(err.Error()), 400)
			return
		}
		g, err := gbnf.Parse(c.GBNF())
		require.NoError(t, err)
		require.NoError(t, g.CheckCost())
	})
}

func BenchmarkCompile(b *testing.B) {
	for name, grammar := range map[string]string{"patch": patchGrammar, "calculator": calcGrammar} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := Compile(grammar, "input"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
