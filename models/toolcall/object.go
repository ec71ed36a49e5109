package toolcall

import (
	"bytes"
	"encoding/json"
)

// object reads one call: an object with name and arguments in any order, one
// whose keys are names (NameIsKey), or arguments alone after a name
// (ArgsAfterName). Arguments become available while they are read.
type object struct {
	written
	scan  scanner
	style ArgStyle
	base  int  // depth at which the arguments begin
	exact bool // no other keys than those of a call
	// Keys of name and arguments beside the usual ones; may be empty.
	nameKey, argsKey string

	role   role
	key    []byte // of the member being read
	text   []byte // of a name, an id or double-encoded arguments, raw
	inArgs bool
}

type role uint8

const (
	roleOther role = iota
	roleName
	roleArgs
	roleID
)

func (o *object) reset(b *Block, style ArgStyle, exact bool) {
	o.scan.reset()
	*o = object{
		written: written{args: o.args[:0]}, nameKey: b.NameKey, argsKey: b.ArgsKey,
		scan: o.scan, style: style, exact: exact, key: o.key[:0], text: o.text[:0], base: 1,
	}
	if style == ArgsAfterName {
		o.base, o.role = 0, roleArgs
	}
}

// step takes one byte.
func (o *object) step(c byte) status {
	if o.inArgs {
		return o.argsByte(c)
	}
	depth := o.scan.depth()
	tok, _ := o.scan.step(c)
	if tok == bad {
		return broken
	}
	if o.role == roleArgs && depth == o.base && !o.scan.key {
		if st, done := o.argsBegin(tok, c); done {
			return st
		}
	}
	switch {
	case depth == 0 && tok != space && c != '{':
		return broken // the top must be an object
	case depth != 1:
		return more // inside a value that does not matter
	}
	return o.member(tok, c)
}

// member reads keys and the values that are not arguments, at depth 1.
func (o *object) member(tok token, c byte) status {
	switch {
	case tok == quoteOpen:
		o.text = o.text[:0]
	case tok == inside:
		if o.scan.key || o.role == roleName || o.role == roleID {
			o.text = appendEscaped(o.text, c)
		}
	case tok == quoteClose && o.scan.key:
		return o.keyDone()
	case tok == quoteClose:
		return o.stringDone()
	case o.role == roleName && (tok == open || tok == scalar):
		return broken
	case tok == comma, tok == shut:
		o.role = roleOther
		if tok == shut {
			return allDone
		}
	}
	return more
}

func (o *object) keyDone() status {
	o.key = append(o.key[:0], unquote(o.text)...)
	o.role = roleOther
	if o.style == NameIsKey {
		o.name, o.hasName, o.role = string(o.key), true, roleArgs
		o.argsEnd, o.anchor = false, false
		return more
	}
	switch key := string(o.key); {
	case key == "name", key == "tool_name", key == o.nameKey && key != "":
		o.role = roleName
	case key == "arguments", key == "parameters", key == "args", key == o.argsKey && key != "":
		o.role = roleArgs
	case key == "id", key == "tool_call_id", key == "call_id":
		o.role = roleID
	case key == "type":
	default:
		if o.exact {
			return broken
		}
	}
	if o.role == roleName && o.hasName || o.role == roleArgs && o.argsEnd {
		o.role = roleOther // the first one counts
	}
	return more
}

func (o *object) stringDone() status {
	switch o.role {
	case roleName:
		o.name, o.hasName = string(bytes.TrimSpace(unquote(o.text))), true
	case roleID:
		o.id = string(unquote(o.text))
	}
	return more
}

// argsBegin looks at the first byte of the value of "arguments", and goes on
// with a value that is no object.
func (o *object) argsBegin(tok token, c byte) (status, bool) {
	switch tok {
	case open:
		if c == '[' {
			return broken, true
		}
		o.inArgs = true
		o.args = append(o.args[:0], '{')
		o.safe = 1
		return more, true
	case quoteOpen: // double-encoded
		if o.base == 0 {
			return broken, true
		}
		o.text = append(o.text[:0], '"')
		return more, true
	case inside:
		o.text = appendEscaped(o.text, c)
		return more, true
	case quoteClose:
		return o.decoded(), true
	case scalar: // null stands for no arguments
		if o.base == 0 || o.scan.word != "null" || o.scan.state != inLiteral && o.scan.state != afterValue {
			return broken, true
		}
		if o.scan.state == afterValue {
			return o.setArgs([]byte("{}")), true
		}
		return more, true
	}
	return more, false
}

// decoded opens arguments that were written as a JSON string.
func (o *object) decoded() status {
	inner := bytes.TrimSpace(unquote(o.text[1:]))
	if len(inner) == 0 {
		inner = []byte("{}")
	}
	if inner[0] != '{' || !json.Valid(inner) {
		return broken
	}
	return o.setArgs(inner)
}

// setArgs takes arguments that are whole at once.
func (o *object) setArgs(args []byte) status {
	o.whole(args)
	return o.argsDone()
}

// argsByte reads on inside the arguments object.
func (o *object) argsByte(c byte) status {
	wasScalar := o.scan.inScalar()
	tok, trailing := o.scan.step(c)
	switch {
	case tok == bad:
		return broken
	case tok == inside:
		o.args = appendEscaped(o.args, c)
	case trailing:
		o.args = append(append(o.args[:o.comma], o.args[o.comma+1:]...), c)
	default:
		o.args = append(o.args, c)
	}
	if tok == comma {
		o.comma = len(o.args) - 1
	}
	o.anchor = o.anchor || tok == quoteOpen && !o.scan.key || tok == shut || wasScalar && !o.scan.inScalar()
	switch o.scan.state {
	case wantMore, wantNext, inEscape, inHex:
	default:
		if !o.scan.inScalar() {
			o.safe = len(o.args)
		}
	}
	if tok == shut && o.scan.depth() == o.base {
		return o.argsDone()
	}
	return more
}

func (o *object) argsDone() status {
	o.inArgs, o.argsEnd = false, true
	switch o.style {
	case ArgsAfterName:
		return allDone
	case NameIsKey:
		return oneDone
	}
	return more
}

// closesList says that a ] can end the list that the object stands in.
func (o *object) closesList() bool { return o.scan.depth() <= 1 }

// finish closes the brackets that are missing. It reports false if more is
// wrong than that.
func (o *object) finish() bool {
	var buf [maxJSONDepth]byte
	missing, afterComma, ok := o.scan.closers(buf[:0])
	if !ok || !o.inArgs && !o.argsEnd {
		return false
	}
	if o.inArgs {
		if afterComma {
			o.args = append(o.args[:o.comma], o.args[o.comma+1:]...)
		}
		o.args = append(o.args, missing[:len(missing)-o.base]...)
		o.safe = len(o.args)
		o.inArgs, o.argsEnd, o.anchor = false, true, true
	}
	return true
}

// appendEscaped adds a byte of a string; a raw control character, which JSON
// does not allow, as its escape.
func appendEscaped(b []byte, c byte) []byte {
	if c >= 0x20 {
		return append(b, c)
	}
	switch c {
	case '\n':
		return append(b, `\n`...)
	case '\r':
		return append(b, `\r`...)
	case '\t':
		return append(b, `\t`...)
	}
	const hex = "0123456789abcdef"
	return append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
}

// unquote decodes the inside of a JSON string that the scanner has passed.
func unquote(raw []byte) []byte {
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw
	}
	quoted := make([]byte, 0, len(raw)+2)
	quoted = append(append(append(quoted, '"'), raw...), '"')
	var s string
	if json.Unmarshal(quoted, &s) != nil {
		return raw
	}
	return []byte(s)
}
