package cgo

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func vocabOf(t testing.TB, name string) *Vocab {
	t.Helper()
	m, err := LoadModel(context.Background(), modelPath(t, name), LoadOptions{VocabOnly: true})
	require.NoError(t, err)
	t.Cleanup(m.Close)
	return m.Vocab()
}

func join(v *Vocab, toks []int32) string {
	var sb strings.Builder
	for _, k := range toks {
		sb.Write(v.Piece(k))
	}
	return sb.String()
}

func TestVocabTable(t *testing.T) {
	v := smolModel(t).Vocab()
	require.Equal(t, 49152, v.Size())
	require.Equal(t, "<|im_start|>", string(v.Piece(1)))
	require.True(t, v.IsControl(1))
	require.False(t, v.IsControl(1000) || v.IsUserDefined(1000) || v.IsByte(1000) || v.IsUnknown(1000))
	require.Equal(t, int32(1), v.BOS())
	require.Equal(t, int32(2), v.EOS())
	require.True(t, v.IsEOG(2))
	require.False(t, v.IsEOG(1000))
	require.False(t, v.AddBOS() || v.AddEOS())
	for _, k := range []int32{-1, 49152, 1 << 30, -1 << 31} {
		require.Nil(t, v.Piece(k))
		require.False(t, v.IsControl(k) || v.IsEOG(k))
	}
	q := vocabOf(t, qwen)
	for b := range utf8.RuneSelf {
		toks, err := q.Tokenize(string(rune(b)), false)
		require.NoError(t, err)
		require.Equal(t, string(rune(b)), join(q, toks))
	}
	require.Equal(t, 151936, q.Size())
	require.Equal(t, "<|im_end|>", string(q.Piece(151645)))
	require.True(t, q.IsEOG(151645) && q.IsEOG(151643))
	toks, err := q.Tokenize("<tool_call>", true)
	require.NoError(t, err)
	require.Len(t, toks, 1)
	require.Equal(t, "<tool_call>", string(q.Piece(toks[0])))
}

func texts(n int) []string {
	r := rand.New(rand.NewPCG(1, 9))
	parts := []string{"Hello", " world", "\n\n", "  ", "naïve", "日本語", "🙂", "12345", "don't", "<|im_end|>", "func main() {", "\t", "ÀÉ", "_x9", "…", "\u0301", "\r\n", "<tool_call>", "'s"}
	out := make([]string, n)
	for i := range out {
		var sb strings.Builder
		for range r.IntN(60) {
			sb.WriteString(parts[r.IntN(len(parts))])
		}
		out[i] = sb.String()
	}
	return out
}

func TestTokenizeRoundTrip(t *testing.T) {
	for _, v := range []*Vocab{smolModel(t).Vocab(), vocabOf(t, qwen)} {
		for _, text := range texts(100) {
			toks, err := v.Tokenize(text, false)
			require.NoError(t, err)
			require.Equal(t, text, join(v, toks))
			for _, k := range toks {
				require.False(t, v.IsControl(k), "plain text becomes no control token")
			}
			toks, err = v.Tokenize(text, true)
			require.NoError(t, err)
			require.Equal(t, text, join(v, toks))
		}
	}
}

func TestTokenizeAtOnce(t *testing.T) {
	for _, v := range []*Vocab{smolModel(t).Vocab(), vocabOf(t, qwen)} {
		in := texts(60)
		want := make([][]int32, len(in))
		for i, s := range in {
			var err error
			want[i], err = v.Tokenize(s, i%2 == 0)
			require.NoError(t, err)
		}
		var wg sync.WaitGroup
		bad := make(chan string, 100)
		for g := range 16 {
			wg.Go(func() {
				for k := range in {
					i := (k*7 + g*31) % len(in)
					got, err := v.Tokenize(in[i], i%2 == 0)
					if err != nil || fmt.Sprint(got) != fmt.Sprint(want[i]) {
						select {
						case bad <- in[i]:
						default:
						}
					}
				}
			})
		}
		wg.Wait()
		require.Empty(t, bad)
	}
}

// Long runs overflow the stack of llama.cpp's pre-tokenizer unless they are
// kept from it; they must neither crash, nor lose text, nor take for ever.
func TestLongRuns(t *testing.T) {
	for _, v := range []*Vocab{smolModel(t).Vocab(), vocabOf(t, qwen)} {
		for _, unit := range []string{" ", "a", "\n", "!", "日", "aB9_", "<|im_end|>", "e\u0301"} {
			for _, size := range []int{shallowRun + 1, 30_000, deepRun + 10} {
				text := strings.Repeat(unit, size/len(unit)+1)
				start := time.Now()
				for _, special := range []bool{false, true} {
					toks, err := v.Tokenize(text, special)
					require.NoError(t, err)
					require.Len(t, join(v, toks), len(text), "%q %d", unit, size)
					require.Equal(t, text, join(v, toks))
					if special && strings.HasPrefix(unit, "<|") {
						require.Len(t, toks, len(text)/len(unit), "no cut goes through a special token")
					}
				}
				require.Less(t, time.Since(start), 30*time.Second)
			}
		}
	}
}

// Below the limit at which runs are cut, a deep stack changes nothing.
func TestDeepStackIsExact(t *testing.T) {
	v := vocabOf(t, qwen)
	word := strings.Repeat("abc1", shallowRun/4)
	long := "begin " + word + "x end 's\n"
	require.Greater(t, longestRun(long), shallowRun)
	deep, err := v.Tokenize(long, false)
	require.NoError(t, err)
	shallow, err := v.tokenize(nil, long, false, false)
	require.NoError(t, err)
	require.Equal(t, shallow, deep)
}

func TestInvalidUTF8(t *testing.T) {
	v := vocabOf(t, qwen)
	for _, text := range []string{"\xff", "a\xc3", "\xed\xa0\x80", "ok\x80\x81ok", "\xf0\x9f\x99"} {
		toks, err := v.Tokenize(text, false)
		require.NoError(t, err)
		require.Equal(t, strings.ToValidUTF8(join(v, toks), "?"), join(v, toks), "the output is UTF-8")
	}
	start := time.Now()
	_, err := v.Tokenize(strings.Repeat("\xff", 200_000), false)
	require.NoError(t, err)
	require.Less(t, time.Since(start), 10*time.Second)
	toks, err := v.Tokenize("a\x00b", false)
	require.NoError(t, err)
	require.Equal(t, "a\x00b", join(v, toks))
}

func TestTextLimit(t *testing.T) {
	v := smolModel(t).Vocab()
	_, err := v.Tokenize(strings.Repeat("x ", MaxText/2+1), false)
	require.ErrorIs(t, err, ErrArgument)
	toks, err := v.Tokenize("", true)
	require.NoError(t, err)
	require.Empty(t, toks)
	start := time.Now()
	toks, err = v.Tokenize(strings.Repeat("word ", 200_000), false)
	require.NoError(t, err)
	require.Len(t, toks, 200_001)
	t.Logf("1 MB in %v", time.Since(start))
}

func BenchmarkTokenize(b *testing.B) {
	v := vocabOf(b, qwen)
	text := strings.Repeat("The quick brown fox jumps over the lazy dog, 123 times.\n", 200)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		_, _ = v.Tokenize(text, true)
	}
}
