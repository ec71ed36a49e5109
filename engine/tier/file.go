package tier

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
)

// A file is a header, its tokens and their checksum, the packed state and its
// checksum. Integers are little endian.
//
//	0    magic
//	4    number of tokens
//	8    position of the first
//	12   bytes of the state
//	20   bytes of the packed state
//	28   identity
//	60   key of the block before
//	92   tokens, 4 bytes each
//	     crc32c of all that is above
//	     packed state
//	     crc32c of the packed state
const (
	fileMagic  = "QPT1"
	headBytes  = 92
	sumBytes   = 4
	mostTokens = 1 << 12
	mostState  = 1 << 32
)

var (
	crcTable = crc32.MakeTable(crc32.Castagnoli)
	le       = binary.LittleEndian

	errForeign = errors.New("is not a block of this node")
	errTorn    = errors.New("is torn")
)

// header is what a file says before its state.
type header struct {
	identity    Key
	block       Block
	raw, packed int64
}

func (h *header) size() int64 { return int64(headBytes+4*len(h.block.Tokens)+2*sumBytes) + h.packed }

func appendHeader(b []byte, h header) []byte {
	from := len(b)
	b = append(b, fileMagic...)
	b = le.AppendUint32(b, uint32(len(h.block.Tokens)))
	b = le.AppendUint32(b, uint32(h.block.Start))
	b = le.AppendUint64(b, uint64(h.raw))
	b = le.AppendUint64(b, uint64(h.packed))
	b = append(b, h.identity[:]...)
	b = append(b, h.block.Parent[:]...)
	b = appendTokens(b, h.block.Tokens)
	return le.AppendUint32(b, checksum(b[from:]))
}

// readHeader reads the header of a file of so many bytes and checks all of it
// against itself.
func readHeader(r io.Reader, fileSize int64) (h header, err error) {
	var fixed [headBytes]byte
	if _, err := io.ReadFull(r, fixed[:]); err != nil {
		return h, fmt.Errorf("%w in its header: %w", errTorn, err)
	}
	n := int(le.Uint32(fixed[4:]))
	if string(fixed[:4]) != fileMagic || n < 1 || n > mostTokens {
		return h, errForeign
	}
	rest := make([]byte, 4*n+sumBytes)
	if _, err := io.ReadFull(r, rest); err != nil {
		return h, fmt.Errorf("%w in its tokens: %w", errTorn, err)
	}
	sum := crc32.Update(checksum(fixed[:]), crcTable, rest[:4*n])
	if sum != le.Uint32(rest[4*n:]) {
		return h, fmt.Errorf("%w: checksum of the header", errTorn)
	}
	h.block.Start = int(le.Uint32(fixed[8:]))
	h.raw, h.packed = int64(le.Uint64(fixed[12:])), int64(le.Uint64(fixed[20:]))
	copy(h.identity[:], fixed[28:])
	copy(h.block.Parent[:], fixed[28+sha256.Size:])
	h.block.Tokens = make([]int32, n)
	for i := range h.block.Tokens {
		h.block.Tokens[i] = int32(le.Uint32(rest[4*i:]))
	}
	h.block.Key = KeyOf(h.block.Parent, h.block.Tokens)
	if h.raw < 0 || h.raw > mostState || h.packed < 0 || h.size() != fileSize {
		return h, fmt.Errorf("%w: %d bytes in place of %d", errTorn, fileSize, h.size())
	}
	return h, nil
}

// openBlock opens a file and reads its header, which must be that of the key.
func openBlock(path string, identity, key Key) (*os.File, header, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, header{}, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errForeign
	}
	var h header
	if err == nil {
		h, err = readHeader(f, info.Size())
	}
	if err == nil && (h.identity != identity || h.block.Key != key) {
		err = errForeign
	}
	if err != nil {
		_ = f.Close()
		return nil, h, err
	}
	return f, h, nil
}

// creator is os.CreateTemp, or what a test puts in its place.
type creator func(dir, pattern string) (tempFile, error)

type tempFile interface {
	io.WriteCloser
	Name() string
}

func createTemp(dir, pattern string) (tempFile, error) { return os.CreateTemp(dir, pattern) }

// writeBlock puts a file in place in one piece: whoever opens path finds the
// whole of it, or what was there before.
func writeBlock(create creator, path string, h header, packed []byte) (err error) {
	f, err := create(filepath.Dir(path), tempPattern)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	for _, part := range [][]byte{appendHeader(nil, h), packed, le.AppendUint32(nil, checksum(packed))} {
		if _, err = f.Write(part); err != nil {
			_ = f.Close()
			return err
		}
	}
	if err = f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

func checksum(b []byte) uint32 { return crc32.Checksum(b, crcTable) }
