package tier

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
)

// Key stands for a cache salt and all tokens from the first of a prefix to the
// last of a block.
type Key [sha256.Size]byte

func (k Key) String() string { return hex.EncodeToString(k[:]) }

// Block names a stretch of a prefix: its tokens, and the key of what is before.
type Block struct {
	Key    Key
	Parent Key // of the block before; of the root if Start is 0
	Start  int // position of the first token
	Tokens []int32
}

// RootKey is the parent of the first blocks under a cache salt.
func RootKey(salt string) Key { return sha256.Sum256([]byte("quern prefix\x00" + salt)) }

// KeyOf is the key of the block with these tokens after parent.
func KeyOf(parent Key, tokens []int32) Key {
	b := make([]byte, 0, sha256.Size+4*len(tokens))
	b = append(b, parent[:]...)
	return sha256.Sum256(appendTokens(b, tokens))
}

func appendTokens(b []byte, tokens []int32) []byte {
	for _, t := range tokens {
		b = binary.LittleEndian.AppendUint32(b, uint32(t))
	}
	return b
}
