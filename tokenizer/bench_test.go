package tokenizer

import (
	"fmt"
	"strings"
	"testing"
)

// BenchmarkEncode compares a conversation of 40 messages encoded anew with one
// of which all but the last message is known.
func BenchmarkEncode(b *testing.B) {
	var history strings.Builder
	for i := range 40 {
		fmt.Fprintf(&history, "<|im_start|>user\n%d %s<|im_end|>\n", i, strings.Repeat("the quick hello world ", 20))
	}
	v := newTableVocab(newFakeVocab())
	for name, size := range map[string]int{"cold": 0, "cached": defaultCacheBytes} {
		b.Run(name, func(b *testing.B) {
			tk := NewWithCache(v, size)
			b.ReportAllocs()
			b.SetBytes(int64(history.Len()))
			for i := 0; b.Loop(); i++ {
				if _, err := tk.Encode([]Segment{{Text: history.String() + fmt.Sprint(i)}}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkContainsSpecial(b *testing.B) {
	tk := New(newFakeVocab())
	text := strings.Repeat("func main() { if a < b { return } } ", 300)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if tk.ContainsSpecial(text) {
			b.Fatal("found one")
		}
	}
}
