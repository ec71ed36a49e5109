package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"quern/models/testmodel"
	"quern/server/keys"
)

// output is what a command writes, to be read meanwhile.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// readyAt is where the log says that a node listens.
var readyAt = regexp.MustCompile(`msg=ready .*addr=(\S+)`)

// served runs quern serve on the scripted model until the test ends, and returns
// its address and its log.
func served(t *testing.T, args ...string) (addr string, log *output) {
	t.Helper()
	model := filepath.Join(t.TempDir(), "tiny.gguf")
	require.NoError(t, testmodel.Write(model))
	return servedModel(t, model, append([]string{"--ctx-size", "1024", "--parallel", "2", "--threads", "1"}, args...)...)
}

// servedModel is served for the model in a file.
func servedModel(t *testing.T, model string, args ...string) (addr string, log *output) {
	t.Helper()
	args = append([]string{"serve", model, "--addr", "127.0.0.1:0", "--seal-key-file", filepath.Join(t.TempDir(), "seal.key")}, args...)
	log = &output{}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() { ended <- run(ctx, args, strings.NewReader(""), &output{}, log) }()
	t.Cleanup(func() {
		stop()
		require.Equal(t, exitOK, <-ended, log.String())
	})
	require.Eventually(t, func() bool { return readyAt.MatchString(log.String()) }, time.Minute, 5*time.Millisecond, "%s", log)
	return readyAt.FindStringSubmatch(log.String())[1], log
}

func writeKeys(t *testing.T, path string, names ...string) {
	t.Helper()
	list := make([]keys.Key, len(names))
	for i, name := range names {
		list[i] = keys.Key{Name: name, Hash: keys.HashOf(name)}
	}
	require.NoError(t, keys.Edit(path, func([]keys.Key) ([]keys.Key, error) { return list, nil }))
}

// SIGHUP reads the keys again: a new one is let in, and one that is gone gets no
// further turn on the connection that it has open.
func TestHangupReloadsKeysUnderAnOpenSocket(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys.yaml")
	writeKeys(t, file, "old")
	addr, log := served(t, "--keys-file", file)
	conn, _, err := websocket.Dial(t.Context(), "http://"+addr+"/v1/responses", &websocket.DialOptions{ //nolint:bodyclose // hijacked
		HTTPHeader: http.Header{"Authorization": {"Bearer old"}},
	})
	require.NoError(t, err)
	defer func() { _ = conn.CloseNow() }() // closed by then
	conn.SetReadLimit(-1)
	turn := func() (kind, code string) {
		require.NoError(t, conn.Write(t.Context(), websocket.MessageText, []byte(`{"type":"response.create","input":"hi"}`)))
		for {
			_, doc, err := conn.Read(t.Context())
			require.NoError(t, err)
			var e struct{ Type, Code string }
			require.NoError(t, json.Unmarshal(doc, &e))
			if e.Type == "response.completed" || e.Type == "error" {
				return e.Type, e.Code
			}
		}
	}
	kind, _ := turn()
	require.Equal(t, "response.completed", kind)

	writeKeys(t, file, "new")
	require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGHUP))
	require.Eventually(t, func() bool { return strings.Contains(log.String(), "why=SIGHUP") }, 10*time.Second, time.Millisecond)
	for key, status := range map[string]int{"new": http.StatusOK, "old": http.StatusUnauthorized} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+"/v1/models", nil)
		require.NoError(t, err)
		req.Header.Set("Authorization", "Bearer "+key)
		res, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		require.Equal(t, status, res.StatusCode, key)
	}
	kind, code := turn()
	require.Equal(t, []string{"error", "invalid_api_key"}, []string{kind, code})
	_, _, err = conn.Read(t.Context())
	require.Equal(t, websocket.StatusPolicyViolation, websocket.CloseStatus(err))
}
