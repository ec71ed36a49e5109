// Package testmodel writes a tiny scripted model as a GGUF file, so that
// tests of the whole node need no download.
//
// It is a one-layer llama whose weights are set by hand. The token just
// written picks the next one from a table; attention only finds out whether
// certain marks stand anywhere in the prompt. Its answers have margins that
// hold at any usual temperature:
//
//	any prompt                      Plain
//	tools offered (<tools>)         one call of CallName with CallArguments
//	... under a grammar             strings become "value", numbers 42
//	... and /notool in the prompt   Plain
//	a tool result in the prompt     ToolAnswer
//	/long in the prompt             Plain again and again, without end
//	a JSON grammar                  a small valid object
//
// The marks are tokens that only the chat template writes, except /notool and
// /long, which are ordinary text of a user. Weights hold no trained or
// foreign data.
package testmodel
