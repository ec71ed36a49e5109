package toolcall

import (
	"bytes"
	"encoding/json"
	"html"
	"strings"
)

// tagged reads the arguments of one call that are written between tags, and the
// tag that ends the call. Strings become available while they are read, other
// values at their end.
type tagged struct {
	written
	b    *Block
	tool *tool // nil if it is not declared

	state   tagState
	open    bool   // the arguments object has its first brace
	fresh   bool   // nothing of the value has come
	held    []byte // bytes that may be a marker
	key     []byte
	attrs   []byte // what stands between key and value
	end     string // of the value
	value   []byte // of a value that is no string
	depth   int    // of elements of the value's name in it that are open
	counted int    // how far in value they have been counted
	string  bool   // the value is a string, and its quote is out
	asJSON  bool   // the model says that the value is JSON
	all     bool   // the value is an object of all arguments
}

type tagState uint8

const (
	betweenTags tagState = iota
	inKey
	beforeValue
	inValue
)

// maxTag bounds a key and the attributes of a tag, in bytes.
const maxTag = 1024

func (t *tagged) reset(b *Block, tool *tool) {
	*t = tagged{
		written: written{args: t.args[:0]}, b: b, tool: tool,
		held: t.held[:0], key: t.key[:0], attrs: t.attrs[:0], value: t.value[:0],
	}
}

func (t *tagged) closesList() bool { return false }

func (t *tagged) step(c byte) status {
	switch t.state {
	case betweenTags:
		return t.tagByte(c)
	case inKey:
		return t.keyByte(c)
	case beforeValue:
		return t.attrByte(c)
	}
	t.valueByte(c)
	return more
}

// match says whether c goes on with a marker of the list, and which one it ends.
func (t *tagged) match(c byte, markers ...string) (done string, part bool) {
	n := len(t.held)
	for _, m := range markers {
		if len(m) > n && m[:n] == string(t.held) && m[n] == c {
			if len(m) == n+1 {
				return m, true
			}
			part = true
		}
	}
	return "", part
}

// tagByte reads the tag of an argument or the end of the call.
func (t *tagged) tagByte(c byte) status {
	if len(t.held) == 0 && isSpace(c) {
		return more
	}
	done, part := t.match(c, t.b.Tags.KeyStart, t.b.Tags.Whole.Start, t.b.End, t.b.SectionEnd)
	switch {
	case !part:
		return broken
	case done == "":
		t.held = append(t.held, c)
		return more
	}
	t.held = t.held[:0]
	switch done {
	case t.b.Tags.KeyStart:
		t.state, t.key = inKey, t.key[:0]
		return more
	case t.b.Tags.Whole.Start:
		t.state, t.attrs, t.key = beforeValue, t.attrs[:0], append(t.key[:0], "json"...)
		t.all = true
		return more
	case t.b.End:
		t.close()
		return endDone
	}
	t.close()
	return secDone
}

// close ends the arguments.
func (t *tagged) close() {
	if !t.open {
		t.args = append(t.args, '{')
	}
	t.args = append(t.args, '}')
	t.safe, t.anchor, t.argsEnd = len(t.args), true, true
}

func (t *tagged) keyByte(c byte) status {
	if t.b.Tags.Nested && len(t.key) == 0 && c == '/' { // it is no argument's tag
		t.state, t.held = betweenTags, append(t.held[:0], t.b.Tags.KeyStart...)
		return t.tagByte(c)
	}
	if c == '\n' || len(t.key) > maxTag {
		return broken
	}
	t.key = append(t.key, c)
	if !bytes.HasSuffix(t.key, []byte(t.b.Tags.KeyEnd)) {
		return more
	}
	t.key = bytes.TrimSpace(t.key[:len(t.key)-len(t.b.Tags.KeyEnd)])
	if t.b.Tags.Entities {
		t.key = []byte(html.UnescapeString(string(t.key)))
	}
	t.state, t.attrs = beforeValue, t.attrs[:0]
	if t.b.Tags.ValueStart == "" {
		t.beginValue()
	}
	return more
}

// attrByte reads what stands between a key and its value.
func (t *tagged) attrByte(c byte) status {
	start := t.b.Tags.ValueStart
	if !t.b.Tags.Attributes {
		if len(t.held) == 0 && isSpace(c) {
			return more
		}
		done, part := t.match(c, start)
		if !part {
			return broken
		}
		t.held = append(t.held, c)
		if done != "" {
			t.held = t.held[:0]
			t.beginValue()
		}
		return more
	}
	if c == '\n' || c == '<' && start[0] != '<' || len(t.attrs) > maxTag {
		return broken
	}
	t.attrs = append(t.attrs, c)
	if bytes.HasSuffix(t.attrs, []byte(start)) {
		t.beginValue()
	}
	return more
}

// beginValue decides whether the value is a string that can be given out as it
// comes.
func (t *tagged) beginValue() {
	t.state, t.fresh, t.value = inValue, true, t.value[:0]
	t.depth, t.counted = 0, 0
	if t.all {
		t.string, t.end = false, t.b.Tags.Whole.End
		return
	}
	said, asString := typeIn(t.attrs)
	t.asJSON = said && !asString
	t.string = asString || !said && t.tool.param(t.key).Text
	t.end = t.b.Tags.ValueEnd
	if t.b.Tags.Nested {
		t.end += string(t.key) + t.b.Tags.KeyEnd
	}
	if t.string {
		t.member()
		t.args = append(t.args, '"')
		t.safe, t.anchor = len(t.args), true
	}
}

// typeIn is what the attributes of a value say about its type.
func typeIn(attrs []byte) (said, asString bool) {
	switch {
	case bytes.Contains(attrs, []byte(`string="`)):
		return true, bytes.Contains(attrs, []byte(`string="true"`))
	case bytes.Contains(attrs, []byte(`type="`)):
		return true, bytes.Contains(attrs, []byte(`type="string"`))
	}
	return false, false
}

// member begins an entry of the arguments object.
func (t *tagged) member() {
	sep := byte(',')
	if !t.open {
		sep, t.open = '{', true
	}
	t.args = append(t.args, sep)
	t.args = append(appendString(append(t.args, '"'), t.key...), '"', ':')
}

// valueByte reads on in a value, which ends with its tag or, where that was
// forgotten, with the next argument's on a new line.
func (t *tagged) valueByte(c byte) {
	if t.fresh && t.b.Tags.Trim && c == '\n' {
		t.fresh = false
		return
	}
	t.fresh = false
	tags := &t.b.Tags
	if len(t.held) == 0 && c != '\n' && c != t.end[0] {
		t.give(c)
		return
	}
	t.held = append(t.held, c)
	for len(t.held) > 0 {
		switch {
		case t.holds("", t.end), tags.Trim && t.holds("\n", t.end), !tags.Nested && t.holds("\n", tags.KeyStart):
		default:
			t.give(t.held[0])
			t.held = t.held[:copy(t.held, t.held[1:])]
			continue
		}
		break
	}
	held := string(t.held)
	switch {
	case held == t.end && t.nests():
		t.value, t.held = append(t.value, t.held...), t.held[:0]
	case held == t.end, tags.Trim && held == "\n"+t.end:
		t.endValue(betweenTags)
	case held == "\n"+tags.KeyStart:
		t.endValue(inKey)
		t.key = t.key[:0]
	}
}

// nests says that the tag which has come ends an element inside the value.
func (t *tagged) nests() bool {
	tags := &t.b.Tags
	if !tags.Nested || t.string {
		return false
	}
	t.depth += bytes.Count(t.value[t.counted:], []byte(tags.KeyStart+string(t.key)+tags.KeyEnd)) - 1
	t.counted = len(t.value)
	return t.depth >= 0
}

// holds says that the held bytes begin a marker behind a prefix.
func (t *tagged) holds(prefix, marker string) bool {
	h := string(t.held)
	if len(h) <= len(prefix) {
		return strings.HasPrefix(prefix, h)
	}
	return strings.HasPrefix(h, prefix) && strings.HasPrefix(marker, h[len(prefix):])
}

func (t *tagged) give(c byte) {
	if !t.string {
		t.value = append(t.value, c)
		return
	}
	t.args = appendString(t.args, c)
	t.safe = len(t.args)
}

func (t *tagged) endValue(next tagState) {
	t.state, t.held = next, t.held[:0]
	if t.all {
		t.all = false
		if all := bytes.TrimSpace(t.value); !t.open && len(all) > 0 && all[0] == '{' && json.Valid(all) {
			t.args, t.open = append(t.args, all[:len(all)-1]...), true
			t.safe, t.anchor = len(t.args), true
			return
		}
	}
	if t.string {
		t.args = append(t.args, '"')
	} else {
		t.member()
		t.args = t.appendValue(t.args)
	}
	t.safe, t.anchor = len(t.args), true
}

func (t *tagged) appendValue(out []byte) []byte {
	tags := &t.b.Tags
	if !tags.Nested {
		return appendValue(out, t.value, t.tool.param(t.key), t.asJSON)
	}
	n := nested{open: []byte(tags.KeyStart), shut: []byte(tags.ValueEnd)}
	return n.append(out, t.value, t.tool.about(t.key), 0)
}

// finish ends a call whose last argument is whole.
func (t *tagged) finish() bool {
	if t.argsEnd {
		return true
	}
	if t.state != betweenTags {
		return false
	}
	t.close()
	return true
}

// appendString adds bytes as they stand inside a JSON string.
func appendString(out []byte, text ...byte) []byte {
	for _, c := range text {
		if c == '"' || c == '\\' {
			out = append(out, '\\', c)
			continue
		}
		out = appendEscaped(out, c)
	}
	return out
}
