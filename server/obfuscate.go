package server

import "math/rand/v2"

// obfuscationBlock is what the size of a padded event is a multiple of, in
// bytes. It is more than most deltas have, so that the sizes of a stream, which
// show through TLS, hardly tell its words.
const obfuscationBlock = 64

// appendObfuscation appends the field that pads an event, which begins at from
// and lacks only its closing brace. The letters are random so that compression
// takes none of them away.
func appendObfuscation(dst []byte, from int) []byte {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	dst = append(dst, `,"obfuscation":"`...)
	tail := len("\"}\n\n")
	missing := obfuscationBlock - (len(dst)-from+tail)%obfuscationBlock
	for missing > 0 {
		bits := rand.Uint64()
		for n := 0; n < 10 && missing > 0; n++ {
			dst = append(dst, letters[bits&63])
			bits >>= 6
			missing--
		}
	}
	return append(dst, '"')
}
