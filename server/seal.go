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
// can read it, for the owner it was made for, and notices any change of it.
type seal struct{ aead cipher.AEAD }

// sealVersion is bound into every text, so that a later form is told from this.
const sealVersion = "quern/compaction/2"

var errForeignSeal = errors.New("it was not made by this node for this API key, or has been changed")

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

// close returns text sealed for an owner, in base64 for URLs. Where there are no
// keys all are one owner.
func (s *seal) close(owner, text string) string {
	return base64.RawURLEncoding.EncodeToString(s.aead.Seal(nil, nil, []byte(text), boundTo(owner)))
}

// open returns the text of a seal.
func (s *seal) open(owner, sealed string) (string, error) {
	raw, err := base64.RawURLEncoding.DecodeString(sealed)
	if err != nil {
		return "", errForeignSeal
	}
	text, err := s.aead.Open(nil, nil, raw, boundTo(owner))
	if err != nil {
		return "", errForeignSeal
	}
	return string(text), nil
}

// boundTo is what a seal vouches for beside its text.
func boundTo(owner string) []byte { return []byte(sealVersion + "\x00" + owner) }
