// Package realtest holds the tests of tokenizer against real vocabularies. It
// is apart so that the tests of tokenizer itself need no C.
package realtest

import (
	"context"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"quern/cgo"
	"quern/tokenizer"

	"github.com/stretchr/testify/require"
)

var _ tokenizer.Vocab = (*cgo.Vocab)(nil)

// vocabularies are the two models the tests fetch and, where somebody put
// them, llama.cpp's vocabulary files.
func vocabularies(t *testing.T) []string {
	dir := os.Getenv("QUERN_MODELS")
	if dir == "" {
		cache, err := os.UserCacheDir()
		require.NoError(t, err)
		dir = filepath.Join(cache, "quern")
	}
	var found []string
	for _, pattern := range []string{
		"SmolLM2-135M-Instruct.Q4_1.gguf", "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf", filepath.Join("vocab", "ggml-vocab-*.gguf"),
	} {
		paths, err := filepath.Glob(filepath.Join(dir, pattern))
		require.NoError(t, err)
		found = append(found, paths...)
	}
	if len(found) == 0 {
		t.Skipf("no model in %s", dir)
	}
	return found
}

var loaded = map[string]*cgo.Model{}

func TestMain(m *testing.M) {
	code := m.Run()
	for _, model := range loaded {
		model.Close()
	}
	os.Exit(code)
}

func each(t *testing.T, f func(t *testing.T, v *cgo.Vocab)) {
	for _, path := range vocabularies(t) {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".gguf"), func(t *testing.T) {
			if loaded[path] == nil {
				m, err := cgo.LoadModel(context.Background(), path, cgo.LoadOptions{VocabOnly: true})
				if err != nil && strings.Contains(path, "ggml-vocab") {
					t.Skip(err) // newer than the linked llama.cpp
				}
				require.NoError(t, err)
				loaded[path] = m
			}
			f(t, loaded[path].Vocab())
		})
	}
}

// special are spellings of special tokens of v, a spread of them.
func special(v *cgo.Vocab) (all []string) {
	for i := range int32(v.Size()) {
		if (v.IsControl(i) || v.IsUserDefined(i)) && len(v.Piece(i)) > 0 {
			all = append(all, string(v.Piece(i)))
		}
	}
	if len(all) > 60 {
		r := rand.New(rand.NewPCG(1, 0))
		r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		all = all[:60]
	}
	return all
}

var plain = []string{
	"Hello", " hello", " world", "\n", "\n\n", " ", "   ", "\t", "user", "assistant\n", "don't", " it's", "1234567", "3.14",
	"{\"a\": [1, 2]}", "<", "<|", "|>", "</", ">", "_", "日本語", "ünïcödé", "😀👩‍👩‍👧", "func main() {\n\treturn\n}\n",
	"\u00a0", "\r\n", "...", "!!!", "e\u0301", "\u200b",
}

func randomText(r *rand.Rand, specials []string, n int) string {
	var b strings.Builder
	for range r.IntN(n) + 1 {
		switch s := specials; {
		case len(s) > 0 && r.IntN(3) == 0:
			b.WriteString(s[r.IntN(len(s))])
		case len(s) > 0 && r.IntN(8) == 0:
			one := s[r.IntN(len(s))]
			b.WriteString(one[r.IntN(len(one)):])
		default:
			b.WriteString(plain[r.IntN(len(plain))])
		}
	}
	return strings.ToValidUTF8(b.String(), "?")
}

func onePiece(t *testing.T, v *cgo.Vocab, text string) []int32 {
	toks, err := v.Tokenize(text, true)
	require.NoError(t, err)
	if v.AddBOS() && v.BOS() >= 0 && (len(toks) == 0 || toks[0] != v.BOS()) {
		toks = append([]int32{v.BOS()}, toks...)
	}
	return toks
}

func requireSame(t *testing.T, v *cgo.Vocab, want, got []int32, text string) {
	t.Helper()
	if len(want)+len(got) == 0 {
		return
	}
	require.Equal(t, want, got, "%q\nwant %q\ngot  %q", text, spell(v, want), spell(v, got))
}

func spell(v *cgo.Vocab, toks []int32) (out []string) {
	for _, tok := range toks {
		out = append(out, string(v.Piece(tok)))
	}
	return out
}

func TestEncodeEqualsOnePiece(t *testing.T) {
	each(t, func(t *testing.T, v *cgo.Vocab) {
		tk, r, specials := tokenizer.New(v), rand.New(rand.NewPCG(1, 0)), special(v)
		for range 150 {
			text := randomText(r, specials, 12)
			want := onePiece(t, v, text)
			for range 2 {
				got, err := tk.Encode([]tokenizer.Segment{{Text: text}})
				require.NoError(t, err)
				requireSame(t, v, want, got, text)
			}
		}
	})
}

func TestSegmentBordersLeaveNoTrace(t *testing.T) {
	each(t, func(t *testing.T, v *cgo.Vocab) {
		tk, r := tokenizer.New(v), rand.New(rand.NewPCG(2, 0))
		for range 100 {
			a, b, c := randomText(r, nil, 5), randomText(r, nil, 5), randomText(r, nil, 5)
			got, err := tk.Encode([]tokenizer.Segment{{Text: a}, {Text: b, Literal: true}, {Text: c}})
			require.NoError(t, err)
			requireSame(t, v, onePiece(t, v, a+b+c), got, a+b+c)
		}
	})
}

func TestLiteralNeverGivesSpecialTokens(t *testing.T) {
	each(t, func(t *testing.T, v *cgo.Vocab) {
		tk, r, specials := tokenizer.New(v), rand.New(rand.NewPCG(3, 0)), special(v)
		for range 150 {
			text := randomText(r, specials, 10)
			got, err := tk.Encode([]tokenizer.Segment{{Text: text, Literal: true}})
			require.NoError(t, err, "%q", text)
			if len(got) > 0 && v.AddBOS() && got[0] == v.BOS() {
				got = got[1:]
			}
			for _, tok := range got {
				piece := string(v.Piece(tok))
				if piece == "[UNK]" {
					continue // BERT's token for unknown words is a control token
				}
				require.False(t, v.IsControl(tok), "%q gives %q", text, piece)
				// A user-defined token of whitespace or one character is text.
				if v.IsUserDefined(tok) && strings.TrimSpace(piece) != "" {
					require.Equal(t, 1, utf8.RuneCountInString(piece), "%q gives %q", text, piece)
				}
			}
			plainToks, err := v.Tokenize(text, false)
			require.NoError(t, err)
			if text != strings.Join(spell(v, plainToks), "") {
				continue // the vocabulary changes text, or adds spaces
			}
			require.Equal(t, strings.TrimPrefix(text, " "), strings.TrimPrefix(strings.Join(spell(v, got), ""), " "))
		}
	})
}

func TestLiteralControlTextIsTheReferencesPlainText(t *testing.T) {
	each(t, func(t *testing.T, v *cgo.Vocab) {
		tk := tokenizer.New(v)
		for i := range int32(v.Size()) {
			if !v.IsControl(i) || len(v.Piece(i)) < 2 || i%7 != 0 && v.Size() > 100000 {
				continue
			}
			text := "quote " + string(v.Piece(i)) + " here"
			want, err := v.Tokenize(text, false)
			require.NoError(t, err)
			special := false
			for _, tok := range want {
				special = special || v.IsControl(tok) || v.IsUserDefined(tok)
			}
			if special {
				continue
			}
			got, err := tk.Encode([]tokenizer.Segment{{Text: text, Literal: true}})
			require.NoError(t, err)
			if v.AddBOS() {
				got = got[1:]
			}
			requireSame(t, v, want, got, text)
		}
	})
}

// The vectors that come with llama.cpp's vocabulary files are those of the
// models' own tokenizers.
func TestReferenceVectors(t *testing.T) {
	for _, path := range vocabularies(t) {
		in, err := os.ReadFile(path + ".inp")
		if err != nil || strings.Contains(path, "qwen35") { // the linked llama.cpp has no word pattern for it
			continue
		}
		out, err := os.ReadFile(path + ".out")
		require.NoError(t, err)
		texts := strings.Split(string(in), "\n__ggml_vocab_test__\n")
		lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
		t.Run(filepath.Base(path), func(t *testing.T) {
			m, err := cgo.LoadModel(context.Background(), path, cgo.LoadOptions{VocabOnly: true})
			if err != nil {
				t.Skip(err)
			}
			defer m.Close()
			tk := tokenizer.New(m.Vocab())
			require.LessOrEqual(t, len(lines), len(texts))
			for i, line := range lines {
				var want []int32
				for f := range strings.FieldsSeq(line) {
					id, err := strconv.Atoi(f)
					require.NoError(t, err)
					want = append(want, int32(id))
				}
				got, err := tk.EncodeText(texts[i], tokenizer.TextOptions{})
				require.NoError(t, err)
				requireSame(t, m.Vocab(), want, got, texts[i])
			}
		})
	}
}

// llama.cpp's word patterns recurse once a character; these would overflow the
// stack and end the process.
func TestOverlongWordsDoNotCrash(t *testing.T) {
	blob := make([]byte, 120_000)
	rand.NewChaCha8([32]byte{4}).Read(blob)
	each(t, func(t *testing.T, v *cgo.Vocab) {
		tk := tokenizer.New(v)
		for _, text := range []string{
			strings.Repeat("a", 200_000), strings.Repeat("=", 200_000), strings.Repeat(" ", 200_000) + "x",
			strings.Repeat("\n", 100_000), strings.Repeat("世", 100_000), strings.Repeat("7", 100_000),
			base64.StdEncoding.EncodeToString(blob), strings.Repeat("a.", 100_000), strings.Repeat("\U000E0041", 50_000),
		} {
			for _, literal := range []bool{false, true} {
				toks, err := tk.Encode([]tokenizer.Segment{{Text: text, Literal: literal}})
				require.NoError(t, err)
				require.NotEmpty(t, toks)
			}
		}
	})
}

func TestDecodedTextIsTheEncodedText(t *testing.T) {
	each(t, func(t *testing.T, v *cgo.Vocab) {
		tk, r := tokenizer.New(v), rand.New(rand.NewPCG(5, 0))
		toks, err := v.Tokenize("Hello\n  wörld", false)
		require.NoError(t, err)
		if tk.Detokenize(toks) != "Hello\n  wörld" {
			t.Skip("this vocabulary changes text")
		}
		for range 200 {
			text := randomText(r, nil, 10)
			toks, err := tk.EncodeText(text, tokenizer.TextOptions{})
			require.NoError(t, err)
			require.Equal(t, text, tk.Detokenize(toks))
			d, out := tk.NewDecoder(), ""
			for _, tok := range toks {
				got := d.Push(tok)
				require.True(t, utf8.Valid(got))
				out += string(got)
			}
			require.Equal(t, text, out+string(d.Flush()))
		}
	})
}

func TestConcurrentEncodeEqualsSequential(t *testing.T) {
	each(t, func(t *testing.T, v *cgo.Vocab) {
		r, specials := rand.New(rand.NewPCG(6, 0)), special(v)
		texts, want := make([]string, 60), make([][]int32, 60)
		for i := range texts {
			texts[i] = randomText(r, specials, 30)
			want[i] = onePiece(t, v, texts[i])
		}
		tk := tokenizer.NewWithCache(v, 32<<10) // small: hits, misses and evictions
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Go(func() {
				for n := range 60 {
					i := (n*(2*g+1) + g) % len(texts)
					got, err := tk.Encode([]tokenizer.Segment{{Text: texts[i]}})
					if err != nil || fmt.Sprint(got) != fmt.Sprint(want[i]) {
						t.Errorf("%q: %v, want %v (%v)", texts[i], got, want[i], err)
						return
					}
				}
			})
		}
		wg.Wait()
	})
}

func BenchmarkEncodeConversation(b *testing.B) {
	cache, err := os.UserCacheDir()
	require.NoError(b, err)
	path := filepath.Join(cache, "quern", "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf")
	if dir := os.Getenv("QUERN_MODELS"); dir != "" {
		path = filepath.Join(dir, filepath.Base(path))
	}
	if _, err := os.Stat(path); err != nil {
		b.Skip(err)
	}
	m, err := cgo.LoadModel(context.Background(), path, cgo.LoadOptions{VocabOnly: true})
	require.NoError(b, err)
	defer m.Close()
	var history strings.Builder
	for i := range 40 {
		fmt.Fprintf(&history, "<|im_start|>user\n%d %s<|im_end|>\n", i, strings.Repeat("The quick brown fox jumps. ", 20))
	}
	for name, bytes := range map[string]int{"cold": 0, "cached": 16 << 20} {
		b.Run(name, func(b *testing.B) {
			tk := tokenizer.NewWithCache(m.Vocab(), bytes)
			b.ReportAllocs()
			b.SetBytes(int64(history.Len()))
			for i := 0; b.Loop(); i++ {
				_, err := tk.Encode([]tokenizer.Segment{{Text: history.String() + fmt.Sprint(i)}})
				require.NoError(b, err)
			}
		})
	}
}
