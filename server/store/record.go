package store

import (
	"encoding/binary"
	"errors"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// Record is one response as it is kept. A record belongs to the owner of an API
// key; nobody else finds it.
type Record struct {
	Owner    string
	ID       string
	Previous string // id of the response that it continues; "" begins a conversation
	Response []byte // the resource, JSON
	Input    []byte // its input items, JSON, comma between them
	Output   []byte // its output items, the same
	Events   []byte // of a stream that can be taken up again; nil for none
}

// packVersion is the first byte of a packed record.
const packVersion = 1

var errDamaged = errors.New("store: a record is damaged")

// The coders are shared; EncodeAll and DecodeAll may be called at once.
var (
	encoder = sync.OnceValue(func() *zstd.Encoder {
		e, _ := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1)) // the options are valid
		return e
	})
	decoder = sync.OnceValue(func() *zstd.Decoder {
		d, _ := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxUnpacked)) // the same
		return d
	})
)

// maxUnpacked bounds what a record may unpack to, in bytes.
const maxUnpacked = 1 << 30

// pack writes the parts of a record, each behind its length, and compresses
// them; zstd adds a checksum.
func (r *Record) pack() []byte {
	var plain []byte
	for _, part := range [][]byte{[]byte(r.Previous), r.Response, r.Input, r.Output, r.Events} {
		plain = append(binary.AppendUvarint(plain, uint64(len(part))), part...)
	}
	return encoder().EncodeAll(plain, []byte{packVersion})
}

// unpack reads what pack has written.
func unpack(owner, id string, packed []byte) (Record, error) {
	if len(packed) == 0 || packed[0] != packVersion {
		return Record{}, errDamaged
	}
	plain, err := decoder().DecodeAll(packed[1:], nil)
	if err != nil {
		return Record{}, errDamaged
	}
	r := Record{Owner: owner, ID: id}
	var previous []byte
	for _, part := range []*[]byte{&previous, &r.Response, &r.Input, &r.Output, &r.Events} {
		n, size := binary.Uvarint(plain)
		if size <= 0 || n > uint64(len(plain)-size) {
			return Record{}, errDamaged
		}
		plain = plain[size:]
		*part, plain = plain[:n:n], plain[n:]
	}
	if len(plain) > 0 {
		return Record{}, errDamaged
	}
	r.Previous = string(previous)
	return r, nil
}
