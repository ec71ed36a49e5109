package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestModelDigest(t *testing.T) {
	dir, path := filepath.Join(t.TempDir(), "cache"), filepath.Join(t.TempDir(), "m.gguf")
	require.NoError(t, os.WriteFile(path, []byte("abc"), 0o600))
	const abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
	for range 2 {
		digest, err := modelDigest(dir, path)
		require.NoError(t, err)
		require.Equal(t, abc, digest)
	}
	memos, err := filepath.Glob(filepath.Join(dir, "model-*"))
	require.NoError(t, err)
	require.Len(t, memos, 1)

	// The memo is what is read the second time, and only if it is of this file.
	b, err := os.ReadFile(memos[0])
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(memos[0], []byte(strings.Replace(string(b), abc[:8], "00000000", 1)), 0o600))
	digest, err := modelDigest(dir, path)
	require.NoError(t, err)
	require.Equal(t, "00000000"+abc[8:], digest)
	require.NoError(t, os.WriteFile(memos[0], []byte("torn"), 0o600))
	digest, err = modelDigest(dir, path)
	require.NoError(t, err)
	require.Equal(t, abc, digest)

	require.NoError(t, os.WriteFile(path, []byte("abd"), 0o600))
	require.NoError(t, os.Chtimes(path, time.Time{}, time.Now().Add(time.Hour)))
	digest, err = modelDigest(dir, path)
	require.NoError(t, err)
	require.NotEqual(t, abc, digest)
	_, err = modelDigest(dir, path+"x")
	require.Error(t, err)
}
