package tokenizer

import (
	"encoding/base64"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestBoundWords(t *testing.T) {
	blob := make([]byte, 60000)
	rand.NewChaCha8([32]byte{7}).Read(blob)
	texts := map[string]string{
		"letters":  strings.Repeat("a", 50000),
		"equals":   strings.Repeat("=", 50000),
		"spaces":   strings.Repeat(" ", 50000) + "x",
		"newlines": strings.Repeat("\n", 20000),
		"digits":   strings.Repeat("7", 20000),
		"han":      strings.Repeat("世", 20000),
		"invalid":  strings.Repeat("\xff", 20000),
		"base64":   base64.StdEncoding.EncodeToString(blob),
		"mixed":    strings.Repeat("ab.", 20000),
		"marks":    strings.Repeat("e\u0301", 20000),
	}
	for name, text := range texts {
		t.Run(name, func(t *testing.T) {
			cuts := boundWords(text)
			require.NotEmpty(t, cuts)
			from := 0
			for _, cut := range append(cuts, len(text)) {
				require.Greater(t, cut, from)
				requireBounded(t, text[from:cut])
				if utf8.ValidString(text) {
					require.True(t, utf8.ValidString(text[from:cut]), "cut within a character")
				}
				from = cut
			}
			tk := New(newFakeVocab())
			toks, err := tk.EncodeText(text, TextOptions{})
			require.NoError(t, err)
			require.Equal(t, text, strings.Join(spell(tk, toks), ""))
		})
	}
}

func requireBounded(t *testing.T, text string) {
	t.Helper()
	word, same := 0, 0
	last := class(255)
	for _, r := range text {
		c := classOf(r)
		if word++; c == classSpace {
			word = 0
		}
		if same++; c != last {
			same = 1
		}
		last = c
		require.LessOrEqual(t, word, maxWordRun)
		require.LessOrEqual(t, same, maxClassRun)
	}
}

func TestBoundWordsPrefersALetterBeforeADigit(t *testing.T) {
	text := strings.Repeat("abc1", 5000)
	cuts := boundWords(text)
	require.NotEmpty(t, cuts)
	for _, cut := range cuts {
		require.Equal(t, "c1", text[cut-1:cut+1])
	}
}

func TestBoundWordsLeavesRealTextAlone(t *testing.T) {
	for _, text := range []string{
		"", strings.Repeat("The quick brown fox. ", 10000), strings.Repeat("世界，你好。", 2000) + "\n",
		strings.Repeat(strings.Repeat("x", maxClassRun)+" ", 3), strings.Repeat("\n\n\tif x {\n", 9000),
	} {
		require.Nil(t, boundWords(text))
	}
}
