package tokenizer

import (
	"slices"
	"sort"
	"strings"
	"sync/atomic"
)

// fakeVocab behaves as llama.cpp does where it matters here: special tokens
// are cut out first, longest first, in the whole text; user-defined ones also
// without special parsing; the fragments between are tokenised independently,
// word by word, by the longest piece. With prefix it puts a space before text
// at the start and after special tokens, and its plain text may merge into a
// control token, as in a SentencePiece vocabulary.
type fakeVocab struct {
	pieces  []string
	kinds   map[Token]string // control, user, unknown
	byText  map[string]Token
	special []Token // longest first
	prefix  bool
	strip   bool // special tokens eat the whitespace on their right
	bos     Token
	addBOS  bool
	calls   atomic.Int64
}

type fakeOption func(*fakeVocab)

func withPrefix(v *fakeVocab) { v.prefix = true }
func withStrip(v *fakeVocab)  { v.strip = true }
func withoutSpaces(v *fakeVocab) {
	v.special = slices.DeleteFunc(v.special, func(t Token) bool {
		space := strings.TrimSpace(v.pieces[t]) == ""
		if space {
			delete(v.kinds, t)
		}
		return space
	})
}
func withBOS(v *fakeVocab) { v.addBOS = true }

var fakeSpecials = map[string]string{
	"<|im_start|>": "control", "<|im_end|>": "control", "<s>": "control", "</s>": "control",
	"<tool_call>": "user", "</tool_call>": "user", "<|tool|>": "user", "<unk>": "unknown",
	"\n\n": "user", "\n\n\n": "user", "|": "user", "<|im": "user", "im_start|><|": "user",
}

var fakeWords = []string{
	"the", "quick", "user", "assistant", "tool", "call", "im", "start", "end", "_", "hello", " hello", " the",
	"wor", "ld", "é", "世", "界", "<|", "|>", "</", ">", "s>", "  ", "<un", "k>",
}

func newFakeVocab(opts ...fakeOption) *fakeVocab {
	v := &fakeVocab{kinds: map[Token]string{}, byText: map[string]Token{}, bos: -1}
	for b := range 256 {
		v.add(string([]byte{byte(b)}), "")
	}
	for _, w := range fakeWords {
		v.add(w, "")
	}
	names := make([]string, 0, len(fakeSpecials))
	for s := range fakeSpecials {
		names = append(names, s)
	}
	sort.Strings(names)
	for _, s := range names {
		v.add(s, fakeSpecials[s])
	}
	v.bos = v.byText["<s>"]
	for _, o := range opts {
		o(v)
	}
	sort.SliceStable(v.special, func(i, j int) bool {
		return len(v.pieces[v.special[i]]) > len(v.pieces[v.special[j]])
	})
	return v
}

func (v *fakeVocab) add(text, kind string) {
	id := Token(len(v.pieces))
	v.pieces = append(v.pieces, text)
	if kind != "" {
		v.kinds[id] = kind
		v.special = append(v.special, id)
	}
	if _, ok := v.byText[text]; !ok || kind != "" {
		v.byText[text] = id
	}
}

func (v *fakeVocab) Size() int                  { return len(v.pieces) }
func (v *fakeVocab) Piece(t Token) []byte       { return []byte(v.pieces[t]) }
func (v *fakeVocab) IsControl(t Token) bool     { return v.kinds[t] == "control" }
func (v *fakeVocab) IsUserDefined(t Token) bool { return v.kinds[t] == "user" }
func (v *fakeVocab) IsUnknown(t Token) bool     { return v.kinds[t] == "unknown" }
func (v *fakeVocab) IsEOG(t Token) bool         { return v.pieces[t] == "<|im_end|>" }
func (v *fakeVocab) BOS() Token                 { return v.bos }
func (v *fakeVocab) EOS() Token                 { return v.byText["</s>"] }
func (v *fakeVocab) AddBOS() bool               { return v.addBOS }

type fakeFragment struct {
	text string
	tok  Token // -1: text
}

func (v *fakeVocab) Tokenize(text string, parseSpecial bool) ([]Token, error) {
	v.calls.Add(1)
	var out []Token
	special := true
	for _, f := range v.partition(text, parseSpecial) {
		if f.tok >= 0 {
			out, special = append(out, f.tok), true
			continue
		}
		if v.prefix && special {
			f.text = " " + f.text
		}
		out, special = v.words(out, f.text), false
	}
	return out, nil
}

func (v *fakeVocab) partition(text string, parseSpecial bool) []fakeFragment {
	if text == "" {
		return nil
	}
	frags := []fakeFragment{{text, -1}}
	for _, id := range v.special {
		if !parseSpecial && v.kinds[id] != "user" {
			continue
		}
		var next []fakeFragment
		for _, f := range frags {
			for f.tok < 0 {
				left, right, found := strings.Cut(f.text, v.pieces[id])
				if !found {
					break
				}
				if left != "" {
					next = append(next, fakeFragment{left, -1})
				}
				next = append(next, fakeFragment{"", id})
				if v.strip {
					right = strings.TrimLeft(right, " \t\n\v\f\r")
				}
				f.text = right
			}
			if f.tok >= 0 || f.text != "" {
				next = append(next, f)
			}
		}
		frags = next
	}
	return frags
}

// words takes the longest piece at each place; a run of letters never joins
// with what is not a letter unless a piece says so.
func (v *fakeVocab) words(out []Token, text string) []Token {
	for len(text) > 0 {
		n := min(len(text), 12)
		for ; n > 1; n-- {
			id, ok := v.byText[text[:n]]
			if ok && (v.kinds[id] == "" || (v.prefix && v.kinds[id] == "control")) {
				break
			}
		}
		out = append(out, v.byText[text[:n]])
		text = text[n:]
	}
	return out
}

// allocation-free pieces for the benchmarks and AllocsPerRun.
type tableVocab struct {
	*fakeVocab
	table [][]byte
}

func newTableVocab(v *fakeVocab) *tableVocab {
	t := &tableVocab{fakeVocab: v}
	for _, p := range v.pieces {
		t.table = append(t.table, []byte(p))
	}
	return t
}

func (v *tableVocab) Piece(t Token) []byte { return v.table[t] }
