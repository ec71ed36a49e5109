package toolcall

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// objects reads calls that are JSON objects with name and arguments, or lists of
// them.
func (p *prober) objects() (b Block, ok bool) {
	s := string(p.one)
	at := strings.Index(s, firstName)
	from, to := enclosing(s, at)
	if from < 0 || !strings.Contains(s[at:to], firstValue) {
		return b, false
	}
	value := s[from:to]
	b.List = value[0] == '['
	object := value
	if b.List {
		inner := strings.TrimSpace(value[1 : len(value)-1])
		b.Lead, b.Trail = leading(value[1:]), trailing(value[:len(value)-1])
		object = inner
	}
	if !b.keysOf(object) {
		return b, false
	}
	if !b.List {
		return b, b.marks(s[:from], p.gap(object), s[to:])
	}
	b.Between = p.gap(object)
	b.Start, b.End = trim(s[:from]), ofTurn(trim(s[:from]), trim(s[to:]))
	if n := len(b.Start); n > 0 && isNameByte(s[from-1]) {
		b.Start += "[" // else it is a mere word
	}
	return b, true
}

// enclosing is the outermost JSON value around a position.
func enclosing(s string, at int) (from, to int) {
	for i := range max(at, 0) {
		if s[i] != '{' && s[i] != '[' {
			continue
		}
		if n := valueLength(s[i:]); i+n > at {
			return i, i + n
		}
	}
	return -1, -1
}

// valueLength is the length of the JSON value that a text begins with, or 0.
func valueLength(s string) int {
	d := json.NewDecoder(strings.NewReader(s))
	var raw json.RawMessage
	if d.Decode(&raw) != nil {
		return 0
	}
	return int(d.InputOffset())
}

// keysOf reads the keys of a call.
func (b *Block) keysOf(object string) bool {
	d := json.NewDecoder(strings.NewReader(object))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return false
	}
	name, args := "", ""
	for d.More() {
		key, err := d.Token()
		var value json.RawMessage
		if err != nil || d.Decode(&value) != nil {
			return false
		}
		k, _ := key.(string)
		switch {
		case k == firstName && bytes.Contains(value, []byte(firstValue)):
			b.Style = NameIsKey
			return true
		case string(value) == `"`+firstName+`"`:
			name = k
		case bytes.Contains(value, []byte(firstValue)):
			args = k
		case name == "" && args == "" && value[0] == '"' && strings.Contains(k, "id"):
			b.IDKey = k
		}
	}
	if name != "name" {
		b.NameKey = name
	}
	if args != "arguments" {
		b.ArgsKey = args
	}
	return name != "" && args != ""
}

// gap is what stands between two calls whose content is written alike.
func (p *prober) gap(content string) string {
	second := strings.NewReplacer(firstName, otherName, firstValue, otherValue).Replace(content)
	s := string(p.two)
	i := strings.Index(s, content)
	j := strings.Index(s, otherValue)
	if i < 0 || j < 0 {
		return ""
	}
	i += len(content)
	if k := strings.Index(s, second); k >= i {
		return s[i:k]
	}
	// Written alike but for an id or a count: up to where its object begins.
	from, _ := enclosing(s[i:], j-i)
	if from < 0 {
		return ""
	}
	return s[i : i+from]
}

// marks splits what stands before the first call, between two calls and behind
// the last into the marks of a section and of a call. An empty gap is one that
// nobody has seen.
func (b *Block) marks(before, gap, after string) bool {
	b.Lead, b.Trail = trailing(before), leading(after)
	before, after = trim(before), trim(after)
	inner := trim(gap)
	if inner == "" {
		b.Start, b.End = before, ofTurn(before, after)
		b.Shared, b.Between = gap != "", gap
		return true
	}
	end := strings.TrimRight(inner[:commonStart(inner, after)], blanks)
	start := strings.TrimLeft(inner[len(inner)-commonEnd(inner[len(end):], before):], blanks)
	b.Start, b.End = start, end
	b.Section = before[:len(before)-len(start)]
	b.Section, b.Inner = trim(b.Section), trailing(b.Section)
	b.SectionEnd = ofTurn(b.Section, trim(after[len(end):]))
	if start == "" && end == "" {
		return false
	}
	if b.Section == "" {
		b.SectionEnd, b.Inner = "", "" // belongs to the turn
	}
	b.Between = strings.TrimPrefix(strings.TrimPrefix(gap, b.Trail), end)
	b.Between = strings.TrimSuffix(strings.TrimSuffix(b.Between, b.Lead), start)
	b.splitSection()
	return true
}

// ofTurn leaves out what ends the turn: an end has no more tags than its start.
func ofTurn(start, end string) string {
	tags := 0
	for _, a := range atoms(start) {
		if isTag(a) {
			tags++
		}
	}
	list := atoms(end)
	if tags == 0 || len(list) == 0 || !isTag(list[0]) {
		return end
	}
	for i, a := range list {
		if tags == 0 && isTag(a) {
			return trim(strings.Join(list[:i], ""))
		}
		tags--
	}
	return end
}

// splitSection makes two marks of two tags with white space between them, which
// models don't always write.
func (b *Block) splitSection() {
	start, end := atoms(b.Start), atoms(b.End)
	n := len(end)
	if b.Section != "" || b.Style == ArgsInObject || len(start) < 3 || n < 3 || trim(start[1]) != "" || trim(end[n-2]) != "" {
		return
	}
	b.Single, b.Inner = true, start[1]
	b.Section, b.Start = start[0], strings.Join(start[2:], "")
	b.SectionEnd, b.End = end[n-1], strings.Join(end[:n-2], "")
}

// afterName reads calls that are a name, a mark, and the arguments as JSON.
func (p *prober) afterName() (b Block, ok bool) {
	b.Style = ArgsAfterName
	before, rest, _ := strings.Cut(string(p.one), firstName)
	from, to := enclosing(rest, strings.Index(rest, firstValue))
	if from < 0 || rest[from] != '{' || !strings.Contains(rest[from:to], `"`+firstKey+`"`) {
		return b, false
	}
	mid := rest[:from]
	gap := ""
	if two := string(p.two); two != "" {
		_, second, _ := strings.Cut(two, rest[from:to])
		gap, second, _ = strings.Cut(second, otherName)
		otherMid, _, _ := strings.Cut(second, "{")
		b.idIn(&before, &gap, &mid, otherMid)
	}
	b.NameEnd = mid
	return b, b.marks(before, gap, rest[to:]) && b.NameEnd != ""
}

// idIn takes a call's id out of what stands before the arguments of two calls.
func (b *Block) idIn(before, gap, mid *string, otherMid string) {
	if *mid == otherMid {
		return
	}
	const prefix = "functions."
	if first, rest, ok := strings.Cut(*mid, "0"); ok && first == ":" && strings.HasSuffix(*before, prefix) {
		b.Indexed, *mid = true, rest
		*before, *gap = strings.TrimSuffix(*before, prefix), strings.TrimSuffix(*gap, prefix)
		return
	}
	start, end := commonStart(*mid, otherMid), commonEnd(*mid, otherMid)
	if start+end < len(*mid) {
		b.IDStart, *mid = (*mid)[:start], (*mid)[len(*mid)-end:]
	}
}

// tags reads calls whose arguments stand between tags.
func (p *prober) tags() (b Block, ok bool) {
	b.Style = Tagged
	s := string(p.one)
	before, rest, _ := strings.Cut(s, firstName)
	toKey, rest, ok1 := strings.Cut(rest, firstKey)
	toValue, rest, ok2 := strings.Cut(rest, firstValue)
	toOther, ok3 := cutBetween(string(p.keys), firstValue, otherKey)
	if !ok1 || !ok2 || !ok3 || trim(toValue) == "" {
		return b, false
	}
	t := &b.Tags
	t.KeyStart = strings.TrimLeft(toOther[len(toOther)-commonEnd(toOther, toKey):], blanks)
	t.ValueEnd = trim(strings.TrimSuffix(toOther, t.KeyStart))
	t.Trim = strings.HasPrefix(toOther, "\n") && strings.HasSuffix(toValue, "\n")
	if t.KeyStart == "" || t.ValueEnd == "" || !t.valueMarks(trim(toValue), p.number) {
		return b, false
	}
	b.NameEnd = trim(strings.TrimSuffix(trim(toKey), t.KeyStart))
	if _, bare, found := strings.Cut(string(p.none), firstName); found {
		b.NameEnd = trim(bare[:commonStart(bare, toKey)])
	}
	_, after, _ := strings.Cut(rest, t.ValueEnd)
	gap := ""
	if _, second, found := strings.Cut(string(p.two), firstValue); found {
		_, second, _ = strings.Cut(second, t.ValueEnd)
		gap, _, _ = strings.Cut(second, otherName)
	}
	ok = b.marks(before, gap, after)
	b.Lead, b.Trail = leading(strings.TrimPrefix(strings.TrimLeft(toKey, blanks), b.NameEnd)), ""
	t.Lead, t.Trail, t.After = trailing(toValue), leading(toOther), trailing(strings.TrimSuffix(toOther, t.KeyStart))
	return b, ok
}

// valueMarks splits what stands between key and value.
func (t *Tags) valueMarks(mid string, number sample) bool {
	other, ok := cutBetween(string(number), numberKey, someNumber)
	if ok && trim(other) != mid { // DeepSeek says of each value whether it is a string
		t.KeyEnd, _, ok = strings.Cut(mid, " ")
		t.Attributes, t.Typed, t.ValueStart = true, "string", ">"
		return ok && strings.HasSuffix(mid, `string="true">`)
	}
	list := atoms(mid)
	next := 1 + slices.IndexFunc(list[1:], isTag)
	if next == 0 {
		next = len(list)
	}
	t.KeyEnd, t.ValueStart = strings.Join(list[:next], ""), trim(strings.Join(list[next:], ""))
	t.KeyEnd, t.Gap = trim(t.KeyEnd), trailing(t.KeyEnd)
	return true
}

// expressions reads calls as in a programming language.
func (p *prober) expressions() (b Block, ok bool) {
	b.Style = Expression
	s := string(p.one)
	before, rest, _ := strings.Cut(s, firstName)
	toKey, rest, ok1 := strings.Cut(rest, firstKey)
	toValue, rest, ok2 := strings.Cut(rest, firstValue)
	b.NameEnd = trim(toKey)
	toValue = trim(toValue)
	if !ok1 || !ok2 || b.NameEnd != "(" && b.NameEnd != "{" || len(toValue) < 2 || toValue[0] != '=' && toValue[0] != ':' {
		return b, false
	}
	quote := trim(toValue[1:])
	if quote != `"` && quote != "'" {
		b.Quote = quote
	}
	closing := quote + string(b.closing())
	after, ok := strings.CutPrefix(rest, closing)
	gap, _ := cutBetween(string(p.two), firstValue+closing, otherName)
	if strings.HasSuffix(before, "[") && strings.HasPrefix(after, "]") {
		b.Start, b.End = trim(strings.TrimSuffix(before, "[")), trim(strings.TrimPrefix(after, "]"))
		b.List = true
		return b, ok
	}
	return b, ok && b.marks(before, gap, after)
}
