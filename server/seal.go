package server

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"errors"
)

// SealKeySize is the length of Config.SealKey in bytes.
const SealKeySize = 32

// seal encrypts what a client keeps for the node. Only a node with the same key
// can read it, and notices any change of it.
type seal struct{ aead cipher.AEAD }

// sealVersion is bound into every text, so that a later form is told from this.
const sealVersion = "quern/compaction/1"

var errForeignSeal = errors.New("it was not made by this node or has been changed")

// newSeal makes a seal; an empty key takes one that ends with the process.
func newSeal(key []byte) *seal {
	if len(key) == 0 {
		key = make([]byte, SealKeySize)
		_, _ = rand.Read(key) // never fails: the runtime ends the process instead
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // the length of the key is the config's to check
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err)
	}
	return &seal{aead}
}

// close returns text sealed, in base64 for URLs.
func (s *seal) close(text string) string {
	return base64.RawURLEncoding.EncodeToString(s.aead.Seal(nil, nil, []byte(text), []byte(sealVersion)))
}

// open returns the text of a seal.
func (s *seal) open(sealed string) (string, error) {
	raw, err := base64.RawURLEncoding.DecodeString(sealed)
	if err != nil {
		return "", errForeignSeal
	}
	text, err := s.aead.Open(nil, nil, raw, []byte(sealVersion))
	if err != nil {
		return "", errForeignSeal
	}
	return string(text), nil
}
