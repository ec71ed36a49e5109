package toolcall

import (
	"bytes"
	"slices"
	"strings"
)

// block is what the lexer knows about the block of calls it is in. Positions
// are in Lexer.in.
type block struct {
	b       *Block
	where   where
	phase   phase
	mark    int  // where the block begins
	after   int  // where its first marker ends
	started bool // a Start stands at startAt and its call has not come
	startAt int
	begunAt int    // where that Start ends
	unit    int    // where the call being read begins
	name    int    // where its name begins (ArgsAfterName)
	live    bool   // its CallStart is out
	calls   int    // that count
	units   int    // that were read, counting or not
	list    bool   // inside a JSON list
	outer   bool   // a section goes on behind the end of a call
	bare    bool   // Tagged: begun by a call where a section is usual
	fence   string // what ends a bare answer
	junk    bool   // in[junkLo:junkHi] are calls of undeclared tools
	junkLo  int
	junkHi  int
}

// where a block stands decides when its calls count.
type where uint8

const (
	inAnswer   where = iota // as they come
	inThoughts              // if the thoughts or the answer end right after
	alone                   // if nothing else is said: a bare answer
)

type phase uint8

const (
	between phase = iota
	inName
	inObject
	behind // all read, but what follows decides whether it counts
)

// bareBlock is a call without markers in an answer that is free to be none.
var bareBlock = Block{}

func (k *block) shift(n int) {
	for _, p := range [...]*int{&k.mark, &k.after, &k.startAt, &k.begunAt, &k.unit, &k.name, &k.junkLo, &k.junkHi} {
		*p -= n
	}
}

// enterBlock begins a block at the marker at hi.
func (l *Lexer) enterBlock(b *Block, marker string, at where) {
	l.block = block{
		b: b, where: at, mark: l.hi, after: l.hi + len(marker), outer: b.Section != "",
		bare: b.Style == Tagged && b.Section != "" && marker != b.Section,
	}
	l.queue = l.queue[:0]
	l.state = inBlock
	l.open(marker)
}

// open takes the marker at hi that begins a section or a call.
func (l *Lexer) open(marker string) {
	k := &l.block
	if marker == "" || marker != k.b.Section {
		k.started, k.startAt, k.begunAt = true, l.hi, l.hi+len(marker)
		k.list = strings.HasSuffix(marker, "[")
	}
	l.hi += len(marker)
}

// readBlock reads on in a block. True means that the block was left.
func (l *Lexer) readBlock(last bool) bool {
	k := &l.block
	for l.hi < len(l.in) {
		if l.hi-l.lo > maxHeld {
			if k.live {
				l.spoilt()
			} else {
				l.giveUp("too long to be held back")
			}
			return true
		}
		goOn := false
		switch k.phase {
		case between:
			goOn = l.readBetween(last)
		case inName:
			goOn = l.readName(last)
		case inObject:
			goOn = l.readObject()
		case behind:
			goOn = l.readBehind(last)
		}
		if l.state != inBlock {
			return true
		}
		if !goOn {
			break
		}
	}
	return false
}

// readBetween reads what stands around calls; false means that more input is
// needed.
func (l *Lexer) readBetween(last bool) bool {
	k := &l.block
	c := l.in[l.hi]
	if isSpace(c) {
		l.hi++
		return true
	}
	text, partial := l.blockMarker()
	if partial {
		return false // at the end of input, endBlock drops the rest
	}
	if text != "" {
		l.takeBlockMarker(text)
		return true
	}
	free := k.where != alone // bare answers have to be exact
	switch {
	case c == '{' && (k.started || k.list || free && k.b.objects(k.units > 0)):
		l.beginObject()
	case c == '[' && k.started && !k.list && (free || l.f.Bare == BareList):
		k.list = true
		l.hi++
	case (c == ',' || c == ';') && k.units > 0 && (free || k.list):
		l.hi++
	case c == ']' && k.list:
		l.hi++
		k.list = false
		if k.b.open() && k.fence == "" {
			l.blockEnds()
		}
	case (c == ']' || c == '}') && k.units > 0 && free: // one too many
		l.hi++
	case k.b.named() && (k.started || k.lists()) && isNameByte(c):
		k.phase, k.name = inName, l.hi
	case c == '`' && !free && k.units == 0 && k.fence == "":
		return l.openFence(last)
	default:
		l.unexpected("no call after the marker")
	}
	return true
}

// blockMarker finds the longest marker of the block at hi.
func (l *Lexer) blockMarker() (text string, partial bool) {
	b := l.block.b
	for _, s := range [...]string{b.End, b.SectionEnd, b.Start, b.Section, l.block.fence} {
		if s == "" || s[0] != l.in[l.hi] {
			continue
		}
		whole, part := l.at(l.hi, s)
		if whole && len(s) > len(text) {
			text = s
		}
		partial = partial || part
	}
	if l.f.Messages != nil && text == "" {
		for _, s := range l.f.Messages.Ends {
			whole, part := l.at(l.hi, s)
			if whole {
				return s, false
			}
			partial = partial || part
		}
	}
	return text, partial && text == ""
}

func (l *Lexer) takeBlockMarker(text string) {
	k := &l.block
	empty := k.started && !k.list && k.units == 0
	switch {
	case l.f.Messages != nil && slices.Contains(l.f.Messages.Ends, text): // is read again
		l.unexpected("a message without a call")
	case text == k.b.Start || text == k.b.Section:
		if k.started {
			l.unexpected("a marker without a call")
			return
		}
		l.open(text)
	case k.started && (k.calls > 0 || k.outer):
		l.unexpected("a block without a call")
	default:
		l.hi += len(text)
		if empty || text == k.b.SectionEnd || text == k.fence || !k.outer {
			l.blockEnds()
		}
	}
}

// openFence takes the line that opens a fence: ``` or ```json.
func (l *Lexer) openFence(last bool) bool {
	k := &l.block
	line := l.in[l.hi:]
	for i, c := range line {
		if c == '\n' {
			switch tag := strings.TrimRight(string(line[:i]), " \r"); tag {
			case "```", "```json", "```JSON":
				k.fence = "```"
				l.hi += i + 1
				return true
			}
			l.giveUp("not a json fence")
			return true
		}
	}
	if len(line) > 16 || last {
		l.giveUp("not a json fence")
		return true
	}
	return false
}

func (l *Lexer) beginObject() {
	k := &l.block
	style := k.b.Style
	if style != NameIsKey { // maybe the other shape of the family
		style = ArgsInObject
	}
	k.phase, k.unit, k.live = inObject, l.hi, false
	l.obj.reset(k.b, style, k.unmarked())
	l.readWith(&l.obj)
	if k.b.Literals {
		l.py.reset(&l.obj)
		l.readWith(&l.py)
	}
}

// readWith reads the call that begins with a reader that has been reset.
func (l *Lexer) readWith(r reader) { l.reader, l.got = r, r.call() }

// unmarked says that nothing but its content makes the block one of calls.
func (k *block) unmarked() bool { return k.where == alone || k.after == k.mark }

// lists says that further names can follow without a Start.
func (k *block) lists() bool { return k.b.Style == Expression && (k.list || k.units > 0) }

func isNameByte(c byte) bool {
	return c == '_' || c == '-' || c == '.' || c == ':' || c == '/' || c >= 0x80 ||
		'0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// word is the end of the name bytes from p on.
func (l *Lexer) word(p int) int {
	for p < len(l.in) && isNameByte(l.in[p]) {
		p++
	}
	return p
}

func (l *Lexer) skipSpace(p int) int {
	for p < len(l.in) && isSpace(l.in[p]) {
		p++
	}
	return p
}

// readName reads a name, an id where there is one, and the marker before the
// arguments.
func (l *Lexer) readName(last bool) bool {
	k := &l.block
	end := strings.TrimSpace(k.b.NameEnd)
	nameEnd := l.word(k.name)
	if method, _, found := strings.Cut(end, "("); found && strings.HasSuffix(string(l.in[k.name:nameEnd]), method) {
		nameEnd -= len(method)
	}
	p := l.skipSpace(nameEnd)
	id := ""
	if s := k.b.IDStart; s != "" {
		whole, partial := l.at(p, s)
		if whole {
			from := p + len(s)
			p = l.word(from)
			id = string(l.in[from:p])
			p = l.skipSpace(p)
		}
		if partial && !last {
			return false
		}
	}
	whole, partial := l.at(p, end)
	switch {
	case p == len(l.in) || partial:
		if last {
			l.hi = len(l.in)
		}
		return false
	case !whole:
		l.unexpected("no arguments after the name")
		return true
	}
	name := string(l.in[k.name:nameEnd])
	if k.b.Indexed {
		name, id = splitIndexed(name)
	}
	name = l.toolName(name)
	if (k.bare || k.unmarked() && k.calls == 0) && l.tools[name] == nil {
		l.giveUp("not a declared tool")
		return true
	}
	p += len(end)
	if head := k.b.HeadEnd; head != "" {
		i := bytes.Index(l.in[p:], []byte(head))
		switch {
		case i < 0 && len(l.in)-p <= maxTag:
			if last {
				l.hi = len(l.in)
			}
			return false
		case i < 0 || i > maxTag:
			l.unexpected("no arguments after the name")
			return true
		}
		p += i + len(head)
	}
	l.hi = p
	l.named(name, id)
	return true
}

// named begins the arguments behind a name.
func (l *Lexer) named(name, id string) {
	k := &l.block
	k.phase, k.unit, k.live = inObject, k.startAt, false
	if k.list || !k.started {
		k.unit = k.name
	}
	switch {
	case k.b.Style == Tagged:
		l.tag.reset(k.b, l.tools[name])
		l.readWith(&l.tag)
	case k.b.Style == Expression, strings.HasSuffix(k.b.NameEnd, "("):
		l.expr.reset(k.b)
		l.readWith(&l.expr)
	default:
		l.obj.reset(k.b, ArgsAfterName, false)
		l.readWith(&l.obj)
	}
	l.got.name, l.got.id, l.got.hasName = name, id, true
}

// splitIndexed takes functions.NAME:7 apart; the whole is the id.
func splitIndexed(s string) (name, id string) {
	name = strings.TrimPrefix(s, "functions.")
	if i := strings.LastIndexByte(name, ':'); i >= 0 {
		return name[:i], s
	}
	return name, ""
}

// readBehind looks at what follows calls that only count if nothing does.
func (l *Lexer) readBehind(last bool) bool {
	k := &l.block
	c := l.in[l.hi]
	if isSpace(c) {
		l.hi++
		return true
	}
	if k.where == inThoughts && l.first[c] {
		l.state = inThought // markers as they count in thoughts
		m, partial := l.find(l.hi)
		l.state = inBlock
		if partial && !last {
			return false
		}
		if m != nil && m.kind == thinkEnd {
			l.commit()
			return true
		}
		if m != nil && m.kind == callMarker && &l.f.Blocks[m.index] == k.b {
			k.phase = between
			l.open(m.text)
			return true
		}
	}
	l.giveUp("something follows")
	return true
}
