package cgo

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const jsonGrammar = `
root   ::= object
value  ::= object | array | string | number | "true" | "false" | "null"
object ::= "{" ws ( pair ( "," ws pair )* )? "}"
pair   ::= string ":" ws value
array  ::= "[" ws ( value ( "," ws value )* )? "]"
string ::= "\"" ( [^"\\\x00-\x1f] | "\\" ["\\/bfnrt] )* "\""
number ::= "-"? ( "0" | [1-9] [0-9]* ) ( "." [0-9]+ )?
ws     ::= " "?
`

// accepted tells how much of a text a grammar takes, and whether it could end
// there.
func accepted(t *testing.T, p SamplerParams, text string) (taken string, ends bool) {
	t.Helper()
	v := smolModel(t).Vocab()
	toks, err := v.Tokenize(text, false)
	require.NoError(t, err)
	n, err := newSampler0(t, p).Accepts(toks)
	require.NoError(t, err)
	for _, k := range toks[:n] {
		taken += string(v.Piece(k))
	}
	m, err := newSampler0(t, p).Accepts(append(toks[:n:n], v.EOS()))
	require.NoError(t, err)
	return taken, m == n+1
}

func TestGrammarAccepts(t *testing.T) {
	tests := []struct {
		grammar, text, want string
		ends                bool
	}{
		{jsonGrammar, `{"a": [1, -2.5, {"b": "c"}], "d": null}`, `{"a": [1, -2.5, {"b": "c"}], "d": null}`, true},
		{jsonGrammar, `{"a": 01}`, `{"a": 0`, false},
		{jsonGrammar, `hello`, ``, false},
		{jsonGrammar, `{"ü": "日本語 🙂"}`, `{"ü": "日本語 🙂"}`, true},
		{`root ::= "yes" | "no"`, "no", "no", true},
		{`root ::= "yes" | "no"`, "nope", "n", false},
		{`root ::= "a"*`, "", "", true},
		{`root ::= [0-9]{2,4}`, "12345", "1234", true},
		{`root ::= "x" # a comment
		# another`, "x", "x", true},
		{`root ::= "\u00e4\U0001F642\x41"`, "ä🙂A", "ä🙂A", true},
	}
	for _, tt := range tests {
		got, ends := accepted(t, SamplerParams{Grammar: tt.grammar}, tt.text)
		require.Equal(t, tt.want, got, tt.grammar)
		require.Equal(t, tt.ends, ends, tt.grammar)
	}
}

// Tokens that were not sampled lead the grammar on as sampled ones do.
func TestAccept(t *testing.T) {
	x := afterPrompt(t, "Say it.")
	v := smolModel(t).Vocab()
	tokens := func(text string) []int32 {
		toks, err := v.Tokenize(text, false)
		require.NoError(t, err)
		return toks
	}
	s := newSampler0(t, SamplerParams{Grammar: `root ::= "yes, " ( "one" | "two" )`})
	require.NoError(t, s.Accept(tokens("yes, ")))
	o := x.draw(t, s, 0)
	require.NoError(t, o.Err)
	require.Contains(t, "one two", string(v.Piece(o.Token)))
	require.Error(t, s.Accept(tokens("three")))
	require.Error(t, newSampler0(t, SamplerParams{}).Accept([]int32{-1}))

	free := newSampler0(t, SamplerParams{Presence: 100})
	liked := x.draw(t, newSampler0(t, SamplerParams{}), 0).Token
	require.NoError(t, free.Accept([]int32{liked}))
	require.NotEqual(t, liked, x.draw(t, free, 0).Token, "penalties count them")
}

func TestBadGrammars(t *testing.T) {
	deep := func(n int) string { return "root ::= " + strings.Repeat("(", n) + `"a"` + strings.Repeat(")", n) }
	chain := func(n int) string {
		var sb strings.Builder
		sb.WriteString("root ::= r0\n")
		for i := range n {
			fmt.Fprintf(&sb, "r%d ::= r%d\n", i, i+1)
		}
		fmt.Fprintf(&sb, "r%d ::= \"a\"\n", n)
		return sb.String()
	}
	doubling := func(n int) string {
		var sb strings.Builder
		sb.WriteString("root ::= r0 \"x\"\n")
		for i := range n {
			fmt.Fprintf(&sb, "r%d ::= r%d | r%d\n", i, i+1, i+1)
		}
		fmt.Fprintf(&sb, "r%d ::= \"\"\n", n)
		return sb.String()
	}
	tests := []struct{ name, text, want string }{
		{"no rule", "# nothing", "has no rules"},
		{"no root", `start ::= "a"`, "has no rule 'root'"},
		{"undefined", `root ::= other`, "rule 'other' is not defined"},
		{"syntax", "root ::= \"a\"\nb ::= ]x", "line 2: expecting newline or end at ']x'"},
		{"no arrow", `root = "a"`, "line 1: expecting ::= at '= "},
		{"open string", `root ::= "abc`, "unexpected end of input"},
		{"open class", `root ::= [abc`, "unexpected end of input"},
		{"open group", `root ::= ("a"`, "expecting ')'"},
		{"bad escape", `root ::= "\q"`, "unknown escape"},
		{"bad hex", `root ::= "\x4"`, "expecting 2 hex chars"},
		{"star of nothing", `root ::= * "a"`, "expecting preceding item"},
		{"left recursion", `root ::= root "a" | "b"`, "rule 'root' is left-recursive"},
		{"indirect", "root ::= a\na ::= b\nb ::= a \"x\" | \"y\"", "left-recursive"},
		{"hidden by a nullable", "root ::= e root \"a\" | \"b\"\ne ::= f\nf ::= \"x\"?", "left-recursive"},
		{"star of a nullable", "root ::= a*\na ::= b\nb ::= \"x\"?", "left-recursive"},
		{"repetition", `root ::= "a"{100000}`, "more than 2000 repetitions"},
		{"repetition of many digits", `root ::= "a"{99999999999999999999}`, "more than 2000 repetitions"},
		{"nested repetition", `root ::= "a"{2000}{2000}{2000}`, "too large"},
		{"backwards", `root ::= "a"{5,2}`, "backwards"},
		{"deep", deep(100000), "nested deeper"},
		{"long chain", chain(100000), "too deep"},
		{"exponential", doubling(60), "too ambiguous"},
		{"token", `root ::= <[99999999]>`, "token 99999999 is not in the vocabulary"},
		{"long", "root ::= \"a\"\n#" + strings.Repeat("x", 5<<20), "longer than"},
		{"stray", `root ::= "a" }`, "expecting newline or end"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			start := time.Now()
			s, err := NewSampler(smolModel(t), SamplerParams{Grammar: tt.text})
			require.Nil(t, s)
			require.ErrorContains(t, err, tt.want)
			require.ErrorIs(t, err, ErrArgument)
			require.Less(t, len(err.Error()), 300)
			require.Less(t, time.Since(start), 5*time.Second)
		})
	}
	for _, ok := range []string{deep(100), chain(500), `root ::= ("a"?){0,200}`, `root ::= "a"{2000}`, "root ::= \"\"", `root ::= [^]`} {
		s, err := NewSampler(smolModel(t), SamplerParams{Grammar: ok})
		require.NoError(t, err)
		s.Close()
	}
}

func TestGrammarForcesJSON(t *testing.T) {
	prompt := chatPrompt(t, "Tell me about Paris.")
	for _, p := range []SamplerParams{{}, {Temperature: 1, Seed: 3}, {Temperature: 1, TopK: 40, TopP: 0.9, Seed: 4}, {Temperature: 1.2, MinP: 0.05, Seed: 5}} {
		p.Grammar = `root ::= "{\"city\": \"" [A-Za-z ]{1,20} "\", \"people\": " [1-9] [0-9]{0,7} "}"`
		c := newContext(t, ContextParams{})
		out := complete(t, c, 0, prompt, 80, p)
		v := smolModel(t).Vocab()
		require.True(t, v.IsEOG(out[len(out)-1]), "the grammar ends, so does the text: %q", detok(t, out))
		var got struct {
			City   string
			People int
		}
		require.NoError(t, json.Unmarshal([]byte(detok(t, out)), &got), "%q", detok(t, out))
		require.NotEmpty(t, got.City)
		require.Positive(t, got.People)
	}
}

// Free text up to the trigger, which is the first that the grammar gets. It
// may lie across tokens.
func TestLazyGrammar(t *testing.T) {
	g := `root ::= "<call>" [0-9]+ "</call>"`
	p := SamplerParams{Grammar: g, LazyPatterns: []string{"<call>"}}
	for text, want := range map[string]string{
		`anything "goes" {here`:      `anything "goes" {here`,
		"first <call>12</call>":      "first <call>12</call>",
		"first <call>12</call> more": "first <call>12</call>",
		"first <call>one":            "first <call>",
		"a < b, <cal, <<call>7":      "a < b, <cal, <<call>7",
	} {
		got, _ := accepted(t, p, text)
		require.Equal(t, want, got)
	}
	_, ends := accepted(t, p, "no call")
	require.True(t, ends, "ending is free before the trigger")
	_, ends = accepted(t, p, "<call>12")
	require.False(t, ends)

	v := smolModel(t).Vocab()
	start, err := v.Tokenize("<|im_start|>", true)
	require.NoError(t, err)
	require.Len(t, start, 1)
	digits, err := v.Tokenize("x12", false)
	require.NoError(t, err)
	s := newSampler0(t, SamplerParams{Grammar: `root ::= "<|im_start|>" "1"`, LazyTokens: start})
	n, err := s.Accepts(append([]int32{digits[0], start[0]}, digits[1:]...))
	require.NoError(t, err)
	require.Equal(t, 3, n, "x, the trigger and 1, but not 2")
}

// A class of characters matches the name of a control token, too, but the token
// would leave no text: only a grammar that spells it out may have it.
func TestControlTokensInGrammars(t *testing.T) {
	v := smolModel(t).Vocab()
	start, err := v.Tokenize("<|im_start|>", true)
	require.NoError(t, err)
	for g, want := range map[string]int{
		`root ::= [^"]*`: 0, `root ::= .*`: 0, `root ::= "<|im_start|>" .*`: 1, `root ::= <|im_start|>`: 1,
		`root ::= <[1]>`: 1, `root ::= !<[5]>`: 1,
	} {
		n, err := newSampler0(t, SamplerParams{Grammar: g}).Accepts(start)
		require.NoError(t, err)
		require.Equal(t, want, n, g)
	}
}

// A grammar that no token fits, or that has run out, fails its row alone.
func TestGrammarFailsItsRowOnly(t *testing.T) {
	c := newContext(t, ContextParams{SeqMax: 2, Unified: true})
	v := smolModel(t).Vocab()
	dead := newSampler0(t, SamplerParams{Grammar: `root ::= "a" [^\U00000000-\U0010FFFF]`})
	fine := newSampler0(t, SamplerParams{Grammar: `root ::= "a"`})
	b := c.Batch()
	var outs [2][]int32
	for pos := range int32(3) {
		b.N = 0
		b.Add(1000, pos, 0, 0, dead)
		b.Add(1000, pos, 1, 0, fine)
		require.NoError(t, c.Step())
		for i := range outs {
			if b.Out[i].Err == nil {
				outs[i] = append(outs[i], b.Out[i].Token)
			}
		}
		if pos > 0 {
			require.ErrorContains(t, b.Out[0].Err, "no token fits the grammar")
			require.Equal(t, int32(-1), b.Out[0].Token)
			require.True(t, v.IsEOG(b.Out[1].Token), "done: nothing but an end")
		}
	}
	require.Equal(t, "a", string(v.Piece(outs[0][0])))
	require.Len(t, outs[0], 1)
	require.Len(t, outs[1], 3)
}

// The quick search for all allowed tokens finds what llama.cpp finds, whatever
// the state, also in the middle of a character.
func TestAllAllowed(t *testing.T) {
	tests := []struct{ grammar, text string }{
		{jsonGrammar, `{"ü": ["日本語 🙂", -12.5, true], "x\"y": null}`},
		{`root ::= [^a-z]+ "end"`, "ABC 🙂 12 end"},
		{`root ::= .*`, "x🙂"},
		{`root ::= "日本" [à-ü]* [^x]`, "日本éü!"},
		{`root ::= <|im_start|> !<[17]> [0-9]{2} | "<|im_start|>" "ab"`, "<|im_start|>ab"},
		{`root ::= ""`, ""},
	}
	for _, v := range []*Vocab{smolModel(t).Vocab(), vocabOf(t, qwen)} {
		for _, tt := range tests {
			toks, err := v.Tokenize(tt.text, true)
			require.NoError(t, err)
			s, err := NewSampler(v.m, SamplerParams{Grammar: tt.grammar})
			require.NoError(t, err)
			for i := 0; ; i++ {
				differ, allowed, err := s.compareMasks()
				require.NoError(t, err)
				require.Zero(t, differ, "%s after %d tokens of %q", tt.grammar, i, tt.text)
				require.Positive(t, allowed)
				if i == len(toks) {
					break
				}
				n, err := s.Accepts(toks[i : i+1])
				require.NoError(t, err)
				require.Equal(t, 1, n, "%s: token %d of %q", tt.grammar, i, tt.text)
			}
			s.Close()
		}
	}
}

// Bytes that make no character are no text, whatever a class has in it.
func TestGrammarTakesWholeCharacters(t *testing.T) {
	v := smolModel(t).Vocab()
	byteTokens := map[byte]int32{}
	for i := range int32(v.Size()) {
		if p := v.Piece(i); len(p) == 1 {
			byteTokens[p[0]] = i
		}
	}
	tests := []struct {
		bytes string
		taken int // before the end
		ends  bool
	}{
		{"\xf0\x9f\x99\x82", 4, true},
		{"\xf0\x9f\x99", 3, false},
		{"\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf", 10, true},
		{"\xe0\xa0\x80\xc2\x80", 5, true},
		{"\xed\xa0\x80", 1, false}, // a surrogate
		{"\xf4\x90\x80\x80", 1, false},
		{"\xe0\x80\x80", 1, false}, // the long form of a short one
		{"\xf0\x80\x80\x80", 1, false},
		{"\xc0\x80", 0, true},
		{"\xf5\x80\x80\x80", 0, true},
		{"\x80", 0, true},
		{"\xc3x", 1, false},
	}
	for _, grammar := range []string{`root ::= [^"]*`, `root ::= .*`} {
		for _, tt := range tests {
			s := newSampler0(t, SamplerParams{Grammar: grammar})
			for i := range len(tt.bytes) {
				token, ok := byteTokens[tt.bytes[i]]
				if !ok { // the vocabulary lacks bytes that no text has
					require.Equal(t, tt.taken, i, "%q", tt.bytes)
					break
				}
				n, err := s.Accepts([]int32{token})
				require.NoError(t, err)
				differ, _, err := s.compareMasks()
				require.NoError(t, err)
				require.Zero(t, differ, "%q", tt.bytes[:i+n])
				if n == 0 {
					require.Equal(t, tt.taken, i, "%s %q", grammar, tt.bytes)
					break
				}
				require.Less(t, i, tt.taken, "%s %q", grammar, tt.bytes)
			}
			n, err := s.Accepts([]int32{v.EOS()})
			require.NoError(t, err)
			require.Equal(t, tt.ends, n == 1, "%s %q", grammar, tt.bytes)
		}
	}
}

func TestAmbiguousGrammarIsBounded(t *testing.T) {
	// Every a can be split in many ways, so the states multiply.
	s := newSampler0(t, SamplerParams{Grammar: "root ::= x root y | x\nx ::= \"a\" | \"aa\" | \"aaa\"\ny ::= \"b\"? \"c\"?"})
	v := smolModel(t).Vocab()
	toks, err := v.Tokenize(strings.Repeat("a", 3000), false)
	require.NoError(t, err)
	start := time.Now()
	_, err = s.Accepts(toks)
	require.Less(t, time.Since(start), 20*time.Second)
	require.ErrorContains(t, err, "too ambiguous or too deeply nested")
	_, err = s.Accepts(toks[:1])
	require.ErrorContains(t, err, "failed before")
}
