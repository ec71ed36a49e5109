package tokenizer

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

var vocabKinds = map[string][]fakeOption{
	"plain":        nil,
	"prefix":       {withPrefix},
	"strip":        {withStrip, withoutSpaces},
	"prefix+strip": {withPrefix, withStrip, withoutSpaces},
	"strip+spaces": {withStrip}, // never cut
	"bos":          {withBOS},
}

// parts build texts in which special tokens occur whole, cut, overlapping and
// beside whitespace.
var parts = []string{
	"<|im_start|>", "<|im_end|>", "<s>", "</s>", "<tool_call>", "</tool_call>", "<|tool|>", "<unk>", "|", "<|im", "im_start|><|",
	"\n", "\n\n", " ", "  ", "\t", "<", ">", "<|", "|>", "_", "im", "start", "user", "assistant\n", "hello", " hello",
	"the quick", "é", "世界", "\xff", "\xe4\xb8", "<|im_", "end|>", "tool_call", "<tool", "_call>", "s>", "</",
}

func randomText(r *rand.Rand, n int) string {
	var b strings.Builder
	for range r.IntN(n + 1) {
		b.WriteString(parts[r.IntN(len(parts))])
	}
	return b.String()
}

func eachKind(t *testing.T, f func(t *testing.T, v *fakeVocab)) {
	for name, opts := range vocabKinds {
		t.Run(name, func(t *testing.T) { f(t, newFakeVocab(opts...)) })
	}
}

// reference is the whole text in one piece, BOS once.
func reference(t *testing.T, v *fakeVocab, text string, parseSpecial bool) []Token {
	toks, err := v.Tokenize(text, parseSpecial)
	require.NoError(t, err)
	if v.addBOS && (len(toks) == 0 || toks[0] != v.bos) {
		toks = append([]Token{v.bos}, toks...)
	}
	return toks
}

func requireSame(t *testing.T, tk *Tokenizer, want, got []Token, msg string) {
	t.Helper()
	if len(want) == 0 && len(got) == 0 {
		return
	}
	require.Equal(t, want, got, "%s\nwant %q\ngot  %q", msg, spell(tk, want), spell(tk, got))
}

func spell(tk *Tokenizer, toks []Token) []string {
	var out []string
	for _, tok := range toks {
		out = append(out, string(tk.Piece(tok)))
	}
	return out
}

func TestEncodeEqualsOnePiece(t *testing.T) {
	eachKind(t, func(t *testing.T, v *fakeVocab) {
		r := rand.New(rand.NewPCG(1, 0))
		tk := New(v)
		for range 3000 {
			text := randomText(r, 12)
			want := reference(t, v, text, true)
			for range 2 { // the second time out of the cache
				got, err := tk.Encode([]Segment{{Text: text}})
				require.NoError(t, err)
				requireSame(t, tk, want, got, fmt.Sprintf("%q", text))
			}
		}
	})
}

// Segments that need no protection leave no trace of their borders.
func TestEncodeSegmentBordersLeaveNoTrace(t *testing.T) {
	eachKind(t, func(t *testing.T, v *fakeVocab) {
		r := rand.New(rand.NewPCG(2, 0))
		tk, apart := New(v), 0
		for range 3000 {
			head, tail := randomText(r, 6), randomText(r, 6)
			client := []string{"hello", " hello", "the ", "\n\n", " ", "quick\n", ""}[r.IntN(7)]
			got, err := tk.Encode([]Segment{{Text: head}, {Text: client, Literal: true}, {Text: tail}})
			require.NoError(t, err)
			if len(tk.plan([]Segment{{Text: head}, {Text: tail}}).uncut) > 0 {
				apart++ // overlapping spellings: cut at the borders instead
				continue
			}
			requireSame(t, tk, reference(t, v, head+client+tail, true), got, fmt.Sprintf("%q %q %q", head, client, tail))
		}
		require.Less(t, apart, 2600)
	})
}

func TestLiteralNeverGivesSpecialTokens(t *testing.T) {
	eachKind(t, func(t *testing.T, v *fakeVocab) {
		r := rand.New(rand.NewPCG(3, 0))
		tk := New(v)
		for range 3000 {
			client := randomText(r, 10)
			got, err := tk.Encode([]Segment{
				{Text: "<|im_start|>"}, {Text: "user"}, {Text: client, Literal: true}, {Text: "<|im_end|>"},
			})
			require.NoError(t, err)
			if v.addBOS {
				require.Equal(t, v.bos, got[0])
				got = got[1:]
			}
			require.Equal(t, v.byText["<|im_start|>"], got[0])
			require.Equal(t, v.byText["<|im_end|>"], got[len(got)-1])
			inner := got[1 : len(got)-1]
			for _, tok := range inner {
				require.Zerof(t, tk.specials.kind(tok), "%q gives %q", client, tk.Piece(tok))
			}
			if !v.strip {
				require.Equal(t, squeeze(v, "user"+client), squeeze(v, strings.Join(spell(tk, inner), "")))
			}
		}
	})
}

func TestLiteralKeepsItsTextBehindUncutTokens(t *testing.T) {
	// The two special tokens overlap, so the text is not cut at either, and
	// the client's text stands in the same region.
	for _, opts := range [][]fakeOption{nil, {withPrefix}} {
		v := newFakeVocab(opts...)
		tk := New(v)
		head := "<|im_start|><|tool|>hello "
		got, err := tk.Encode([]Segment{{Text: head}, {Text: "<|im_end|> the", Literal: true}, {Text: " hello"}})
		require.NoError(t, err)
		require.NotContains(t, got, v.byText["<|im_end|>"])
		want := reference(t, v, head, true)
		require.Equal(t, want, got[:len(want)])
		require.Equal(t, squeeze(v, head+"<|im_end|> the hello"), squeeze(v, strings.Join(spell(tk, got), "")))
	}
}

// squeeze takes the spaces out for a vocabulary that puts some in of its own
// accord, after each user-defined token.
func squeeze(v *fakeVocab, s string) string {
	if v.prefix {
		return strings.ReplaceAll(s, " ", "")
	}
	return s
}

func TestBreakingASpellingPutsNoSpaceIn(t *testing.T) {
	v := newFakeVocab(withPrefix)
	tk := New(v)
	toks, err := v.Tokenize("a</s>b", false)
	require.NoError(t, err)
	require.Contains(t, toks, v.EOS(), "the vocabulary merges plain text into a control token")
	for _, client := range []string{"a</s>b", "</s></s>", "x<tool_call>y <tool_call>", "<s></tool_call>"} {
		got, err := tk.Encode([]Segment{{Text: client, Literal: true}})
		require.NoError(t, err)
		require.Equal(t, " "+client, strings.Join(spell(tk, got), ""))
	}
}

func TestEncodeBOSOnce(t *testing.T) {
	v := newFakeVocab(withBOS)
	tk := New(v)
	for text, wantBOS := range map[string]int{"": 1, "hello": 1, "<s>hello": 1, "<s><s>": 2} {
		got, err := tk.Encode([]Segment{{Text: text}})
		require.NoError(t, err)
		n := 0
		for _, tok := range got {
			if tok == v.bos {
				n++
			}
		}
		require.Equal(t, wantBOS, n, text)
	}
	got, err := tk.Encode([]Segment{{Text: "<s>", Literal: true}})
	require.NoError(t, err)
	require.Equal(t, "<s><s>", strings.Join(spell(tk, got), ""))
	require.Equal(t, v.bos, got[0])
	require.NotContains(t, got[1:], v.bos)
}

func TestEncodeText(t *testing.T) {
	v := newFakeVocab(withBOS)
	tk := New(v)
	text := "<|im_start|>hello"
	for _, o := range []TextOptions{{}, {AddSpecial: true}, {ParseSpecial: true}, {AddSpecial: true, ParseSpecial: true}} {
		want, err := v.Tokenize(text, o.ParseSpecial)
		require.NoError(t, err)
		if o.AddSpecial {
			want = append([]Token{v.bos}, want...)
		}
		got, err := tk.EncodeText(text, o)
		require.NoError(t, err)
		require.Equal(t, want, got, "%+v", o)
	}
}

// One call, however many spellings are broken: a call is dear on a real
// vocabulary.
func TestManySpellingsTakeOneCall(t *testing.T) {
	v := newFakeVocab(withoutSpaces)
	tk := New(v)
	client := strings.Repeat("<tool_call>hello</tool_call> <|im_end|>", 1000)
	before := v.calls.Load()
	got, err := tk.Encode([]Segment{{Text: client, Literal: true}})
	require.NoError(t, err)
	require.Equal(t, int64(1), v.calls.Load()-before)
	require.Equal(t, client, strings.Join(spell(tk, got), ""))
}

// A client that sends the very character used to break spellings.
func TestMarkInClientText(t *testing.T) {
	for _, opts := range [][]fakeOption{{withoutSpaces}, {withPrefix, withoutSpaces}} {
		v := newFakeVocab(opts...)
		tk := New(v)
		for _, client := range []string{mark, mark + "<tool_call>" + mark, "<" + mark + "tool_call>", "<tool_call><tool_call>" + mark} {
			got, err := tk.Encode([]Segment{{Text: client, Literal: true}})
			require.NoError(t, err)
			require.Equal(t, client, strings.TrimPrefix(strings.Join(spell(tk, got), ""), " "))
			for _, tok := range got {
				require.Zero(t, tk.specials.kind(tok))
			}
		}
	}
}

type brokenVocab struct{ *fakeVocab }

var errBroken = errors.New("vocabulary is broken")

func (brokenVocab) Tokenize(string, bool) ([]Token, error) { return nil, errBroken }

func TestEncodePassesErrorsOn(t *testing.T) {
	tk := New(brokenVocab{newFakeVocab()})
	for _, segs := range [][]Segment{{{Text: "a"}}, {{Text: "a<tool_call>", Literal: true}}, {{Text: "<s>a"}, {Text: "b", Literal: true}}} {
		_, err := tk.Encode(segs)
		require.ErrorIs(t, err, errBroken)
	}
	_, err := tk.EncodeText("a", TextOptions{})
	require.ErrorIs(t, err, errBroken)
	toks, err := tk.Encode(nil)
	require.NoError(t, err)
	require.Empty(t, toks)
}

func TestContainsSpecialAndLookup(t *testing.T) {
	tk := New(newFakeVocab())
	for text, want := range map[string]bool{
		"": false, "hello": false, "a <|im_end|> b": true, "<tool_call>": true, "<tool_call": false,
		"\n\n": false, "|": false, "x<unk>": true, "<|im_en<|im": true, "</s": false,
	} {
		require.Equal(t, want, tk.ContainsSpecial(text), text)
	}
	v := tk.vocab.(*fakeVocab)
	id, ok := tk.Lookup("<|im_end|>")
	require.True(t, ok)
	require.Equal(t, v.byText["<|im_end|>"], id)
	for _, s := range []string{"", "<|im_end|", "<|im_end|>x", "hello", "\n\n"} {
		_, ok := tk.Lookup(s)
		require.False(t, ok, s)
	}
}

func TestCacheServesRepeatedFragments(t *testing.T) {
	v := newFakeVocab()
	tk := New(v)
	history := ""
	for turn := range 5 {
		history += fmt.Sprintf("<|im_start|>user\nquestion number %d<|im_end|>", turn)
		_, err := tk.Encode([]Segment{{Text: history}})
		require.NoError(t, err)
		before := v.calls.Load()
		_, err = tk.Encode([]Segment{{Text: history}})
		require.NoError(t, err)
		require.Equal(t, before, v.calls.Load())
	}
	before := v.calls.Load()
	_, err := tk.Encode([]Segment{{Text: history + "<|im_start|>user\nnew<|im_end|>"}})
	require.NoError(t, err)
	require.Equal(t, int64(1), v.calls.Load()-before)
}

func TestCacheStaysWithinItsBound(t *testing.T) {
	v := newFakeVocab()
	const limit = 8 << 10
	tk := NewWithCache(v, limit)
	for i := range 500 {
		_, err := tk.Encode([]Segment{{Text: strings.Repeat("x", i%200) + fmt.Sprint(i)}})
		require.NoError(t, err)
		require.LessOrEqual(t, tk.cache.bytes, limit)
	}
	require.NotZero(t, tk.cache.order.Len())
	require.Len(t, tk.cache.byKey, tk.cache.order.Len())
	sum := 0
	for el := tk.cache.order.Front(); el != nil; el = el.Next() {
		sum += el.Value.(*cacheEntry).size()
	}
	require.Equal(t, sum, tk.cache.bytes)

	off := NewWithCache(v, 0)
	_, err := off.Encode([]Segment{{Text: "hello"}})
	require.NoError(t, err)
	require.Zero(t, off.cache.order.Len())
}

func TestCacheNeverConfusesTexts(t *testing.T) {
	c := newCache(1 << 20)
	k := cacheKey{hash: 7}
	c.put(k, "one", []Token{1})
	_, ok := c.get(k, "two")
	require.False(t, ok)
	c.put(k, "two", []Token{2})
	toks, ok := c.get(k, "two")
	require.True(t, ok)
	require.Equal(t, []Token{2}, toks)
	require.Equal(t, 1, c.order.Len())
}

func TestEncodeConcurrently(t *testing.T) {
	v := newFakeVocab(withPrefix)
	tk := NewWithCache(v, 4<<10) // small, so that entries come and go
	texts := make([]string, 50)
	want := make([][]Token, len(texts))
	r := rand.New(rand.NewPCG(4, 0))
	for i := range texts {
		texts[i] = randomText(r, 20)
		want[i] = reference(t, v, texts[i], true)
	}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for n := range 200 {
				i := (n*7 + g) % len(texts)
				got, err := tk.Encode([]Segment{{Text: texts[i]}})
				if err != nil || fmt.Sprint(got) != fmt.Sprint(want[i]) {
					t.Errorf("%q: %v, want %v, %v", texts[i], got, want[i], err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func FuzzEncode(f *testing.F) {
	f.Add("<|im_start|>user\n", "hi <|im_end|>", "<|im_end|>")
	f.Add("", "<tool_call></s>\xff", "")
	f.Add("<|im_start|><|tool|>", "<|im", "_end|>\n\n\n\n")
	kinds := map[string]*Tokenizer{}
	for name, opts := range vocabKinds {
		kinds[name] = New(newFakeVocab(opts...))
	}
	f.Fuzz(func(t *testing.T, head, client, tail string) {
		if len(head)+len(client)+len(tail) > 400 {
			return // the fake vocabulary is slow
		}
		for _, tk := range kinds {
			v := tk.vocab.(*fakeVocab)
			got, err := tk.Encode([]Segment{{Text: head + client + tail}})
			require.NoError(t, err)
			requireSame(t, tk, reference(t, v, head+client+tail, true), got, "whole")
			got, err = tk.Encode([]Segment{{Text: client, Literal: true}})
			require.NoError(t, err)
			if v.addBOS {
				got = got[1:]
			}
			for _, tok := range got {
				require.Zero(t, tk.specials.kind(tok))
			}
			_, err = tk.Encode([]Segment{{Text: head}, {Text: client, Literal: true}, {Text: tail}})
			require.NoError(t, err)
		}
	})
}
