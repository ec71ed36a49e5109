package config

import (
	"log/slog"
	"time"

	"github.com/spf13/pflag"
)

// Config is the whole setup of one node. Bind makes one that holds the defaults.
type Config struct {
	Addr  string   // host:port to listen on
	Model string   // path of the GGUF file
	Alias []string // names for the model besides that of its file

	CtxSize   int    // KV cells of all sequences together; 0: what model and memory allow
	Parallel  int    // sequences that run at once
	Threads   int    // threads of a decode step; 0: the physical cores this process may use
	Batch     int    // tokens of one step at most
	UBatch    int    // tokens computed at once within a step
	KVType    string // f16, q8_0 or q4_0
	FlashAttn string // auto, on or off
	Fit       string // auto: what is not set is chosen to fit memory; off: what can't fit is tried
	Tune      string // what is measured at the first load: off, fast (threads) or full (ubatch as well)
	MMap      bool   // map the file into memory instead of reading it
	Spec      string // how tokens are guessed ahead: off or ngram
	SpecMax   int    // tokens guessed ahead for one sequence
	Draft     string // path of a smaller model that guesses, too

	CacheRAM  Size   // memory for prefixes that leave the KV cache; AutoSize: a quarter of what is free
	CacheDir  string // directory that keeps them beyond the process; empty: none does
	CacheDisk Size   // of all files in CacheDir

	ChatTemplate string // path of a template that replaces the model's own
	ToolFormat   string // name of the tool-call format; empty: by the template

	Contract        string        // profile of the wire contract
	APIKeys         []Secret      // any of them opens the API; none: open to all
	APIKeyFile      string        // file with one key a line
	SealKeyFile     string        // file with the key that encrypts compaction items; empty: in the user's config directory
	KeysFile        string        // file of quern keys: hashes and limits
	Store           string        // where responses are kept: off, memory or disk
	StoreTTL        time.Duration // how long one that nobody uses is kept; 0: always
	StoreMaxBytes   Size          // of all that are kept, as packed
	StoreFile       string        // of disk; empty: in the user's config directory
	KeysLedger      string        // what is spent of balances; empty: beside KeysFile
	MetricsByKey    bool          // /metrics tells what each key of KeysFile has used
	Node            []string      // what the node says of itself, name=value
	MaxQueue        int           // requests that wait at most
	MaxBody         Size          // bytes of a request body, after decompression
	MaxDepth        int           // nesting of a request body
	MaxItems        int           // input items or messages of a request
	MaxTools        int           // tools of a request
	MaxText         Size          // bytes of all texts of a request
	MaxImages       Size          // bytes of all images of a request, once decoded
	MaxSockets      int           // open WebSocket connections
	SocketIdle      time.Duration // after which a silent socket is closed
	SocketLife      time.Duration // that a socket lasts at most
	MaxOutputTokens int           // limit where a request gives none; 0: what the context allows
	ReasoningBudget int           // tokens of thoughts where a request does not say; -1: no limit
	SchemaLevels    int           // how often a value may stand in one of the same schema; 0: no limit
	Temperature     float64       // where a request gives none; negative: what suits the model
	RequestTimeout  time.Duration // from arrival to the last token; 0: none
	DrainTimeout    time.Duration // how long running requests may go on after SIGTERM
	CacheIsolation  bool          // requests share cached prefixes only within one API key

	LogFormat  string     // text or json
	LogLevel   slog.Level // least level that is logged
	LogPrompts bool       // log what clients send and get, at debug level

	flags   *pflag.FlagSet    // one flag a key, in the order of the help
	sources map[string]string // where each key that is not a default came from
}

// Keys returns the API keys in the clear, for comparison with a request's.
func (c *Config) Keys() []string {
	keys := make([]string, len(c.APIKeys))
	for i, k := range c.APIKeys {
		keys[i] = string(k)
	}
	return keys
}

// Secret is a string that does not show itself: every way of printing it, and
// of encoding it, says only that it is there.
type Secret string

const redacted = "(redacted)"

func (Secret) String() string               { return redacted }
func (Secret) GoString() string             { return redacted }
func (Secret) LogValue() slog.Value         { return slog.StringValue(redacted) }
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }
