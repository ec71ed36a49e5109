package testmodel

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// Token types as GGUF numbers them.
const (
	typeNormal  = 1
	typeControl = 3
	typeUser    = 4
	typeUnused  = 5
)

// vocab is a byte-level byte-pair vocabulary.
type vocab struct {
	texts    []string // what a token says
	coded    []string // how the file spells it
	types    []int32
	merges   []string
	scripted int // normal tokens from here on stand outside the merges
	ids      map[string]int
}

// byteRunes is the usual printable spelling of all bytes.
var byteRunes = func() (runes [256]rune) {
	next := rune(256)
	for b := range runes {
		switch {
		case b >= '!' && b <= '~', b >= 0xa1 && b <= 0xac, b >= 0xae:
			runes[b] = rune(b)
		default:
			runes[b] = next
			next++
		}
	}
	return runes
}()

func encode(text string) string {
	var b strings.Builder
	for i := range len(text) {
		b.WriteRune(byteRunes[text[i]])
	}
	return b.String()
}

func newVocab() vocab {
	v := vocab{ids: map[string]int{}}
	for b := range 256 {
		v.add(string([]byte{byte(b)}), string(byteRunes[b]), typeNormal)
	}
	v.learn()
	v.scripted = len(v.texts)
	for _, t := range call {
		v.add(t, encode(t), typeNormal)
	}
	for _, t := range controls {
		v.add(t, t, typeControl)
	}
	for _, t := range marks {
		v.add(t, t, typeUser)
	}
	for len(v.texts)%32 != 0 {
		v.add("", "<|unused"+string(rune('A'+len(v.texts)%32))+"|>", typeUnused)
	}
	return v
}

func (v *vocab) add(text, coded string, kind int32) {
	if _, ok := v.ids[coded]; ok {
		return
	}
	v.ids[coded] = len(v.texts)
	v.texts = append(v.texts, text)
	v.coded = append(v.coded, coded)
	v.types = append(v.types, kind)
}

// id finds a token by its text.
func (v *vocab) id(text string) int {
	if id, ok := v.ids[text]; ok && v.types[id] != typeNormal {
		return id
	}
	id, ok := v.ids[encode(text)]
	if !ok {
		panic("no token " + text) // the script and the corpus disagree
	}
	return id
}

var wordPattern = regexp.MustCompile(`/?[A-Za-z]+| ?[A-Za-z]+| ?[0-9]| ?[^\sA-Za-z0-9]+|\s`)

// learn merges pairs, most frequent first, until every word of the corpus is
// one token. Ties go to the pair that sorts last, so the result is fixed.
func (v *vocab) learn() {
	count := map[string]int{}
	var words [][]string
	var counts []int
	for _, w := range wordPattern.FindAllString(corpus, -1) {
		if count[w]++; count[w] == 1 {
			words = append(words, strings.Split(encode(w), ""))
			counts = append(counts, 0)
		}
	}
	for i, w := range words {
		counts[i] = count[decode(strings.Join(w, ""))]
	}
	for {
		pairs := map[[2]string]int{}
		var best [2]string
		for i, w := range words {
			for j := range len(w) - 1 {
				pairs[[2]string{w[j], w[j+1]}] += counts[i]
			}
		}
		for p, n := range pairs {
			if m := pairs[best]; n > m || n == m && (p[0] > best[0] || p[0] == best[0] && p[1] > best[1]) {
				best = p
			}
		}
		if len(pairs) == 0 {
			return
		}
		v.merges = append(v.merges, best[0]+" "+best[1])
		v.add(decode(best[0]+best[1]), best[0]+best[1], typeNormal)
		for i := range words {
			words[i] = merge(words[i], best)
		}
	}
}

// merge joins every occurrence of the pair in place.
func merge(word []string, pair [2]string) []string {
	out := word[:0]
	for i := 0; i < len(word); i++ {
		if i+1 < len(word) && word[i] == pair[0] && word[i+1] == pair[1] {
			out = append(out, pair[0]+pair[1])
			i++
			continue
		}
		out = append(out, word[i])
	}
	return out
}

func decode(coded string) string {
	b := make([]byte, 0, utf8.RuneCountInString(coded))
	for _, r := range coded {
		for c, q := range byteRunes {
			if q == r {
				b = append(b, byte(c))
				break
			}
		}
	}
	return string(b)
}
