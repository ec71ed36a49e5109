// Package sdktest runs OpenAI's Go SDK against the server. It stands apart
// because that SDK takes long to compile, which the server's own tests, and
// above all their instrumented builds, are spared.
package sdktest
