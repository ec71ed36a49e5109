package toolcall

// queued is a call that waits for what follows it.
type queued struct {
	name, id string
	args     []byte
}

// readObject feeds a call until it is complete or broken.
func (l *Lexer) readObject() bool {
	k := &l.block
	for l.hi < len(l.in) {
		st := l.reader.step(l.in[l.hi])
		if st == broken {
			return l.repair()
		}
		l.hi++
		if st != more {
			l.progress()
			l.callDone(st)
			if l.state == inBlock && (st == secDone || st == endDone && !k.outer) {
				l.blockEnds()
			}
			return true
		}
		if !k.live && k.where == inAnswer && l.got.ready() {
			l.announce() // at this byte, however the input is cut
		}
		if k.unmarked() && !k.list && l.got.hasName && l.tools[l.got.name] == nil {
			l.giveUp("not a declared tool")
			return true
		}
	}
	l.progress()
	return false
}

// progress gives out the arguments of an announced call so far.
func (l *Lexer) progress() {
	k := &l.block
	if !k.live {
		return
	}
	l.take(l.hi-l.lo-min(l.hi-l.lo, l.reader.pending()), asCall)
	l.emit(ArgsDelta, l.got.args[:l.got.safe])
	l.got.given()
}

// announce opens the current call, if its tool is declared.
func (l *Lexer) announce() {
	t := l.tools[l.got.name]
	if t == nil {
		return
	}
	l.giveJunk()
	l.newMessage()
	l.block.live, l.said = true, true
	l.events = append(l.events, Event{Kind: CallStart, Index: l.calls, Name: t.name, ID: l.got.id})
}

// callDone ends the call that has been read. With oneDone the object goes on
// with another (NameIsKey).
func (l *Lexer) callDone(st status) {
	k := &l.block
	if k.b.Style == NameIsKey && st == allDone { // its calls have been counted
		if k.junk {
			k.junkHi = l.hi
		}
		l.unitDone()
		return
	}
	t := l.tools[l.got.name]
	hasArgs := l.got.argsEnd
	if !hasArgs { // left out
		l.got.whole([]byte("{}"))
	}
	switch {
	case !l.got.hasName, k.where == alone && (!hasArgs || t != nil && !t.fits(l.got.args)):
		l.giveUp("no call")
		return
	case t == nil && k.where != inAnswer:
		l.giveUp("not a declared tool")
		return
	case t == nil:
		l.malformed("not a declared tool: " + clip(l.got.name))
		if !k.junk {
			k.junk, k.junkLo = true, k.unit
		}
		k.junkHi = l.hi
	case k.where == inAnswer:
		if !k.live {
			l.announce()
		}
		l.progress()
		l.endCall(false)
	default:
		l.queue = append(l.queue, queued{t.name, l.got.id, append([]byte(nil), l.got.args...)})
	}
	if l.state != inBlock {
		return
	}
	if st == oneDone {
		l.got.hasName, l.got.argsEnd = false, false
		k.live, k.unit = false, l.hi
		return
	}
	l.unitDone()
}

func clip(s string) string {
	if len(s) > 64 {
		return s[:64]
	}
	return s
}

// unitDone goes on behind an object.
func (l *Lexer) unitDone() {
	k := &l.block
	k.units++
	k.phase, k.started, k.live = between, false, false
	if k.where == alone && !k.list && k.fence == "" {
		l.blockEnds()
	}
}

// endCall closes the announced call.
func (l *Lexer) endCall(cut bool) {
	l.events = append(l.events, Event{Kind: CallEnd, Index: l.calls, ID: l.got.id, Cut: cut})
	l.block.live = false
	l.block.calls++
	l.countCall()
}

func (l *Lexer) countCall() {
	l.calls++
	l.said = true
	if l.o.MaxCalls > 0 && l.calls >= l.o.MaxCalls {
		l.state = finished
	}
}

// giveJunk gives out the calls of undeclared tools as text.
func (l *Lexer) giveJunk() {
	k := &l.block
	if !k.junk {
		return
	}
	k.junk = false
	if l.segment && k.mark > l.lo {
		l.giveText(k.mark - l.lo) // white space inside a message
	}
	l.take(max(k.junkLo-l.lo, 0), asCall)
	l.giveText(k.junkHi - l.lo)
}

// repair decides what to do with an object that cannot be read at hi. If only
// closing brackets are missing before the block's end, they are added; from what
// only Python writes on, it is read as Python.
func (l *Lexer) repair() bool {
	k := &l.block
	text, partial := l.blockMarker()
	if partial { // the scanner can be asked again about a byte it refused
		l.progress()
		return false
	}
	listEnd := l.in[l.hi] == ']' && k.list && l.reader.closesList()
	if (text != "" || listEnd) && l.got.hasName && (l.reader.finish() || l.leftOut()) {
		l.progress()
		l.callDone(allDone)
		return true
	}
	if c := l.in[l.hi]; l.reader == reader(&l.obj) && !k.unmarked() && startsLiteral(c) {
		l.py.reset(&l.obj) // what was read is the same in both languages
		l.readWith(&l.py)
		return true
	}
	if k.live {
		l.spoilt()
		return true
	}
	l.giveUp("not JSON")
	return true
}

// spoilt ends the announced call where it cannot be read on.
func (l *Lexer) spoilt() {
	l.progress()
	l.malformed("arguments that are not JSON")
	l.endCall(true)
	if l.state == inBlock {
		l.leave(l.lo)
	}
}

// unexpected meets a byte, or a marker, that has no place between calls.
func (l *Lexer) unexpected(why string) {
	k := &l.block
	switch {
	case k.started:
		l.giveUp(why)
	case k.where == inThoughts && k.b.open() && k.units > 0:
		k.phase = behind
	case k.where != inAnswer:
		l.giveUp(why)
	default:
		l.blockEnds()
	}
}

// blockEnds is where a block is complete at hi.
func (l *Lexer) blockEnds() {
	k := &l.block
	switch {
	case k.where != inAnswer && len(l.queue) == 0:
		l.giveUp("no call")
	case k.where != inAnswer:
		k.phase = behind
	case k.calls == 0:
		if !k.junk {
			l.malformed("a block without a call")
		}
		l.giveText(l.hi - l.lo)
		l.leave(l.hi)
	default:
		l.giveJunk()
		l.take(l.hi-l.lo, asCall)
		l.newMessage()
		l.state = inText
		l.keep = l.hi
	}
}

// leave goes on as text, or as thoughts, from p on.
func (l *Lexer) leave(p int) {
	l.state, l.line = inText, true
	if l.block.where == inThoughts {
		l.state = inThought
	}
	l.hi, l.keep = p, p
}

// giveUp makes text, or thoughts, of a block that is none: its first marker
// and all up to it, the rest being read again.
func (l *Lexer) giveUp(why string) {
	k := &l.block
	switch {
	case k.where == inThoughts && k.phase == behind: // only discussed
		l.giveReasoning(l.hi - l.lo)
	case k.where == inThoughts:
		l.giveReasoning(k.after - l.lo)
	case k.where == alone:
		l.o.Bare = false
	case k.calls == 0:
		l.malformed(why)
		if k.unmarked() { // else it would begin again
			l.o.Forced, l.o.Bare = false, false
		}
		l.giveText(k.after - l.lo)
	default:
		l.malformed(why)
		l.giveJunk()
		from := k.unit
		if k.started {
			from = k.startAt
		}
		l.take(max(from-l.lo, 0), asCall)
		if k.started {
			l.giveText(k.begunAt - l.lo)
		}
	}
	l.leave(l.lo)
}

// commit lets the waiting calls count.
func (l *Lexer) commit() {
	l.take(l.hi-l.lo, asCall)
	l.newMessage()
	l.leave(l.hi)
	for i := range l.queue {
		q := &l.queue[i]
		l.events = append(l.events, Event{Kind: CallStart, Index: l.calls, Name: q.name, ID: q.id})
		l.emit(ArgsDelta, q.args)
		l.events = append(l.events, Event{Kind: CallEnd, Index: l.calls, ID: q.id})
		if l.countCall(); l.state == finished {
			return
		}
	}
	l.newMessage()
}

// endBlock decides an open block at the end of the answer.
func (l *Lexer) endBlock(cut bool) {
	k := &l.block
	read := k.phase == between // what was read was ended by the model
	if k.phase == inName && !cut && k.b.Style == Tagged && k.b.NameEnd == "" {
		l.named(string(l.in[k.name:l.word(k.name)]), "") // a name alone
	}
	if k.phase == inObject {
		l.endObject(cut)
		if l.state != inBlock || k.phase == inObject {
			return
		}
	}
	open := k.phase == inName || k.started
	whole := k.phase == behind || k.units > 0 && (read || k.where == alone || k.b.open())
	l.hi = len(l.in)
	switch {
	case k.where != inAnswer && whole && !open && !cut && len(l.queue) > 0:
		l.commit()
	case k.where != inAnswer || open:
		l.giveUp("no call before the end")
	default:
		l.blockEnds()
	}
}

// endObject decides a call that the end of the answer interrupts. A limit
// leaves its arguments as they are; else missing brackets are added.
func (l *Lexer) endObject(cut bool) {
	k := &l.block
	o := l.got
	l.hi = len(l.in)
	if !cut && o.hasName && (l.reader.finish() || l.leftOut()) {
		l.progress()
		l.callDone(allDone)
		return
	}
	if k.where != inAnswer || !o.hasName || l.tools[o.name] == nil || !cut && !k.live {
		l.giveUp("no call before the end")
		return
	}
	if !k.live {
		l.announce()
	}
	if !cut && l.reader.pending() > 0 {
		l.spoilt()
		return
	}
	l.take(l.hi-l.lo, asCall)
	if cut {
		l.reader.cut()
	}
	l.emit(ArgsDelta, o.args) // as far as it was written
	if !cut {
		l.malformed("arguments that are not JSON")
	}
	l.endCall(!o.argsEnd)
	if l.state == inBlock {
		l.leave(l.hi)
	}
}
