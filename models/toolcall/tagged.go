package toolcall

import (
	"bytes"
	"strings"
)

// tagged reads the arguments of one call that are written between tags, and the
// tag that ends the call. Strings become available while they are read, other
// values at their end.
type tagged struct {
	written
	b    *Block
	tool *tool // nil if it is not declared

	state  tagState
	open   bool   // the arguments object has its first brace
	fresh  bool   // nothing of the value has come
	held   []byte // bytes that may be a marker
	key    []byte
	attrs  []byte // what stands between key and value
	value  []byte // of a value that is no string
	string bool   // the value is a string, and its quote is out
	asJSON bool   // the model says that the value is JSON
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
	done, part := t.match(c, t.b.Tags.KeyStart, t.b.End, t.b.SectionEnd)
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
	if c == '\n' || len(t.key) > maxTag {
		return broken
	}
	t.key = append(t.key, c)
	if !bytes.HasSuffix(t.key, []byte(t.b.Tags.KeyEnd)) {
		return more
	}
	t.key = bytes.TrimSpace(t.key[:len(t.key)-len(t.b.Tags.KeyEnd)])
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
	if c == '\n' || c == '<' || len(t.attrs) > maxTag {
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
	t.asJSON = bytes.Contains(t.attrs, []byte(`string="false"`))
	t.string = bytes.Contains(t.attrs, []byte(`string="true"`)) || !t.asJSON && t.tool.param(t.key).text
	if t.string {
		t.member()
		t.args = append(t.args, '"')
		t.safe, t.anchor = len(t.args), true
	}
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
	if len(t.held) == 0 && c != '\n' && c != tags.ValueEnd[0] {
		t.give(c)
		return
	}
	t.held = append(t.held, c)
	for len(t.held) > 0 {
		switch {
		case t.holds("", tags.ValueEnd), tags.Trim && t.holds("\n", tags.ValueEnd), t.holds("\n", tags.KeyStart):
		default:
			t.give(t.held[0])
			t.held = t.held[:copy(t.held, t.held[1:])]
			continue
		}
		break
	}
	held := string(t.held)
	switch {
	case held == tags.ValueEnd, tags.Trim && held == "\n"+tags.ValueEnd:
		t.endValue(betweenTags)
	case held == "\n"+tags.KeyStart:
		t.endValue(inKey)
		t.key = t.key[:0]
	}
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
	if t.string {
		t.args = append(t.args, '"')
	} else {
		t.member()
		t.args = t.tool.param(t.key).appendValue(t.args, t.value, t.asJSON)
	}
	t.safe, t.anchor = len(t.args), true
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
