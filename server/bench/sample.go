package bench

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"time"
)

// Sample is what one request gave.
type Sample struct {
	Start, End time.Time
	Deltas     []time.Time // when each piece of output came
	Text       string
	Input      int // tokens, as the server counts them
	Output     int
	Cached     int
	Turn       int // of the conversation, from 0
	Err        *Failure
}

// TTFT is the time to the first piece of output.
func (s *Sample) TTFT() time.Duration {
	if len(s.Deltas) == 0 {
		return 0
	}
	return s.Deltas[0].Sub(s.Start)
}

// event holds what is read of the events of a stream.
type event struct {
	Type     string    `json:"type"`
	Delta    string    `json:"delta"`
	Message  string    `json:"message"`
	Error    *apiError `json:"error"`
	Response *struct {
		Error *apiError `json:"error"`
		Usage *struct {
			Input   int `json:"input_tokens"`
			Output  int `json:"output_tokens"`
			Details struct {
				Cached int `json:"cached_tokens"`
			} `json:"input_tokens_details"`
		} `json:"usage"`
	} `json:"response"`
}

type apiError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// maxEventBytes bounds one event; the last holds the whole answer.
const maxEventBytes = 64 << 20

// read takes in a stream of server-sent events. Only a stream that ends with a
// response that is complete, or cut at the token limit, is a success.
func (s *Sample) read(r io.Reader, onDelta func()) error {
	var text strings.Builder
	scanner := bufio.NewScanner(r)
	scanner.Buffer(make([]byte, 64<<10), maxEventBytes)
	for scanner.Scan() {
		data, ok := bytes.CutPrefix(scanner.Bytes(), []byte("data:"))
		if !ok {
			continue
		}
		now := time.Now()
		if data = bytes.TrimSpace(data); bytes.Equal(data, []byte("[DONE]")) {
			continue
		}
		var e event
		if err := json.Unmarshal(data, &e); err != nil {
			return &Failure{Kind: "stream", Message: "an event is no JSON: " + err.Error()}
		}
		before := len(s.Deltas)
		done, err := s.take(&e, now, &text)
		if err != nil {
			return err
		}
		if len(s.Deltas) > before {
			onDelta()
		}
		if done {
			s.Text = text.String()
			return nil
		}
	}
	if err := scanner.Err(); err != nil {
		return err
	}
	return &Failure{Kind: "stream", Message: "ended without a terminal event"}
}

func (s *Sample) take(e *event, now time.Time, text *strings.Builder) (done bool, err error) {
	switch {
	case strings.HasSuffix(e.Type, ".delta"):
		s.Deltas = append(s.Deltas, now)
		if e.Type == "response.output_text.delta" {
			text.WriteString(e.Delta)
		}
	case e.Type == "response.completed", e.Type == "response.incomplete":
		if e.Response == nil || e.Response.Usage == nil {
			return false, &Failure{Kind: "stream", Message: e.Type + " without usage"}
		}
		u := e.Response.Usage
		s.Input, s.Output, s.Cached = u.Input, u.Output, u.Details.Cached
		return true, nil
	case e.Type == "error", e.Type == "response.failed":
		f := &Failure{Kind: e.Type, Message: e.Message}
		failed := e.Error
		if e.Response != nil && e.Response.Error != nil {
			failed = e.Response.Error
		}
		if failed != nil {
			f.Message = strings.TrimSpace(failed.Code + " " + failed.Message)
		}
		return false, f
	}
	return false, nil
}
