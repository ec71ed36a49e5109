// Package server is the HTTP side of a node and the only place that knows the
// shapes of OpenAI's API.
//
// It owns JSON, events, limits, keys and status codes. Everything of a request
// runs on the goroutine that net/http gives it: decoding, the template,
// tokenising, the compiling of grammars, reading the engine's stream, parsing
// the output, writing. The engine is reached by Submit and by its Stream alone.
//
// A reader starts at responses.go, which is one request from top to bottom; the
// README traces it.
package server
