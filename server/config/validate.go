package config

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Limits of llama.cpp and of good sense; each is named in the error.
const (
	maxCells        = 1 << 24
	minCells        = 256 // llama.cpp counts cells in pages of this size
	maxSeqs         = 256 // LLAMA_MAX_SEQ
	maxThreads      = 256 // of the binding, see cgo
	maxBatch        = 1 << 16
	maxQueue        = 1 << 20
	maxSpec         = 32  // of the engine, in one step
	maxSchemaLevels = 64  // each is a copy of the rules
	maxDepth        = 200 // of the decoder, as the two that follow
	maxItems        = 100_000
	maxTools        = 2_000
	maxSockets      = 1 << 16
	minStore        = 1 << 20

	minCacheRAM  = 16 << 20 // some blocks of a small model
	minCacheDisk = 64 << 20

	minBody = 1 << 10
	maxBody = 2 << 30
	longest = 30 * 24 * time.Hour
)

// Validate reports every value that is out of its limits or contradicts another.
func (c *Config) Validate() error {
	var problems []error
	bad := func(key string, value any, format string, args ...any) {
		text := fmt.Sprintf("%s: %v %s", key, value, fmt.Sprintf(format, args...))
		if source := c.sources[key]; source != "" && source != "--"+key {
			text += " (from " + source + ")"
		}
		problems = append(problems, errors.New(text))
	}
	within := func(key string, value, low, high int) {
		if value < low || value > high {
			bad(key, value, "is not within %d to %d", low, high)
		}
	}
	lasting := func(key string, d time.Duration) {
		if d < 0 || d > longest {
			bad(key, d, "is not within 0s to %s", longest)
		}
	}
	within("ctx-size", c.CtxSize, 0, maxCells)
	if c.CtxSize > 0 && c.CtxSize < minCells {
		bad("ctx-size", c.CtxSize, "is below the smallest, at least %d cells are needed (0: what model and memory allow)", minCells)
	}
	within("parallel", c.Parallel, 1, maxSeqs)
	within("threads", c.Threads, 0, maxThreads)
	within("batch", c.Batch, 1, maxBatch)
	within("ubatch", c.UBatch, 1, maxBatch)
	within("spec-max", c.SpecMax, 1, maxSpec)
	if c.Draft != "" && c.Spec == "off" {
		bad("draft", c.Draft, "has no effect, for spec is off")
	}
	within("max-queue", c.MaxQueue, 0, maxQueue)
	within("max-depth", c.MaxDepth, 10, maxDepth)
	within("max-items", c.MaxItems, 1, maxItems)
	within("max-tools", c.MaxTools, 1, maxTools)
	within("max-sockets", c.MaxSockets, 1, maxSockets)
	within("max-output-tokens", c.MaxOutputTokens, 0, maxCells)
	within("reasoning-budget", c.ReasoningBudget, -1, maxCells)
	within("schema-levels", c.SchemaLevels, 0, maxSchemaLevels)
	lasting("request-timeout", c.RequestTimeout)
	lasting("drain-timeout", c.DrainTimeout)
	for key, size := range map[string]*Size{"max-body": &c.MaxBody, "max-text": &c.MaxText, "max-images": &c.MaxImages} {
		if *size < minBody || *size > maxBody {
			bad(key, size, "is not within 1KiB to 2GiB")
		}
	}
	for key, d := range map[string]time.Duration{"socket-idle": c.SocketIdle, "socket-life": c.SocketLife} {
		if d < time.Second || d > longest {
			bad(key, d, "is not within 1s to %s", longest)
		}
	}
	if c.CacheRAM > 0 && c.CacheRAM < minCacheRAM {
		bad("cache-ram", &c.CacheRAM, "is less than 16MiB (0: none, auto: a quarter of what is free)")
	}
	if c.CacheDir != "" && c.CacheRAM == 0 {
		bad("cache-dir", strconv.Quote(c.CacheDir), "goes through the memory of cache-ram, which is 0")
	}
	if c.CacheDisk < minCacheDisk {
		bad("cache-disk", &c.CacheDisk, "is less than 64MiB")
	}
	lasting("store-ttl", c.StoreTTL)
	if c.StoreMaxBytes < minStore {
		bad("store-max-bytes", &c.StoreMaxBytes, "is less than 1MiB")
	}
	if c.Store != "off" && c.Contract != "open" {
		bad("store", c.Store, "has no effect under the contract %s, which keeps no responses", c.Contract)
	}
	if c.Temperature != -1 && (c.Temperature < 0 || c.Temperature > 2) {
		bad("temperature", c.Temperature, "is not within 0 to 2 (or -1)")
	}
	if c.KVType != "f16" && c.FlashAttn == "off" {
		bad("kv-type", c.KVType, "needs flash attention, and flash-attn is off")
	}
	if why := checkAddr(c.Addr); why != "" {
		bad("addr", strconv.Quote(c.Addr), "%s", why)
	}
	for _, name := range c.Alias {
		if name == "" || strings.ContainsFunc(name, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) {
			bad("alias", strconv.Quote(name), "is not a name: it is empty or has spaces")
		}
	}
	for i, key := range c.APIKeys {
		if why := key.check(); why != "" {
			bad("api-key", fmt.Sprintf("key %d", i+1), "%s", why)
		}
	}
	return errors.Join(problems...)
}

func checkAddr(addr string) string {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "is not host:port, such as 127.0.0.1:8080 or :8080"
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return fmt.Sprintf("has the port %q, which is not a number within 0 to 65535", port)
	}
	return ""
}

// check says why the key could not travel in an Authorization header.
func (s Secret) check() string {
	if s == "" {
		return "is empty"
	}
	if strings.ContainsFunc(string(s), func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "has characters other than printable ASCII without spaces"
	}
	return ""
}

// Warnings are the settings that are valid and may still surprise.
func (c *Config) Warnings() []string {
	var w []string
	if c.MetricsByKey && c.KeysFile == "" {
		w = append(w, "metrics-by-key has no effect without keys-file")
	}
	if len(c.APIKeys) == 0 && c.APIKeyFile == "" && c.KeysFile == "" && !isLoopback(c.Addr) {
		w = append(w, "no api-key is set: everyone who reaches "+c.Addr+" can use this node")
	}
	if c.CacheIsolation && len(c.APIKeys) < 2 && c.APIKeyFile == "" && c.KeysFile == "" {
		w = append(w, "cache-isolation has no effect with fewer than two keys")
	}
	return w
}

func isLoopback(addr string) bool {
	host, _, _ := net.SplitHostPort(addr)
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
