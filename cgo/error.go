package cgo

// #include "shim.h"
import "C"

import "errors"

var (
	// ErrNoCells means that the batch found no room; nothing was changed.
	ErrNoCells = errors.New("no free cells in the context")
	// ErrAborted means that Abort stopped the step; its sequences are back where
	// they were, or empty where the model can't go back.
	ErrAborted = errors.New("step aborted")
	// ErrClosed means that the model, context or sampler was closed before.
	ErrClosed = errors.New("already closed")
	// ErrUnsupported means that this model or this mode can't do it.
	ErrUnsupported = errors.New("not supported")
	// ErrArgument means that the caller passed something impossible.
	ErrArgument = errors.New("bad argument")
)

// DecodeError is a failure of the computation itself. The sequences of the
// batch are back where they were, or empty where the model can't go back;
// other sequences are untouched.
type DecodeError struct{ Message string }

func (e *DecodeError) Error() string { return "decode failed: " + e.Message }

// codeError joins the message of a call with the sentinel of its code.
type codeError struct {
	msg string
	is  error
}

func (e *codeError) Error() string { return e.msg }
func (e *codeError) Unwrap() error { return e.is }

func newError(code C.int, msg string) error {
	switch code {
	case C.QUERN_OK:
		return nil
	case C.QUERN_NO_CELLS:
		return ErrNoCells
	case C.QUERN_ABORTED:
		return ErrAborted
	case C.QUERN_DECODE:
		return &DecodeError{Message: msg}
	case C.QUERN_BAD_ARG:
		return &codeError{msg, ErrArgument}
	case C.QUERN_UNSUPPORTED:
		return &codeError{msg, ErrUnsupported}
	}
	return errors.New(msg)
}

func errorOf(code C.int, e *C.quern_error) error {
	if code == C.QUERN_OK {
		return nil
	}
	return newError(code, C.GoString(&e.msg[0]))
}
