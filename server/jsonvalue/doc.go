// Package jsonvalue reads a JSON document as values that know their path, so
// that whoever decodes a request can say what is wrong and where.
//
// A document is checked once, by Parse; values are then slices of it. Order and
// duplicates of keys are kept, and a part that is only passed on (a schema, the
// arguments of a call) is taken as the bytes that came. Values are read-only and
// may be used on any goroutine.
package jsonvalue
