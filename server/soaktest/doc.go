// Package soaktest keeps a node busy as clients do who are in a hurry: heads
// that many share, conversations, tools, streams and whole answers, at any time
// cancelled or hung up on. Whatever is answered must be what a second node says
// that does one request at a time and remembers nothing, and memory must stay
// where it was.
//
// Tests of the server run it over the scripted engine, where answers are exact;
// those of package main over a real model, where a Judge has to tell near ties
// from wrong answers.
package soaktest
