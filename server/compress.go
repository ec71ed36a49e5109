package server

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// compressFrom is the size in bytes from which compressing an answer pays.
const compressFrom = 1024

// writeBody answers with a whole body, compressed where the client asks for it
// and it pays. Event streams never come here: a compressor would hold them back.
func writeBody(w http.ResponseWriter, r *http.Request, status int, contentType string, body []byte) {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Add("Vary", "Accept-Encoding")
	if len(body) >= compressFrom {
		if encoding := preferredEncoding(r.Header.Get("Accept-Encoding")); encoding != "" {
			h.Set("Content-Encoding", encoding)
			body = compress(encoding, body)
		}
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that is gone needs no answer
}

// preferredEncoding picks what the client weighs most; zstd where it does not care.
func preferredEncoding(accept string) string {
	best, bestWeight := "", 0.0
	for entry := range strings.SplitSeq(accept, ",") {
		name, params, _ := strings.Cut(strings.TrimSpace(entry), ";")
		name = strings.ToLower(strings.TrimSpace(name))
		if name != "gzip" && name != "zstd" {
			continue
		}
		weight := 1.0
		if q, ok := strings.CutPrefix(strings.TrimSpace(params), "q="); ok {
			weight, _ = strconv.ParseFloat(q, 64)
		}
		if weight > bestWeight || weight > 0 && weight == bestWeight && name == "zstd" {
			best, bestWeight = name, weight
		}
	}
	return best
}

var gzipWriters = sync.Pool{New: func() any {
	w, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level is valid
	return w
}}

var zstdEncoder = sync.OnceValue(func() *zstd.Encoder {
	e, _ := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1)) // the options are valid
	return e
})

func compress(encoding string, body []byte) []byte {
	if encoding == "zstd" {
		return zstdEncoder().EncodeAll(body, nil)
	}
	var out bytes.Buffer
	w := gzipWriters.Get().(*gzip.Writer)
	defer gzipWriters.Put(w)
	w.Reset(&out)
	_, _ = w.Write(body) // a bytes.Buffer takes everything
	_ = w.Close()
	return out.Bytes()
}
