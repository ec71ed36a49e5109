package dialect

import (
	"errors"
	"fmt"
)

// Error is a fault of a template, found when it is compiled or while it runs.
type Error struct {
	Line int // of the tag that was being run, 0 where unknown
	Err  error
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return "template: " + e.Err.Error()
	}
	return fmt.Sprintf("template line %d: %v", e.Line, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// RaiseError says that the template called raise_exception.
type RaiseError struct{ Message string }

func (e *RaiseError) Error() string { return e.Message }

// Bounds of one rendering. A template that passes them is broken or hostile.
const (
	maxSteps       = 1 << 20 // tags run and items looped over
	maxDepth       = 200     // macros within macros
	maxOutputBytes = 64 << 20
	maxListItems   = 1 << 20
	maxSourceBytes = 1 << 20
	maxNesting     = 200 // of expressions and blocks in the source
)

var (
	errSteps  = errors.New("runs without end")
	errDepth  = errors.New("macros call each other too deeply")
	errOutput = fmt.Errorf("makes more than %d bytes", maxOutputBytes)
	errList   = fmt.Errorf("makes a list of more than %d items", maxListItems)
)

func fault(line int, format string, args ...any) error {
	return &Error{line, fmt.Errorf(format, args...)}
}
