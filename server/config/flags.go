package config

import (
	"log/slog"
	"time"

	"github.com/spf13/pflag"
)

// fileFlag names the YAML file itself, so it is no key of the file.
const fileFlag = "config"

// Bind adds the flags of a node to fs and returns the Config that they write to.
// It is complete, and worth reading, after Load.
func Bind(fs *pflag.FlagSet) *Config {
	own := pflag.NewFlagSet("quern", pflag.ContinueOnError)
	own.SortFlags = false
	c := &Config{MaxBody: 64 << 20, MaxText: 32 << 20, MaxImages: 48 << 20, StoreMaxBytes: 1 << 30, CacheRAM: AutoSize, CacheDisk: 10 << 30, LogLevel: slog.LevelInfo, flags: own}
	bindModel(own, c)
	bindEngine(own, c)
	bindServer(own, c)
	bindLog(own, c)
	own.String(fileFlag, "", "YAML `file` with any of these keys")
	fs.AddFlagSet(own)
	return c
}

func bindModel(fs *pflag.FlagSet, c *Config) {
	fs.StringVar(&c.Addr, "addr", "127.0.0.1:8080", "`host:port` to listen on")
	fs.StringVar(&c.Model, "model", "", "GGUF `file` to serve, as the argument")
	fs.StringArrayVar(&c.Alias, "alias", nil, "further `name` of the model, repeatable")
	fs.StringVar(&c.ChatTemplate, "chat-template", "", "`file` with a chat template, in place of the model's own")
	fs.StringVar(&c.ToolFormat, "tool-format", "", "`name` of the tool-call format, in place of the one that the template shows")
}

func bindEngine(fs *pflag.FlagSet, c *Config) {
	fs.IntVar(&c.CtxSize, "ctx-size", 0, "KV `cells` in all, shared by the sequences; 0: what model and memory allow")
	fs.IntVar(&c.Parallel, "parallel", 8, "sequences that run at once")
	fs.IntVar(&c.Threads, "threads", 0, "threads of a step; 0: the physical cores this process may use")
	fs.IntVar(&c.Batch, "batch", 2048, "`tokens` of one step at most")
	fs.IntVar(&c.UBatch, "ubatch", 512, "`tokens` computed at once within a step")
	fs.Var(newChoice(&c.KVType, "f16", "f16", "q8_0", "q4_0"), "kv-type", "how keys and values are stored")
	fs.Var(newChoice(&c.FlashAttn, "auto", "auto", "on", "off"), "flash-attn", "flash attention")
	fs.Var(newChoice(&c.Spec, "ngram", "off", "ngram"), "spec", "guess tokens ahead from what the sequence has said before")
	fs.IntVar(&c.SpecMax, "spec-max", 15, "`tokens` guessed ahead for one sequence at most")
	fs.Var(autoSize{&c.CacheRAM}, "cache-ram", "memory for prefixes that leave the KV cache; auto: a quarter of what is free, 0: none")
	fs.StringVar(&c.CacheDir, "cache-dir", "", "`directory` that keeps these prefixes, too, so that they survive a restart")
	fs.Var(&c.CacheDisk, "cache-disk", "all files in cache-dir; what is of least use goes first")
	fs.StringVar(&c.Draft, "draft", "", "GGUF `file` of a smaller model with the same vocabulary, which guesses tokens ahead, too")
	fs.Var(newChoice(&c.Tune, "off", "off", "fast", "full"), "tune", "measure threads once a model and machine (fast), and ubatch (full)")
	fs.Var(newChoice(&c.Fit, "auto", "auto", "off"), "fit", "choose what is not set so that memory suffices, and refuse what can't work; off: warn and load")
	fs.BoolVar(&c.MMap, "mmap", true, "map the model file instead of reading it into memory")
}

func bindServer(fs *pflag.FlagSet, c *Config) {
	fs.Var(newChoice(&c.Contract, "open", "open", "lenient", "strict"), "contract", "profile of the wire contract")
	fs.Var(secrets{&c.APIKeys}, "api-key", "`key` that clients must send, repeatable")
	fs.StringVar(&c.APIKeyFile, "api-key-file", "", "`file` with one key a line; # begins a comment")
	fs.StringVar(&c.SealKeyFile, "seal-key-file", "", "`file` with the key of compaction items, made if absent; default: quern/seal.key in the user's config directory")
	fs.StringVar(&c.KeysFile, "keys-file", "", "`file` with hashed keys and their limits, as quern keys makes it")
	fs.Var(newChoice(&c.Store, "off", "off", "memory", "disk"), "store", "keep responses, to be fetched, continued and run in the background")
	fs.DurationVar(&c.StoreTTL, "store-ttl", 30*24*time.Hour, "how long a response that nobody uses is kept; 0: always")
	fs.Var(&c.StoreMaxBytes, "store-max-bytes", "all stored responses together; the least recently used go first")
	fs.StringVar(&c.StoreFile, "store-file", "", "`file` of --store disk; default: quern/responses.db in the user's config directory")
	fs.StringVar(&c.KeysLedger, "keys-ledger", "", "`file` that keeps what is spent of balances; empty: that of keys-file with .ledger")
	fs.BoolVar(&c.MetricsByKey, "metrics-by-key", false, "tell on /metrics what each key of keys-file has used, by its name")
	fs.Var(&facts{list: &c.Node}, "node", "`name=value` of this node for provider requirements (name=desk, region=eu), repeatable")
	fs.IntVar(&c.MaxQueue, "max-queue", 256, "requests that wait for a place at most")
	fs.Var(&c.MaxBody, "max-body", "largest request body, after decompression")
	fs.IntVar(&c.MaxDepth, "max-depth", 200, "`levels` that arrays and objects of a body nest at most")
	fs.IntVar(&c.MaxItems, "max-items", 100_000, "input items or messages of a request at most")
	fs.IntVar(&c.MaxTools, "max-tools", 2_000, "tools of a request at most, those of namespaces counted")
	fs.Var(&c.MaxText, "max-text", "all texts of a request together: instructions, items, tools")
	fs.Var(&c.MaxImages, "max-images", "all images of a request together, once decoded")
	fs.IntVar(&c.MaxSockets, "max-sockets", 256, "WebSocket connections that are open at once")
	fs.DurationVar(&c.SocketIdle, "socket-idle", 15*time.Minute, "how long a WebSocket may be silent before it is closed")
	fs.DurationVar(&c.SocketLife, "socket-life", time.Hour, "how long a WebSocket lasts at most")
	fs.IntVar(&c.MaxOutputTokens, "max-output-tokens", 0, "`limit` where a request gives none; 0: what the context allows")
	fs.IntVar(&c.ReasoningBudget, "reasoning-budget", -1, "`tokens` of thoughts where a request does not say; 0: none, -1: no limit")
	fs.IntVar(&c.SchemaLevels, "schema-levels", 16, "how often a value may stand inside one of the same schema, where a schema refers to itself; 0: no limit")
	fs.Float64Var(&c.Temperature, "temperature", -1, "where a request gives none; -1: what suits the model")
	fs.DurationVar(&c.RequestTimeout, "request-timeout", 30*time.Minute, "from arrival to the last token; 0: none")
	fs.DurationVar(&c.DrainTimeout, "drain-timeout", 30*time.Second, "how long running requests may go on after SIGTERM")
	fs.BoolVar(&c.CacheIsolation, "cache-isolation", false, "share cached prefixes only within one API key")
}

func bindLog(fs *pflag.FlagSet, c *Config) {
	fs.Var(newChoice(&c.LogFormat, "text", "text", "json"), "log-format", "form of the log")
	fs.Var(level{&c.LogLevel}, "log-level", "least level that is logged")
	fs.BoolVar(&c.LogPrompts, "log-prompts", false, "log what clients send and get (at level debug)")
}
