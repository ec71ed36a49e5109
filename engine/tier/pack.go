package tier

import (
	"fmt"

	"github.com/klauspost/compress/zstd"
)

// packer compresses states. Keys and values are mostly noise: of f16 the high
// bytes have some order and the low ones none, so the two are put apart first.
// Of 128 tokens of a 0.5B model (1.5 MiB) that leaves, at zstd's levels
//
//	         as it is             bytes apart
//	fastest  0.999  0.6/0.2 ms    0.988  0.5/0.2 ms
//	default  0.995  1.1/0.2 ms    0.950  1.6/0.5 ms
//	better   0.931  8.9/1.3 ms    0.855  9.1/1.0 ms
//
// of the bytes, in so much time to pack/unpack. The default level keeps up with
// a disk; the one above it would take the time of a thread that computes.
type packer struct {
	encoder *zstd.Encoder
	decoder *zstd.Decoder
	apart   []byte // for pack
	joined  []byte // for unpack
	out     []byte
}

func newPacker() (*packer, error) {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(mostState))
	if err != nil {
		return nil, err
	}
	return &packer{encoder: e, decoder: d}, nil
}

func (p *packer) close() { p.decoder.Close() }

// pack returns the packed state, valid until the next call.
func (p *packer) pack(state []byte) []byte {
	p.apart = resize(p.apart, len(state))
	half := (len(state) + 1) / 2
	low, high := p.apart[:half], p.apart[half:]
	for i := range high {
		low[i], high[i] = state[2*i], state[2*i+1]
	}
	if half > len(high) {
		low[half-1] = state[len(state)-1]
	}
	p.out = p.encoder.EncodeAll(p.apart, p.out[:0])
	return p.out
}

// unpack fills dst with a state of just its length.
func (p *packer) unpack(dst, packed []byte) error {
	p.joined = resize(p.joined, len(dst))
	got, err := p.decoder.DecodeAll(packed, p.joined[:0])
	if err != nil {
		return fmt.Errorf("%w: %w", errTorn, err)
	}
	if len(got) != len(dst) {
		return fmt.Errorf("%w: a state of %d bytes in place of %d", errTorn, len(got), len(dst))
	}
	half := (len(dst) + 1) / 2
	low, high := got[:half], got[half:]
	for i := range high {
		dst[2*i], dst[2*i+1] = low[i], high[i]
	}
	if half > len(high) {
		dst[len(dst)-1] = low[half-1]
	}
	return nil
}

func resize(b []byte, n int) []byte {
	if cap(b) < n {
		return make([]byte, n)
	}
	return b[:n]
}
