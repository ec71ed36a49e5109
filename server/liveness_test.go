package server

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"quern/engine"
	"quern/server/servertest"
)

// A call is shown when its name is known; until then the tokens come and the
// client hears nothing of them.
func TestHeartbeatsWhileACallIsHeldBack(t *testing.T) {
	answer := strings.Repeat("\n", 60) + call(`{"city": "Paris"}`) // blanks wait for a letter
	n := newNode(t, answer, nodeOptions{cost: 5 * time.Millisecond, config: Config{Heartbeat: 40 * time.Millisecond, Progress: 100 * time.Millisecond}})
	s := n.stream(`{"input":"hi",` + weatherTool + `}`)
	require.Positive(t, s.Comments)
	held := inPhase(s, "output")
	require.NotEmpty(t, held)
	require.Positive(t, dig(held[len(held)-1], "progress", "output_tokens"))
}

// inPhase are the repeated response.in_progress of a phase. On a slow machine
// those of other phases may come before them.
func inPhase(s *servertest.Stream, phase string) (found []servertest.Object) {
	for _, e := range s.Of("response.in_progress") {
		if _, repeated := e["progress"]; repeated && dig(e, "progress", "phase") == phase {
			found = append(found, e)
		}
	}
	return found
}

func TestHeartbeatsWhileQueued(t *testing.T) {
	n := newNode(t, strings.Repeat("word ", 40), nodeOptions{
		cost: 2 * time.Millisecond, engine: engine.Config{MaxRunning: 1},
		config: Config{Heartbeat: 20 * time.Millisecond, Progress: 60 * time.Millisecond},
	})
	hangUp, _ := openStream(t, n, `{"input":"hi","stream":true}`)
	defer hangUp()
	s := n.stream(`{"input":"hi"}`)
	require.Positive(t, s.Comments)
	require.NotEmpty(t, inPhase(s, "queued"))
}

func TestShortAnswersHaveNoHeartbeat(t *testing.T) {
	s := newNode(t, "hi").stream(`{"input":"hi"}`)
	require.Zero(t, s.Comments)
	require.Len(t, s.Of("response.in_progress"), 1)
}

// A client that sends all before it reads still gets the refusal, whatever
// refuses the request.
func TestRefusalsOutliveTheBody(t *testing.T) {
	n := newNode(t, "hi", nodeOptions{config: Config{MaxBody: 4096, APIKeys: []string{"one"}}})
	const size = 8 << 20
	for _, row := range []struct {
		head   string
		status int
	}{
		{"Authorization: Bearer one\r\nContent-Type: application/json\r\n", 413},
		{"Authorization: Bearer one\r\nContent-Type: text/plain\r\n", 415},
		{"Authorization: Bearer two\r\nContent-Type: application/json\r\n", 401},
	} {
		conn, err := net.Dial("tcp", n.http.Listener.Addr().String()) //nolint:noctx // on loopback
		require.NoError(t, err)
		_, err = fmt.Fprintf(conn, "POST /v1/responses HTTP/1.1\r\nHost: x\r\n%sContent-Length: %d\r\n\r\n", row.head, size)
		require.NoError(t, err)
		_, err = io.WriteString(conn, strings.Repeat("a", size))
		require.NoError(t, err, "the whole body is taken")
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		require.NoError(t, err)
		require.Equal(t, row.status, res.StatusCode)
		body, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		errorOf(t, string(body))
		require.NoError(t, res.Body.Close())
		require.NoError(t, conn.Close())
	}
}

func TestErrorsAreNotDoubled(t *testing.T) {
	require.Equal(t, "input[0].role is required", invalid("input[0].role", codeMissing, "input[0].role is required").Error())
	require.Equal(t, "model: not here", invalid("model", codeMissing, "not here").Error())
	require.Equal(t, "not here", invalid("", codeMissing, "not here").Error())
}
