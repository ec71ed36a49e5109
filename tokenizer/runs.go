package tokenizer

import (
	"unicode"
	"unicode/utf8"
)

// llama.cpp splits text into words by std::regex for many vocabularies, which
// recurses once a character: a word of some 40,000 characters overflows an
// 8 MiB stack and takes the process along. Text is therefore cut where one
// word could grow beyond these bounds, which real text does not reach.
const (
	maxClassRun = 4096  // characters of one class in a row
	maxWordRun  = 16384 // characters without whitespace in a row
)

type class byte

const (
	classSpace class = iota
	classLetter
	classNumber
	classOther
)

func classOf(r rune) class {
	if r < utf8.RuneSelf {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z':
			return classLetter
		case r >= '0' && r <= '9':
			return classNumber
		case isSpace(byte(r)):
			return classSpace
		}
		return classOther
	}
	switch {
	case unicode.IsLetter(r), unicode.IsMark(r):
		return classLetter
	case unicode.IsNumber(r):
		return classNumber
	case unicode.IsSpace(r):
		return classSpace
	}
	return classOther
}

// boundWords returns where text is to be cut, nil for text without over-long
// words. A word run is cut between a letter and a number if it has such a
// place in its second half, since every word pattern ends a word there.
func boundWords(text string) []int {
	if len(text) <= maxClassRun {
		return nil
	}
	var cuts []int
	var last class
	classRun, wordRun, border := 0, 0, 0
	for i, r := range text {
		c := classOf(r)
		if c != last {
			if last == classLetter && c == classNumber && wordRun > maxWordRun/2 {
				border = i
			}
			classRun = 0
		}
		if c == classSpace {
			wordRun, border = 0, 0
		}
		if classRun == maxClassRun || wordRun == maxWordRun {
			if wordRun == maxWordRun && border > 0 {
				cuts = append(cuts, border)
				wordRun = utf8.RuneCountInString(text[border:i])
			} else {
				cuts = append(cuts, i)
				classRun, wordRun = 0, 0
			}
			border = 0
		}
		classRun++
		if c != classSpace {
			wordRun++
		}
		last = c
	}
	return cuts
}

func (t *Tokenizer) tokenizeBounded(text string, parseSpecial bool) ([]Token, error) {
	cuts := boundWords(text)
	if cuts == nil {
		return t.vocab.Tokenize(text, parseSpecial)
	}
	var toks []Token
	from := 0
	for _, cut := range append(cuts, len(text)) {
		part, err := t.vocab.Tokenize(text[from:cut], parseSpecial)
		if err != nil {
			return nil, err
		}
		toks = append(toks, part...)
		from = cut
	}
	return toks, nil
}
