// Package tokenizer turns rendered prompts into tokens and tokens back into
// text.
//
// It owns three rules. Text of a client never becomes a control token
// (Segment.Literal). The tokens of a prompt are those the reference gives for
// the whole text in one piece, although fragments between special tokens are
// cached, so that a growing conversation is tokenised once. What leaves a
// Decoder is whole UTF-8, and what leaves a StopMatcher can no longer become
// part of a stop string.
//
// A Tokenizer is shared by all request goroutines and is safe for concurrent
// use as far as Vocab.Tokenize is. A Decoder or a StopMatcher belongs to one
// request.
package tokenizer
