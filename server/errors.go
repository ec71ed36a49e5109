package server

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// requestError is a refusal as the client sees it. Only this package maps the
// errors of the layers below to it (see refusalOf in submit.go).
type requestError struct {
	Status     int
	Type       string
	Code       string // "" is null on the wire
	Param      string // JSON path of the offending value; "" is null
	Message    string
	RetryAfter time.Duration // 0 sends no header
}

func (e *requestError) Error() string {
	if strings.Contains(e.Message, e.Param) {
		return e.Message // names the field itself, or there is none
	}
	return e.Param + ": " + e.Message
}

// Error types of the wire contract, one for each class of status.
const (
	typeInvalid     = "invalid_request_error"
	typeAuth        = "authentication_error"
	typeNotFound    = "not_found"
	typeTooMany     = "too_many_requests"
	typeServer      = "server_error"
	typeUnavailable = "service_unavailable"
)

// Codes that clients are known to act on, or that name the kind of a refusal.
const (
	codeInvalidJSON      = "invalid_json"
	codeInvalidType      = "invalid_type"
	codeInvalidValue     = "invalid_value"
	codeMissing          = "missing_required_parameter"
	codeTooLarge         = "above_limit"
	codeUnsupported      = "unsupported_value"
	codeModelNotFound    = "model_not_found"
	codeContextLength    = "context_length_exceeded"
	codePreviousResponse = "previous_response_not_found"
	codeItemNotFound     = "item_not_found"
	codeRateLimit        = "rate_limit_exceeded"
	codeOverloaded       = "server_is_overloaded"
	codeLoading          = "model_loading"
	codeDraining         = "server_draining"
	codeCancelled        = "response_cancelled"
	codeTimeout          = "request_timeout"
	codeServerError      = "server_error"
)

// invalid is a 400 that names the value at fault.
func invalid(param, code, format string, args ...any) *requestError {
	return &requestError{
		Status: http.StatusBadRequest, Type: typeInvalid, Code: code, Param: param,
		Message: fmt.Sprintf(format, args...),
	}
}

// notFound is a 404 for something that a request named.
func notFound(param, code, format string, args ...any) *requestError {
	e := invalid(param, code, format, args...)
	e.Status, e.Type = http.StatusNotFound, typeNotFound
	return e
}

// unavailable is a 503 that tells when to come back.
func unavailable(code, message string, retryAfter time.Duration) *requestError {
	return &requestError{
		Status: http.StatusServiceUnavailable, Type: typeUnavailable, Code: code,
		Message: message, RetryAfter: retryAfter,
	}
}

// internal is a 500; the cause goes to the log, not to the client.
func internal(message string) *requestError {
	return &requestError{
		Status: http.StatusInternalServerError, Type: typeServer, Code: codeServerError, Message: message,
	}
}

// appendErrorObject appends {"message","type","param","code"} of the error.
func appendErrorObject(dst []byte, e *requestError) []byte {
	dst = append(dst, `{"message":`...)
	dst = appendString(dst, e.Message)
	dst = append(dst, `,"type":`...)
	dst = appendString(dst, e.Type)
	dst = append(dst, `,"param":`...)
	dst = appendStringOrNull(dst, e.Param)
	dst = append(dst, `,"code":`...)
	dst = appendStringOrNull(dst, e.Code)
	return append(dst, '}')
}

// present is a refusal as the profile tells it.
func (k *contract) present(e *requestError) *requestError {
	told := *e
	told.Status = cmp.Or(k.statuses[e.Status], e.Status)
	if k.hideWaiting && told.Status == http.StatusTooManyRequests {
		told.RetryAfter = 0
	}
	return &told
}

// appendError appends the body of a refusal.
func (k *contract) appendError(dst []byte, e *requestError) []byte {
	dst = append(dst, '{')
	if k.errorCode {
		dst = append(dst, `"errorCode":`...)
		dst = appendString(dst, cmp.Or(e.Code, e.Type))
		dst = append(dst, `,"message":`...)
		dst = appendString(dst, e.Message)
		dst = append(dst, `,"status":`...)
		dst = append(appendInt(dst, e.Status), ',')
	}
	dst = append(dst, `"error":`...)
	return append(appendErrorObject(dst, e), '}', '\n')
}

// retryAfter spells the time to wait, in whole seconds.
func (e *requestError) retryAfter() string {
	return strconv.Itoa(max(1, int(e.RetryAfter.Round(time.Second).Seconds())))
}

// writeError answers a request that has not been answered yet.
func (k *contract) writeError(w http.ResponseWriter, e *requestError) {
	e = k.present(e)
	body := k.appendError(nil, e)
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if e.RetryAfter > 0 {
		h.Set("Retry-After", e.retryAfter())
	}
	if e.Code == codeDraining {
		h.Set("Connection", "close") // the next request belongs on another node
	}
	if e.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="quern"`)
	}
	w.WriteHeader(e.Status)
	_, _ = w.Write(body) // a client that is gone needs no answer
}
