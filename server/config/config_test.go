package config

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

// load is what a node does at start, with a file of the given text if there is one.
func load(t *testing.T, yaml string, environ, args []string) (*Config, error) {
	t.Helper()
	fs := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	c := Bind(fs)
	if yaml != "" {
		path := filepath.Join(t.TempDir(), "quern.yaml")
		require.NoError(t, os.WriteFile(path, []byte(yaml), 0o600))
		args = append(args, "--config", path)
	}
	require.NoError(t, fs.Parse(args))
	return c, c.Load(environ)
}

func TestDefaultsAreValid(t *testing.T) {
	c, err := load(t, "", []string{"PATH=/bin", "QUERN_MODELS=/models"}, nil)
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1:8080", c.Addr)
	require.Equal(t, 8, c.Parallel)
	require.Equal(t, Size(64<<20), c.MaxBody)
	require.Equal(t, 30*time.Second, c.DrainTimeout)
	require.Equal(t, slog.LevelInfo, c.LogLevel)
	require.True(t, c.MMap)
	require.Empty(t, c.Warnings())
	for _, s := range c.Settings() {
		require.Empty(t, s.Source, s.Key)
	}
}

func TestPrecedence(t *testing.T) {
	const yaml = "parallel: 2\nthreads: 2\nbatch: 1024\n"
	environ := []string{"QUERN_THREADS=3", "QUERN_BATCH=300"}
	c, err := load(t, yaml, environ, []string{"--batch", "400"})
	require.NoError(t, err)
	require.Equal(t, 2, c.Parallel, "the file stands above the default")
	require.Equal(t, 3, c.Threads, "the environment stands above the file")
	require.Equal(t, 400, c.Batch, "the flag stands above all")
	require.Equal(t, 400, c.UBatch, "a default never exceeds the batch")

	source := map[string]string{}
	for _, s := range c.Settings() {
		source[s.Key] = s.Source
	}
	require.Equal(t, "quern.yaml", filepath.Base(source["parallel"]))
	require.Equal(t, "QUERN_THREADS", source["threads"])
	require.Equal(t, "--batch", source["batch"])
	require.Empty(t, source["addr"])
}

func TestEveryKeyFromEverySource(t *testing.T) {
	values := map[string]string{
		"addr": "[::1]:1", "model": "m.gguf", "alias": "fast", "chat-template": "t.jinja", "tool-format": "hermes",
		"ctx-size": "4096", "parallel": "3", "threads": "2", "batch": "256", "ubatch": "128", "kv-type": "q8_0",
		"flash-attn": "on", "fit": "off", "tune": "fast", "mmap": "false", "spec": "ngram", "spec-max": "5", "draft": "d.gguf", "cache-ram": "32MiB", "cache-dir": "/d", "cache-disk": "1GiB", "contract": "open", "api-key": "secret", "keys-ledger": "l", "metrics-by-key": "true", "node": "region=eu", "max-queue": "7", "seal-key-file": "k",
		"store": "disk", "store-ttl": "1h0m0s", "store-max-bytes": "5MiB", "store-file": "r.db",
		"max-body": "2MiB", "max-depth": "20", "max-items": "50", "max-tools": "5", "max-text": "3MiB", "max-images": "4MiB",
		"max-sockets": "9", "socket-idle": "1m1s", "socket-life": "2m1s", "max-output-tokens": "99", "reasoning-budget": "7", "schema-levels": "5", "temperature": "0.2", "request-timeout": "1m30s",
		"drain-timeout": "2s", "cache-isolation": "true", "log-format": "json", "log-level": "debug", "log-prompts": "true",
	}
	var yaml strings.Builder
	var environ, args []string
	for key, v := range values {
		fmt.Fprintf(&yaml, "%s: %q\n", key, v)
		environ = append(environ, variable(key)+"="+v)
		args = append(args, "--"+key+"="+v)
	}
	show := func(c *Config, err error) string {
		require.NoError(t, err)
		var b strings.Builder
		for _, s := range c.Settings() {
			if s.Key != "config" && s.Key != "api-key-file" && s.Key != "keys-file" {
				require.NotEmpty(t, s.Source, "%s is left out of this test", s.Key)
				fmt.Fprintf(&b, "%s=%s\n", s.Key, s.Value)
			}
		}
		return b.String()
	}
	want := show(load(t, "", nil, args))
	require.Equal(t, want, show(load(t, "", environ, nil)))
	require.Equal(t, want, show(load(t, yaml.String(), nil, nil)))
	require.Contains(t, want, "max-body=2MiB\n")
	require.Contains(t, want, "request-timeout=1m30s\n")
}

func TestLists(t *testing.T) {
	c, err := load(t, "alias: [a, b]\napi-key: one\n", []string{"QUERN_API_KEY=k1,k2"}, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, c.Alias)
	require.Equal(t, []string{"k1", "k2"}, c.Keys())

	c, err = load(t, "", nil, []string{"--api-key", "k,1", "--api-key=k2"})
	require.NoError(t, err)
	require.Equal(t, []string{"k,1", "k2"}, c.Keys(), "a flag is one key, commas and all")
}

func TestConfigFileFromEnvironment(t *testing.T) {
	path := filepath.Join(t.TempDir(), "node.yaml")
	require.NoError(t, os.WriteFile(path, []byte("parallel: 5"), 0o600))
	c, err := load(t, "", []string{"QUERN_CONFIG=" + path}, nil)
	require.NoError(t, err)
	require.Equal(t, 5, c.Parallel)
}

func TestErrorsNameTheKey(t *testing.T) {
	for _, tc := range []struct {
		name, yaml, environ, arg string
		want                     []string
	}{
		{"unknown key", "ctx_size: 1\n", "", "", []string{"quern.yaml", `unknown key "ctx_size"`, "meant to be ctx-size"}},
		{"unknown key, nothing near", "colour: red\n", "", "", []string{`unknown key "colour"`}},
		{"nested key", "server:\n  addr: x\n", "", "", []string{`unknown key "server"`}},
		{"unknown variable", "", "QUERN_CTXSIZE=1", "", []string{"unknown variable QUERN_CTXSIZE", "meant to be QUERN_CTX_SIZE"}},
		{"two at once", "colour: red\nthreads: x\n", "", "", []string{"colour", `threads (from`, "whole number"}},
		{"wrong type in the environment", "", "QUERN_THREADS=many", "", []string{"threads (from QUERN_THREADS)", `"many"`, "whole number"}},
		{"no unit", "request-timeout: 600\n", "", "", []string{"request-timeout", `"600"`, "duration such as 90s"}},
		{"no value", "threads:\n", "", "", []string{"threads", "has no value"}},
		{"map for value", "threads: {a: 1}\n", "", "", []string{"threads", "not further keys"}},
		{"list for value", "threads: [1, 2]\n", "", "", []string{"threads", "not a list"}},
		{"nested list", "alias: [[a]]\n", "", "", []string{"alias", "list of plain values"}},
		{"bool by other name", "mmap: yes please\n", "", "", []string{"mmap", "true or false"}},
		{"size", "max-body: 3 apples\n", "", "", []string{"max-body", "64MiB"}},
		{"size too large", "max-body: 99999999999GiB\n", "", "", []string{"max-body", "too large"}},
		{"choice", "kv-type: f32\n", "", "", []string{"kv-type", `"f32"`, "f16, q8_0 or q4_0"}},
		{"level", "log-level: loud\n", "", "", []string{"log-level", "debug, info, warn or error"}},
		{"file names a file", "config: other.yaml\n", "", "", []string{"cannot name another file"}},
		{"broken file", "addr: [\n", "", "", []string{"config", "quern.yaml", "line"}},
		{"key twice", "batch: 1\nbatch: 2\n", "", "", []string{"batch", "already"}},
		{"out of limits", "parallel: 0\n", "", "", []string{"parallel: 0", "1 to 256", "quern.yaml"}},
		{"negative", "", "", "--threads=-1", []string{"threads: -1", "0 to 256"}},
		{"negative duration", "", "", "--drain-timeout=-1s", []string{"drain-timeout: -1s", "within 0s"}},
		{"cache-ram too small", "", "", "--cache-ram=1MiB", []string{"cache-ram: 1MiB", "16MiB", "auto"}},
		{"cache-ram of a kind", "cache-ram: some\n", "", "", []string{"cache-ram", "64MiB", "auto"}},
		{"cache-dir without memory", "cache-ram: 0\ncache-dir: d\n", "", "", []string{"cache-dir", "cache-ram"}},
		{"cache-disk too small", "", "", "--cache-disk=1", []string{"cache-disk: 1B", "64MiB"}},
		{"store too small", "", "", "--store-max-bytes=1", []string{"store-max-bytes: 1B", "1MiB"}},
		{"store that can't be used", "", "QUERN_CONTRACT=strict", "--store=memory", []string{"store: memory", "strict"}},
		{"body too small", "", "", "--max-body=1", []string{"max-body: 1B", "1KiB to 2GiB"}},
		{"text too small", "", "", "--max-text=1", []string{"max-text: 1B", "1KiB to 2GiB"}},
		{"socket that ends at once", "", "", "--socket-idle=0s", []string{"socket-idle: 0s", "1s to"}},
		{"too many threads", "", "", "--threads=257", []string{"threads: 257", "0 to 256"}},
		{"context below a page", "", "", "--ctx-size=10", []string{"ctx-size: 10", "at least 256"}},
		{"budget", "", "", "--reasoning-budget=-2", []string{"reasoning-budget: -2", "-1 to"}},
		{"temperature", "", "", "--temperature=3", []string{"temperature: 3", "0 to 2"}},
		{"addr without port", "", "", "--addr=localhost", []string{`addr: "localhost"`, "host:port"}},
		{"addr with a bad port", "", "", "--addr=:http", []string{"addr", `"http"`, "65535"}},
		{"alias with a space", "", "", "--alias=a b", []string{`alias: "a b"`}},
		{"contradiction", "", "QUERN_KV_TYPE=q8_0", "--flash-attn=off", []string{"kv-type: q8_0", "flash-attn is off"}},
		{"nothing to draft for", "", "QUERN_SPEC=off", "--draft=d.gguf", []string{"draft: d.gguf", "spec is off"}},
		{"too long drafts", "", "", "--spec-max=33", []string{"spec-max: 33", "1 to 32"}},
		{"empty key", "", "QUERN_API_KEY=", "", []string{"api-key: key 1 is empty", "QUERN_API_KEY"}},
		{"missing key file", "", "", "--api-key-file=/nowhere/keys", []string{"api-key-file", "/nowhere/keys"}},
		{"missing file", "", "", "--config=/nowhere/q.yaml", []string{"config", "/nowhere/q.yaml"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var environ, args []string
			if tc.environ != "" {
				environ = []string{tc.environ}
			}
			if tc.arg != "" {
				args = []string{tc.arg}
			}
			_, err := load(t, tc.yaml, environ, args)
			require.Error(t, err)
			for _, want := range tc.want {
				require.ErrorContains(t, err, want)
			}
		})
	}
}

func TestKeyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	require.NoError(t, os.WriteFile(path, []byte("# ours\n\n k1 \nk2\n"), 0o600))
	c, err := load(t, "", nil, []string{"--api-key=k0", "--api-key-file", path})
	require.NoError(t, err)
	require.Equal(t, []string{"k0"}, c.Keys(), "the file is read by the ring, again and again")
	require.Equal(t, path, c.APIKeyFile)
	require.NoError(t, os.WriteFile(path, []byte("k 1\n"), 0o600))
	_, err = load(t, "", nil, []string{"--api-key-file", path})
	require.ErrorContains(t, err, "key 1 has characters")

	require.NoError(t, os.WriteFile(path, []byte("# none yet\n"), 0o600))
	_, err = load(t, "", nil, []string{"--api-key-file", path})
	require.ErrorContains(t, err, "holds no key")
}

// A key shows in no print of the Config and in no error, whatever is wrong with it.
func TestKeysAreNeverShown(t *testing.T) {
	const secret = "hush-hush"
	c, err := load(t, "", nil, []string{"--api-key", secret})
	require.NoError(t, err)
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("config", "config", c, "keys", c.APIKeys)
	slog.New(slog.NewJSONHandler(&log, nil)).Info("config", "config", c, "keys", c.APIKeys)
	for _, shown := range []string{
		log.String(), fmt.Sprint(c.Settings()), fmt.Sprintf("%v %+v %#v %s", *c, *c, c.APIKeys, c.APIKeys),
	} {
		require.NotContains(t, shown, secret)
	}
	require.Contains(t, log.String(), "1 (redacted)")

	for _, bad := range []string{secret + " x", secret + "\n", secret + "é"} {
		_, err := load(t, "", nil, []string{"--api-key", bad})
		require.ErrorContains(t, err, "printable ASCII")
		require.NotContains(t, err.Error(), secret)
	}
	_, err = load(t, "api-key: ["+secret+", {a: "+secret+"}]\n", nil, nil)
	require.Error(t, err)
	require.NotContains(t, err.Error(), secret)
}

func TestWarnings(t *testing.T) {
	for addr, warns := range map[string]bool{
		"127.0.0.1:1": false, "[::1]:1": false, "localhost:1": false, ":8080": true, "0.0.0.0:1": true, "192.0.2.1:1": true,
	} {
		c, err := load(t, "", nil, []string{"--addr", addr})
		require.NoError(t, err)
		require.Equal(t, warns, len(c.Warnings()) == 1, addr)
		c, err = load(t, "", nil, []string{"--addr", addr, "--api-key=k"})
		require.NoError(t, err)
		require.Empty(t, c.Warnings())
	}
}

func TestSize(t *testing.T) {
	for text, want := range map[string]string{
		"0": "0B", "1": "1B", "1024": "1KiB", "64MiB": "64MiB", "64 mib": "64MiB", "1500MB": "1500MB", "2gb": "2GB", "3GiB": "3GiB", "10kB": "10kB",
	} {
		var s Size
		require.NoError(t, s.Set(text), text)
		require.Equal(t, want, s.String())
		var again Size
		require.NoError(t, again.Set(s.String()))
		require.Equal(t, s, again, "what is printed reads as the same size")
	}
	for _, text := range []string{"", "-1", "1.5MiB", "MiB", "1TiB", "0x10"} {
		var s Size
		require.Error(t, s.Set(text), text)
	}
}

func TestNodeFacts(t *testing.T) {
	for name, c := range map[string]func() (*Config, error){
		"file": func() (*Config, error) {
			return load(t, "node:\n  name: desk\n  labels: [fast, private]\n  cost: {input: 0.5}\n", nil, nil)
		},
		"environment": func() (*Config, error) {
			return load(t, "", []string{"QUERN_NODE=cost.input=0.5,labels=fast,labels=private,name=desk"}, nil)
		},
		"flags": func() (*Config, error) {
			return load(t, "", nil, []string{"--node=name=desk", "--node=labels=fast,private", "--node", "cost.input=0.5"})
		},
	} {
		cfg, err := c()
		require.NoError(t, err, name)
		names, values := cfg.Facts()
		require.ElementsMatch(t, []string{"name", "labels", "cost.input"}, names, name)
		require.Equal(t, map[string][]string{"name": {"desk"}, "labels": {"fast", "private"}, "cost.input": {"0.5"}}, values, name)
	}
	_, err := load(t, "", []string{"QUERN_NODE=desk"}, nil)
	require.ErrorContains(t, err, "node (from QUERN_NODE): want name=value")
}
