// Package lark turns grammars in Lark's notation, as the custom tools of agents
// carry them, into rules (GBNF) that a sampler can hold a model to.
//
// The way: tokens (token.go), definitions (parse.go, expression.go), terminals
// as regular expressions and rules as a graph (resolve.go, terminal.go), the
// graph without what a sampler can't run (normal.go, recursion.go), rules
// (emit.go). The text stands inside a JSON string, so it is escaped as one.
//
// Lark reads a text in two steps, a lexer's and a parser's. A sampler knows no
// lexer: any text is allowed that the rules derive, even where a lexer would
// have cut it differently, such as a keyword that runs into a name, or a lazy
// expression that matches more than it has to. Priorities and aliases change
// only what a parser makes of a text, so they are read and passed over. Ignored
// text may follow each terminal, but not begin the text, and white space that
// is ignored is bounded.
//
// Read are Lark's notation with templates and the imports from common, and of
// llguidance's dialect # comments, {m,n} and hyphens in names. What can't be
// held is told by an error that IsBeyond knows: look-around and anchors in
// expressions, %declare, %override, %extend, other imports, the rest of
// llguidance. Grammars come from clients: all work is bounded.
//
// The server is the caller, on request goroutines. Everything is safe for
// concurrent use.
package lark
