package lark

import (
	"fmt"

	"quern/models/schema"
)

// Error says what is wrong with a grammar, or what of it can't be held.
type Error struct {
	Line int // from 1; 0 where no line is to blame
	Msg  string
	// Beyond means that the grammar may be right, but can't be held: it is
	// schema.ErrUnsupported or schema.ErrTooLarge.
	Beyond error
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Msg
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.Msg)
}

func (e *Error) Unwrap() error { return e.Beyond }

func fault(line int, format string, args ...any) *Error {
	return &Error{Line: line, Msg: fmt.Sprintf(format, args...)}
}

func beyond(line int, format string, args ...any) *Error {
	return &Error{Line: line, Msg: fmt.Sprintf(format, args...), Beyond: schema.ErrUnsupported}
}

func tooLarge(line int, format string, args ...any) *Error {
	return &Error{Line: line, Msg: fmt.Sprintf(format, args...), Beyond: schema.ErrTooLarge}
}
