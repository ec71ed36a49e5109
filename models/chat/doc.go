// Package chat holds a conversation as plain data: what a request says, free
// of any wire format and of any model's prompt format.
//
// server decodes requests into it, models/template renders it, and
// models/toolcall reads its tools. Nothing here is ever a Go map, because the
// order of keys and the spelling of numbers reach the prompt and decide
// whether a cached prefix fits. Values are not changed once built, so they
// may be read from any goroutine.
package chat
