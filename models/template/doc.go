// Package template turns a conversation into the prompt of one model: it runs
// the model's own chat template, and sees to it that nothing a client said is
// lost and nothing a client wrote becomes a control token.
//
// When a template is loaded it is tried on small conversations, which tells
// what it can express (Caps). A conversation is then arranged so that the
// template can: several system messages become one, a second parallel call its
// own turn, tools that a template ignores a text in the system turn, and so on.
// What a template can express stays as it is. If a template refuses the
// arrangement, or a message does not show up in its prompt, the plainest one is
// tried: alternating user and assistant turns.
//
// Bytes are stable: the same conversation gives the same prompt, and no Go map
// stands between a request's JSON and the prompt. The turns of a conversation
// render the same when more turns follow, except where a template itself
// treats its last turns differently (thoughts that are dropped once a new user
// message comes, the empty thought before an answer): there the prompt of the
// next turn departs from the earlier one at that turn.
//
// Text of clients: see guard. A Template is immutable and may be used from any
// number of goroutines.
package template
