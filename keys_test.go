package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"quern/server/keys"
)

func TestKeysCommand(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys.yaml")
	do := func(want int, stdin string, args ...string) (stdout, stderr string) {
		code, stdout, stderr := quernReading(t, stdin, append(append([]string{"keys"}, args...), "--file", file)...)
		require.Equal(t, want, code, stderr)
		return stdout, stderr
	}
	out, _ := do(exitOK, "", "add", "alice", "--models", "m", "--requests-per-minute", "60", "--concurrency", "2", "--weight", "0.5", "--balance", "1000", "--price-cached", "0.1")
	key := strings.TrimSpace(out)
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NotContains(t, string(raw), key, "the file holds no key")

	ring, err := keys.Open(keys.Sources{File: file})
	require.NoError(t, err)
	require.Equal(t, "alice", ring.Find(key).Name())
	out, _ = do(exitOK, "", "list")
	require.Regexp(t, `alice +\w{16} +m +60 +- +2 +0.5 +1000 +\(node runs\)`, out)
	require.NoError(t, ring.Close())
	out, _ = do(exitOK, "", "list")
	require.Regexp(t, `alice .* 1000 +0\n`, out)

	out, _ = do(exitOK, "", "topup", "alice", "500")
	require.Contains(t, out, "1500 tokens in all")
	out, _ = do(exitOK, "my-own-key-of-some-length\n", "add", "bob", "--stdin")
	require.Empty(t, out)
	list, err := keys.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, keys.HashOf("my-own-key-of-some-length"), list[1].Hash)
	require.InDelta(t, 0.1, list[0].Balance.Price.Cached, 0)

	for _, row := range []struct {
		code int
		says string
		args []string
	}{
		{exitFailed, "twice", []string{"add", "alice"}},
		{exitFailed, "no balance", []string{"topup", "bob", "5"}},
		{exitFailed, "no key of that name", []string{"revoke", "carol"}},
		{exitFailed, "more than", []string{"topup", "alice", "9000000000000000000"}},
		{exitUsage, "not a number", []string{"topup", "alice", "0"}},
		{exitUsage, "two arguments", []string{"topup", "alice"}},
		{exitUsage, "at least 20 characters", []string{"add", "dave", "--stdin"}},
		{exitUsage, "add, list, revoke or topup", nil},
	} {
		_, stderr := do(row.code, "short", row.args...)
		require.Contains(t, stderr, row.says)
	}
	do(exitOK, "", "revoke", "alice")
	list, err = keys.ReadFile(file)
	require.NoError(t, err)
	require.Len(t, list, 1)
}
