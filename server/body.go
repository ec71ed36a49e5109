package server

import (
	"bytes"
	"errors"
	"github.com/klauspost/compress/gzip"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/klauspost/compress/zstd"

	"quern/server/jsonvalue"
)

// maxZstdWindow bounds the memory that a compressed body may claim at once.
const maxZstdWindow = 32 << 20

// readBody reads and checks the JSON document of a request.
func (s *Server) readBody(c *gin.Context) (jsonvalue.Value, *requestError) {
	if err := checkContentType(c.GetHeader("Content-Type")); err != nil {
		return jsonvalue.Value{}, err
	}
	if c.Request.ContentLength > s.cfg.MaxBody {
		return jsonvalue.Value{}, s.tooLarge()
	}
	control := http.NewResponseController(c.Writer)
	// A client that sends half a body holds its goroutine no longer than this.
	_ = control.SetReadDeadline(time.Now().Add(s.cfg.BodyTimeout))
	defer func() { _ = control.SetReadDeadline(time.Time{}) }()

	body, err := s.bodyReader(c)
	if err != nil {
		return jsonvalue.Value{}, err
	}
	defer body.Close()
	m := &meter{r: body, in: s.intake}
	doc, failed := s.readAll(m, c.Request.ContentLength)
	exchangeOf(c).held += m.held
	if failed != nil {
		return jsonvalue.Value{}, failed
	}
	v, parseErr := jsonvalue.Parse(doc, s.cfg.Limits.Depth)
	if parseErr != nil {
		return jsonvalue.Value{}, invalid("", codeInvalidJSON, "%s", parseErr)
	}
	return v, nil
}

func checkContentType(header string) *requestError {
	kind, params, err := mime.ParseMediaType(header)
	charset := strings.ToLower(params["charset"])
	if err == nil && kind == "application/json" && (charset == "" || charset == "utf-8" || charset == "utf8") {
		return nil
	}
	if header == "" {
		header = "none"
	}
	return &requestError{
		Status: http.StatusUnsupportedMediaType, Type: typeInvalid, Code: "unsupported_media_type",
		Message: "the body must be sent with Content-Type: application/json, got " + clip(header),
	}
}

// bodyReader undoes Content-Encoding. The limit holds for the bytes on the wire
// as well; readAll applies it to what they unpack to.
func (s *Server) bodyReader(c *gin.Context) (io.ReadCloser, *requestError) {
	wire := http.MaxBytesReader(c.Writer, c.Request.Body, s.cfg.MaxBody)
	switch encoding := strings.ToLower(strings.TrimSpace(c.GetHeader("Content-Encoding"))); encoding {
	case "", "identity":
		return wire, nil
	case "gzip", "x-gzip":
		r, err := gzip.NewReader(wire)
		if err != nil {
			return nil, invalid("", codeInvalidJSON, "the body is not valid gzip: %s", err)
		}
		return r, nil
	case "zstd":
		r, err := zstd.NewReader(wire, zstd.WithDecoderConcurrency(1),
			zstd.WithDecoderMaxWindow(maxZstdWindow), zstd.WithDecoderLowmem(true))
		if err != nil {
			return nil, invalid("", codeInvalidJSON, "the body is not valid zstd: %s", err)
		}
		return r.IOReadCloser(), nil
	default:
		return nil, &requestError{
			Status: http.StatusUnsupportedMediaType, Type: typeInvalid, Code: "unsupported_encoding",
			Message: "Content-Encoding must be gzip or zstd, or absent, got " + clip(encoding),
		}
	}
}

func (s *Server) readAll(r io.Reader, announced int64) ([]byte, *requestError) {
	var buf bytes.Buffer
	buf.Grow(int(min(max(announced, 512), 1<<20)) + bytes.MinRead)
	n, err := io.Copy(&buf, io.LimitReader(r, s.cfg.MaxBody+1))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.Is(err, errNoIntake):
		return nil, s.overloaded(http.StatusTooManyRequests, errNoIntake.Error())
	case n > s.cfg.MaxBody, errors.As(err, &tooLarge):
		return nil, s.tooLarge()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, &requestError{
			Status: http.StatusRequestTimeout, Type: typeInvalid, Code: codeTimeout,
			Message: "the body did not arrive in time",
		}
	case err != nil:
		return nil, invalid("", codeInvalidJSON, "the body can't be read: %s", err)
	}
	return buf.Bytes(), nil
}

// Bounds of what is read of a body that nobody wants.
const (
	dropBytes = 256 << 20
	dropTime  = 5 * time.Second
)

// dropBody reads what is left of a refused body. Many clients look for an answer
// only when they have sent all, and a connection that is closed on unread data
// is reset, which loses the answer.
func dropBody(control *http.ResponseController, body io.Reader) {
	_ = control.SetReadDeadline(time.Now().Add(dropTime))
	_, _ = io.CopyN(io.Discard, body, dropBytes) // the end, whichever it is
	_ = control.SetReadDeadline(time.Time{})
}

// expectsContinue says that the client waits for a word before it sends the
// body: the refusal is that word.
func expectsContinue(r *http.Request) bool {
	return strings.EqualFold(r.Header.Get("Expect"), "100-continue")
}

func (s *Server) tooLarge() *requestError {
	e := invalid("", codeTooLarge, "the body is larger than %d bytes", s.cfg.MaxBody)
	e.Status = http.StatusRequestEntityTooLarge
	return e
}
