// Package toolcall knows how model families write tool calls and thoughts.
//
// A family is one Format, a row of data in rows.go and message_rows.go. From the same row come
// the Lexer, which splits what a model writes into text, reasoning and calls,
// and the Grammar, which makes a model write a call or an answer of a given
// schema. Collected and streamed answers use the same Lexer, so they cannot
// differ.
//
// Some families write an answer as messages with headers: their rows have
// Messages, whose headers lead the lexer into text, thoughts or a call.
//
// The lexer never loses a byte: what does not become a call is text, whatever
// it looks like. It holds back only what may still turn out to be a marker, or
// a call of which nothing is known yet.
//
// A row is chosen by marks that only one family writes (ForTemplate). For a template
// without any, Probe renders answers that differ in one thing each, reads the marks
// off the differences, and keeps what it has found if a lexer that goes by it reads
// all of these answers.
//
// server makes one Lexer for a request, on the request's goroutine; Formats
// are read-only and shared.
package toolcall
