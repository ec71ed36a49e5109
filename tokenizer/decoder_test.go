package tokenizer

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// decodeWhole is the WHATWG UTF-8 decoder: a state machine over bytes, with
// one U+FFFD for each maximal part of an ill-formed sequence.
func decodeWhole(b []byte) string {
	var out []rune
	need, seen, lower, upper := 0, 0, byte(0x80), byte(0xBF)
	var r rune
	reset := func() { need, seen, lower, upper, r = 0, 0, 0x80, 0xBF, 0 }
	for i := 0; i < len(b); i++ {
		c := b[i]
		if need == 0 {
			switch {
			case c < 0x80:
				out = append(out, rune(c))
			case c >= 0xC2 && c <= 0xDF:
				need, r = 1, rune(c&0x1F)
			case c >= 0xE0 && c <= 0xEF:
				if c == 0xE0 {
					lower = 0xA0
				}
				if c == 0xED {
					upper = 0x9F
				}
				need, r = 2, rune(c&0xF)
			case c >= 0xF0 && c <= 0xF4:
				if c == 0xF0 {
					lower = 0x90
				}
				if c == 0xF4 {
					upper = 0x8F
				}
				need, r = 3, rune(c&7)
			default:
				out = append(out, utf8.RuneError)
			}
			continue
		}
		if c < lower || c > upper {
			reset()
			out = append(out, utf8.RuneError)
			i--
			continue
		}
		lower, upper = 0x80, 0xBF
		r = r<<6 | rune(c&0x3F)
		if seen++; seen == need {
			out = append(out, r)
			reset()
		}
	}
	if need != 0 {
		out = append(out, utf8.RuneError)
	}
	return string(out)
}

// bytesVocab has a token for each byte string given, after the 256 bytes.
func bytesVocab(pieces ...string) *Tokenizer {
	v := newFakeVocab()
	for _, p := range pieces {
		v.add(p, "")
	}
	return New(newTableVocab(v))
}

var utf8Samples = []string{
	"", "abc", "é", "世界", "😀", "a😀b", "\xff", "\x80\x80", "\xe4\xb8", "\xe4\xb8a", "\xf0\x9f\x98", "\xf0\x9f\x98\x80\xf0",
	"\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe0\x80\x80", "\xc3\xc3\xa9", "\xf0\x9f\xe4\xb8\x96", "\xef\xbf\xbd", "\xe4\xb8\xe4\xb8\x96",
}

func checkDecode(t *testing.T, b []byte, sizes func() int) {
	t.Helper()
	var pieces []string
	for rest := b; len(rest) > 0; {
		n := min(max(sizes(), 1), len(rest))
		pieces, rest = append(pieces, string(rest[:n])), rest[n:]
	}
	tk := bytesVocab(pieces...)
	push, app := tk.NewDecoder(), tk.NewDecoder()
	var text, appended []byte
	first := Token(tk.vocab.Size() - len(pieces))
	for i := range pieces {
		got := push.Push(first + Token(i))
		require.True(t, utf8.Valid(got))
		require.LessOrEqual(t, push.held, 3)
		text = append(text, got...)
		appended = app.Append(appended, first+Token(i))
	}
	text = append(text, push.Flush()...)
	appended = append(appended, app.Flush()...)
	require.Equal(t, decodeWhole(b), string(text), "%q in %q", b, pieces)
	require.Equal(t, string(text), string(appended))
	require.Empty(t, push.Flush())
}

func TestDecoderAnySplitGivesTheWhole(t *testing.T) {
	for _, s := range utf8Samples {
		for n := 1; n <= max(len(s), 1); n++ {
			checkDecode(t, []byte(s), func() int { return n })
		}
	}
	r := rand.New(rand.NewPCG(5, 0))
	for range 500 {
		var b strings.Builder
		for range r.IntN(8) {
			b.WriteString(utf8Samples[r.IntN(len(utf8Samples))])
		}
		checkDecode(t, []byte(b.String()), func() int { return 1 + r.IntN(4) })
	}
}

func FuzzDecoder(f *testing.F) {
	for _, s := range utf8Samples {
		f.Add([]byte(s), uint64(0x1234))
	}
	f.Fuzz(func(t *testing.T, b []byte, split uint64) {
		if len(b) > 200 {
			return
		}
		checkDecode(t, b, func() int {
			split = split*6364136223846793005 + 1442695040888963407
			return int(split>>61) + 1
		})
	})
}

func TestDecoderControlTokens(t *testing.T) {
	v := newFakeVocab()
	tk := New(v)
	toks := []Token{v.byText["<|im_start|>"], v.byText["hello"], 0xC3, v.byText["<|im_end|>"], 0xA9, v.byText["<tool_call>"], v.byText["<unk>"]}
	d := tk.NewDecoder()
	var text []byte
	for _, tok := range toks {
		text = append(text, d.Push(tok)...)
	}
	require.Equal(t, "helloé<tool_call>", string(text))
	require.Equal(t, "<|im_start|>hello\uFFFD<|im_end|>\uFFFD<tool_call><unk>", tk.Detokenize(toks))
	require.Equal(t, "helloé<tool_call>", tk.DetokenizeWith(toks, DecodeOptions{}))
	for _, bad := range []Token{-1, Token(v.Size()), 1 << 30} {
		require.Empty(t, d.Push(bad))
		require.Nil(t, tk.Piece(bad))
	}
}

func TestDecoderLeadingSpace(t *testing.T) {
	v := newFakeVocab(withPrefix)
	tk := New(v)
	for text, want := range map[string]string{"hello": "hello", " hello": " hello", "  ": "  "} {
		toks, err := tk.EncodeText(text, TextOptions{})
		require.NoError(t, err)
		require.Equal(t, want, tk.DetokenizeWith(toks, DecodeOptions{}))
		require.Equal(t, " "+want, tk.DetokenizeWith(toks, DecodeOptions{KeepSpace: true}))
	}
	d := tk.NewDecoder()
	require.Empty(t, d.Push(v.byText["<s>"]))
	require.Equal(t, "hello", string(d.Push(v.byText[" hello"])), "the first text, not the first token")
	require.Equal(t, " hello", string(d.Push(v.byText[" hello"])))

	plain := New(newFakeVocab()).NewDecoder()
	require.Equal(t, " hello", string(plain.Push(v.byText[" hello"])))
}

func TestDecoderDoesNotAllocate(t *testing.T) {
	v := newTableVocab(newFakeVocab())
	d := New(v).NewDecoder()
	toks := []Token{v.byText["hello"], 0xE4, 0xB8, 0x96, v.byText["世"], 'a', v.byText["<|im_end|>"], 0xFF}
	buf := make([]byte, 0, 64)
	run := func() {
		for _, tok := range toks {
			d.Push(tok)
			buf = d.Append(buf[:0], tok)
		}
	}
	run()
	require.Zero(t, testing.AllocsPerRun(100, run))
}

func BenchmarkDecoder(b *testing.B) {
	v := newTableVocab(newFakeVocab())
	d := New(v).NewDecoder()
	toks := []Token{v.byText["hello"], v.byText[" the"], 'a', v.byText["世"], 0xE4, 0xB8, 0x96, v.byText["quick"]}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		d.Push(toks[i%len(toks)])
	}
}
