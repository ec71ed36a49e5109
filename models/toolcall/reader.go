package toolcall

// reader reads one call, byte by byte, from behind its marker on.
type reader interface {
	// step takes a byte. One that is broken is not taken and may come again.
	step(c byte) status
	// finish adds the closing that is missing at the end of an answer or of a
	// block. It reports false if more is wrong than that.
	finish() bool
	// cut makes of the arguments what can be told where a limit cut them.
	cut()
	// pending is how many of the last bytes have not become arguments that are
	// available, though they may.
	pending() int
	// closesList says that a ] can end the list that the call stands in.
	closesList() bool
	// call is what has been read.
	call() *written
}

// status is what a byte did.
type status uint8

const (
	more    status = iota
	broken         // cannot be read; the byte was not taken
	oneDone        // NameIsKey: a call is complete, the object goes on
	allDone        // the call is complete
	endDone        // Tagged: the call and its End
	secDone        // Tagged: the call and the end of its section
)

// written is the call that a reader has read so far.
type written struct {
	name    string
	id      string
	hasName bool
	args    []byte // read and not yet given out
	safe    int    // of args, what no repair can change any more
	comma   int    // where in args the last comma stands
	argsEnd bool
	anchor  bool // the arguments have come far enough to announce the call
}

func (w *written) call() *written { return w }

func (w *written) cut() {}

func (w *written) pending() int { return 0 }

// whole takes arguments that are complete at once.
func (w *written) whole(args []byte) {
	w.args = append(w.args[:0], args...)
	w.safe, w.anchor, w.argsEnd = len(w.args), true, true
}

// ready says that the call can be announced.
func (w *written) ready() bool { return w.hasName && w.anchor }

// given forgets the arguments that were safe to give out.
func (w *written) given() {
	n := copy(w.args, w.args[w.safe:])
	w.args = w.args[:n]
	w.comma -= w.safe
	w.safe = 0
}
