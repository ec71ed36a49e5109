// Package config is how a node is set up: the Config, its flags, and the one
// order in which sources count: flag, QUERN_* variable, YAML file, default.
//
// A key has one spelling everywhere: the flag --ctx-size, the variable
// QUERN_CTX_SIZE and the line "ctx-size:" of the file are the same key, and go
// through the same parser, that of the flag. Unknown keys and variables are
// errors, since a misspelt limit that is silently ignored is no limit.
//
// The package reads files and the environment it is given, once, at start; a
// Config is not changed after that and may be read by any goroutine.
package config
