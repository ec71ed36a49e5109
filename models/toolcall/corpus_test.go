package toolcall

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strings"
	"testing"
	"unicode/utf8"

	"quern/models/chat"
	"quern/models/schema"
	"quern/models/schema/gbnf"

	"github.com/stretchr/testify/require"
)

type corpusCase struct {
	ID       string `json:"id"`
	Format   string `json:"format"`
	Note     string `json:"note"`
	Kind     string `json:"kind"`
	Thinking string `json:"thinking"`
	Raw      string `json:"raw"`
	Finish   string `json:"finish"`
	Parallel bool   `json:"parallel"`
	Starts   bool   `json:"starts_in_reasoning"`
	Tools    []struct {
		Name       string          `json:"name"`
		Parameters json.RawMessage `json:"parameters"`
	} `json:"tools"`
	Stop    []string       `json:"stop"`
	PlainAt []int          `json:"plain_at"`
	Expect  corpusExpect   `json:"expect"`
	Accept  []corpusExpect `json:"accept"`
}

type corpusExpect struct {
	Reasoning *string      `json:"reasoning"`
	Text      string       `json:"text"`
	TextHas   []string     `json:"text_has"`
	WS        string       `json:"ws"`
	Status    string       `json:"status"`
	LastItem  *string      `json:"last_item_status"`
	Calls     []corpusCall `json:"calls"`
}

type corpusCall struct {
	Name    string          `json:"name"`
	Args    json.RawMessage `json:"arguments"`
	Raw     *string         `json:"arguments_raw"`
	Partial bool            `json:"partial"`
}

// answer is what the events of one answer add up to.
type answer struct {
	Reasoning, Text string
	Calls           []answerCall
	Malformed       []string
	Breaks          int
	last            Kind
}

type answerCall struct {
	Name, ID, Args string
	Ended, Cut     bool
}

func (a *answer) add(events []Event) {
	for _, e := range events {
		switch e.Kind {
		case TextDelta:
			if a.last != TextDelta && a.Text != "" {
				a.Text += "\n"
			}
			a.Text += string(e.Text)
		case ReasoningDelta:
			if a.last != ReasoningDelta && a.Reasoning != "" {
				a.Reasoning += "\n"
			}
			a.Reasoning += string(e.Text)
		case CallStart:
			a.Calls = append(a.Calls, answerCall{Name: e.Name, ID: e.ID})
		case ArgsDelta:
			a.Calls[e.Index].Args += string(e.Text)
		case CallEnd:
			a.Calls[e.Index].Ended, a.Calls[e.Index].Cut, a.Calls[e.Index].ID = true, e.Cut, e.ID
		case Break:
			a.Breaks++
		case Malformed:
			a.Malformed = append(a.Malformed, e.Why)
			continue
		}
		a.last = e.Kind
	}
}

// piece is a token of a test: text, and the marker it is, if it is one.
type piece struct {
	token int32
	text  string
}

// tokens cuts a text into single characters, markers apart.
func tokens(f *Format, text string, plainAt []int, bySpelling bool) []piece {
	var out []piece
	runes := 0
	markers := f.Markers()
	sort.Slice(markers, func(i, j int) bool { return len(markers[i]) > len(markers[j]) })
	for i := 0; i < len(text); {
		n, id := 0, int32(-1)
		if !slices.Contains(plainAt, runes) {
			for _, m := range markers {
				if strings.HasPrefix(text[i:], m) {
					n, id = len(m), markerID(f, m)
					break
				}
			}
		}
		if n == 0 {
			_, n = utf8.DecodeRuneInString(text[i:])
		}
		p := piece{id, text[i : i+n]}
		if id >= 0 && !bySpelling {
			p.text = "" // as the decoder does for control tokens
		}
		out = append(out, p)
		runes += utf8.RuneCountInString(text[i : i+n])
		i += n
	}
	return out
}

func markerID(f *Format, m string) int32 { return int32(1000 + slices.Index(f.Markers(), m)) }

func lookupIn(f *Format) func(string) (int32, bool) {
	return func(text string) (int32, bool) {
		i := slices.Index(f.Markers(), text)
		return int32(1000 + i), i >= 0
	}
}

func lex(f *Format, o Options, pieces []piece, cut bool) answer {
	l := NewLexer(f, o)
	var a answer
	for _, p := range pieces {
		a.add(l.Push(p.token, []byte(p.text)))
	}
	a.add(l.Flush(cut))
	return a
}

func loadCorpus(t *testing.T) map[string][]corpusCase {
	t.Helper()
	dir := os.Getenv("QUERN_TOOLCORPUS")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "toolcorpus", "corpus")
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if len(files) == 0 {
		t.Skip("no tool corpus: set QUERN_TOOLCORPUS")
	}
	out := map[string][]corpusCase{}
	for _, path := range files {
		f, err := os.Open(path)
		require.NoError(t, err)
		s := bufio.NewScanner(f)
		s.Buffer(nil, 1<<20)
		for s.Scan() {
			var c corpusCase
			require.NoError(t, json.Unmarshal(s.Bytes(), &c))
			out[c.Format] = append(out[c.Format], c)
		}
		require.NoError(t, f.Close())
	}
	return out
}

func (c *corpusCase) options(f *Format, byToken bool) Options {
	o := Options{StartInReasoning: c.Starts, Bare: true}
	for _, t := range c.Tools {
		o.Tools = append(o.Tools, chat.Tool{Name: t.Name, Parameters: t.Parameters})
	}
	if !c.Parallel {
		o.MaxCalls = 1
	}
	if byToken {
		o.Lookup = lookupIn(f)
	}
	return o
}

// TestCorpus runs every case of every file that has a row, by bytes and with
// markers as tokens.
func TestCorpus(t *testing.T) {
	corpus := loadCorpus(t)
	var missing []string
	for _, format := range slices.Sorted(maps.Keys(corpus)) {
		f, err := ByName(format)
		if err != nil {
			missing = append(missing, format)
			continue
		}
		t.Run(format, func(t *testing.T) {
			passed := 0
			for _, c := range corpus[format] {
				ok := true
				for _, mode := range []string{"bytes", "tokens", "control tokens"} {
					if len(c.PlainAt) > 0 && mode == "bytes" {
						continue
					}
					got := lex(&f, c.options(&f, mode != "bytes"), tokens(&f, c.Raw, c.PlainAt, mode != "control tokens"), c.Finish == "length")
					if why := c.check(got); why != "" {
						ok = false
						t.Errorf("%s (%s) by %s: %s\n  raw  %q\n  got  %+v", c.ID, c.Note, mode, why, c.Raw, got)
					}
				}
				if ok {
					passed++
				}
			}
			t.Logf("%d of %d", passed, len(corpus[format]))
		})
	}
	t.Logf("no row for %s", strings.Join(missing, ", "))
}

// TestCorpusIsAccepted holds the grammars of all tools, as strict ones, to what
// models really wrote: answers whose calls are whole and fit their schemas.
func TestCorpusIsAccepted(t *testing.T) {
	corpus := loadCorpus(t)
	cache := schema.NewCache(8 << 20)
	accepted, refused := 0, 0
	for _, format := range slices.Sorted(maps.Keys(corpus)) {
		f, err := ByName(format)
		if err != nil || len(f.Blocks) == 0 || f.Blocks[0].Tags.Nested {
			continue
		}
		for _, c := range corpus[format] {
			if !c.wellFormed() {
				continue
			}
			o := c.options(&f, false)
			for i := range o.Tools {
				o.Tools[i].Strict = true
			}
			thinking := MayThink
			if c.Starts {
				thinking = InThoughts
			}
			g, diags, err := f.Grammar(o.Tools, GrammarOptions{Require: c.Expect.Text == "", Thinking: thinking, Schemas: cache})
			require.NoError(t, err)
			require.Empty(t, diags)
			parsed, err := gbnf.Parse(g.GBNF)
			require.NoError(t, err)
			if why := otherSpelling[c.ID]; parsed.Accepts(f.withoutLast(c.Raw)) {
				require.Empty(t, why, c.ID)
				accepted++
			} else {
				refused++
				if why == "" {
					t.Errorf("%s (%s, %s) is refused: %q", c.ID, c.Kind, c.Note, c.Raw)
				}
			}
		}
	}
	t.Logf("%d accepted, %d in another spelling", accepted, refused)
}

// otherSpelling are cases that are well formed, but not as grammars write it.
var otherSpelling = map[string]string{
	"llama3-003":  "a marker that the second block of the row has",
	"harmony-003": "the end of a call ends the answer", "harmony-012": "the end of a call ends the answer",
	"harmony-022":  "thoughts behind the first text",
	"pythonic-012": "text behind a list of calls: a held list ends the answer",
}

// withoutLast leaves out what ends the answer: a token that no grammar writes.
func (f *Format) withoutLast(raw string) string {
	raw = strings.TrimRight(raw, " \n")
	if f.Messages == nil {
		return strings.TrimSpace(raw)
	}
	for _, end := range append(f.Messages.Last, f.Messages.Ends...) {
		raw = strings.TrimSuffix(raw, end)
	}
	return raw
}

// wellFormed says that a case is one of calls as the format wants them, in the
// answer and not in the thoughts, where no grammar holds.
func (c *corpusCase) wellFormed() bool {
	switch c.Kind {
	case "malformed", "no_end", "cut", "unknown", "trap", "flush":
		return false
	case "reasoning":
		if strings.Contains(c.Note, "inside") || strings.Contains(c.Note, "in unclosed") {
			return false
		}
	}
	for _, call := range c.Expect.Calls {
		for _, tool := range c.Tools {
			if tool.Name == call.Name && !schema.NewChecker(tool.Parameters).Fits(call.Args) {
				return false
			}
		}
	}
	return len(c.Expect.Calls) > 0
}

func (c *corpusCase) check(got answer) string {
	why := c.match(&c.Expect, got)
	for i := range c.Accept {
		if why == "" || c.match(&c.Accept[i], got) == "" {
			return ""
		}
	}
	return why
}

var spaces = regexp.MustCompile(`\s+`)

func squeeze(s string) string { return spaces.ReplaceAllString(s, "") }

var jsonSpace = regexp.MustCompile(`("(?:[^"\\]|\\.)*(?:"|$))|\s+`)

func squeezeJSON(s string) string { return jsonSpace.ReplaceAllString(s, "$1") }

func (c *corpusCase) match(e *corpusExpect, got answer) string {
	for _, s := range c.Stop { // the server's business
		if i := strings.Index(got.Text, s); i >= 0 {
			got.Text = got.Text[:i]
		}
	}
	same := func(a, b string) bool {
		if e.WS == "loose" {
			return squeeze(a) == squeeze(b)
		}
		return strings.TrimSpace(a) == strings.TrimSpace(b)
	}
	want := ""
	if e.Reasoning != nil {
		want = *e.Reasoning
	}
	switch {
	case !same(want, got.Reasoning):
		return "reasoning differs: want " + want
	case e.TextHas == nil && !same(e.Text, got.Text):
		return "text differs: want " + e.Text
	case len(e.Calls) != len(got.Calls):
		return "number of calls differs"
	}
	at := 0
	for _, s := range e.TextHas {
		i := strings.Index(squeeze(got.Text)[at:], squeeze(s))
		if i < 0 {
			return "text lacks " + s
		}
		at += i + len(squeeze(s))
	}
	for i, w := range e.Calls {
		if why := w.match(got.Calls[i]); why != "" {
			return why
		}
	}
	last := "completed"
	if n := len(got.Calls); n > 0 && got.Calls[n-1].Cut {
		last = "incomplete"
		if e.LastItem != nil && *e.LastItem != last {
			return "the last call is cut"
		}
	}
	return ""
}

func (w *corpusCall) match(got answerCall) string {
	switch {
	case w.Name != got.Name:
		return "name differs: want " + w.Name
	case !got.Ended:
		return "call without an end"
	case w.Partial:
		if !got.Cut || !strings.HasPrefix(squeezeJSON(*w.Raw), strings.TrimRight(squeezeJSON(got.Args), ",")) {
			return "partial arguments differ"
		}
	case got.Cut:
		return "call is cut"
	case w.Raw != nil:
		if squeezeJSON(*w.Raw) != squeezeJSON(got.Args) {
			return "arguments differ: want " + *w.Raw
		}
	case !sameJSON(w.Args, []byte(got.Args)):
		return "arguments differ: want " + string(w.Args)
	}
	return ""
}

// sameJSON compares values, the order of keys and the digits of integers.
func sameJSON(a, b []byte) bool {
	da, db := json.NewDecoder(strings.NewReader(string(a))), json.NewDecoder(strings.NewReader(string(b)))
	da.UseNumber()
	db.UseNumber()
	for {
		ta, ea := da.Token()
		tb, eb := db.Token()
		if ea != nil || eb != nil {
			return errors.Is(ea, io.EOF) && errors.Is(eb, io.EOF)
		}
		na, ok := ta.(json.Number)
		nb, ok2 := tb.(json.Number)
		if ok && ok2 {
			fa, _ := na.Float64()
			fb, _ := nb.Float64()
			if na != nb && (fa != fb || !strings.ContainsAny(string(na+nb), ".eE")) {
				return false
			}
		} else if ta != tb {
			return false
		}
	}
}
