package server

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWhatIsIgnoredIsNamed: in the header of streamed and collected answers,
// and in the log.
func TestWhatIsIgnoredIsNamed(t *testing.T) {
	var log lockedBuffer
	n := newNode(t, "ok", nodeOptions{config: Config{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))}})
	tools := `"tools":[{"type":"function","name":"f"},{"type":"web_search","external_web_access":false},{"type":"namespace","name":"n","tools":[{"type":"mcp"},{"type":"custom","name":"c"}]},{"type":"né\nw"}]`
	for _, row := range []struct{ path, body, want string }{
		{"/v1/responses", `{"input":"hi"}`, ""},
		{"/v1/responses", `{"input":"hi",` + tools + `}`, "tools[1]=web_search, tools[2].tools[0]=mcp, tools[3]=n??w"},
		{"/v1/responses", `{"input":"hi","stream":true,` + tools + `}`, "tools[1]=web_search, tools[2].tools[0]=mcp, tools[3]=n??w"},
		{"/v1/responses", `{"input":"hi","conversation":"c","moderation":null,"prompt":{"id":"p"},"client_metadata":{}}`, "conversation, prompt"},
		{"/v1/responses", `{"input":[{"type":"web_search_call","id":"w"},{"role":"user","content":"hi"},{"type":"mcp_list_tools"}]}`, "input[0]=web_search_call, input[2]=mcp_list_tools"},
		{"/v1/chat/completions", `{"messages":[{"role":"user","content":"hi"}],` + tools + `}`, "tools[1]=web_search, tools[2].tools[0]=mcp, tools[3]=n??w"},
	} {
		res, body := n.do("POST", row.path, row.body)
		require.Equal(t, 200, res.StatusCode, body)
		require.Equal(t, row.want, res.Header.Get(ignoredHeader), row.body)
	}
	n.http.Close()
	require.Contains(t, log.String(), "parts of a request are ignored")
	require.Contains(t, log.String(), "tools[1]=web_search")
}

func TestTheListOfIgnoredIsBounded(t *testing.T) {
	n := newNode(t, "ok")
	items := strings.Repeat(`{"type":"web_search_call","id":"w"},`, 500)
	res, body := n.do("POST", "/v1/responses", `{"input":[`+items+`{"role":"user","content":"hi"}]}`)
	require.Equal(t, 200, res.StatusCode, body)
	require.Len(t, strings.Split(res.Header.Get(ignoredHeader), ", "), maxIgnored)
}

func TestTheHeaderOfIgnoredIsBounded(t *testing.T) {
	n := newNode(t, "ok")
	tools := make([]string, maxIgnored)
	for i := range tools {
		tools[i] = `{"type":"` + strings.Repeat("x", 200) + `"}`
	}
	res, body := n.do("POST", "/v1/responses", `{"input":"hi","tools":[`+strings.Join(tools, ",")+`]}`)
	require.Equal(t, 200, res.StatusCode, body)
	header := res.Header.Get(ignoredHeader)
	require.Len(t, header, maxHeader)
	require.Contains(t, header, "tools[0]="+strings.Repeat("x", 60)+"..., tools[1]=")
}
