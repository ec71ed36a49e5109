package server

import (
	"log/slog"
	"net/http"
	"runtime"
	"sync/atomic"
	"time"

	"quern/server/keys"
	"quern/server/store"
)

// Config is what a server needs to know besides its model.
type Config struct {
	// Keys are those that may call, nil those of APIKeys. APIKeys have no limits;
	// without any, everybody may call.
	Keys     *keys.Ring
	APIKeys  []string
	Contract string // profile of the wire contract; "" is open
	MaxBody  int64  // bytes of a request body; 0 takes 64 MiB
	Limits   Limits // of what a body holds
	// RequestTimeout ends a request, waiting and running; 0 sets no limit.
	RequestTimeout time.Duration
	BodyTimeout    time.Duration // to receive a request body; 0 takes 2 minutes
	WriteTimeout   time.Duration // for one write to a client that reads slowly; 0 takes 1 minute
	// Heartbeat is how long a stream stays silent before a comment is sent;
	// 0 takes 5 seconds.
	Heartbeat time.Duration
	// Progress is how long a stream stays silent before response.in_progress is
	// repeated, which also resets the idle timers of clients that don't count
	// comments; 0 takes a minute.
	Progress   time.Duration
	MaxSockets int           // open WebSocket connections; 0 takes 256
	SocketIdle time.Duration // after which a silent one is closed; 0 takes 15 minutes
	SocketLife time.Duration // that one lasts at most; 0 takes 1 hour
	// MaxOutputTokens bounds answers whose request sets no limit; 0 leaves it to
	// the context window.
	MaxOutputTokens int
	// Node is what the node says of itself to requests that want a certain worker.
	Node []Fact
	// SealKey encrypts compaction items, SealKeySize bytes; none takes one that
	// ends with the process.
	SealKey []byte
	// Store keeps responses, under the open contract; nil keeps none. It is the
	// caller's to close, after Drain.
	Store *store.Store
	// MetricsByKey tells on /metrics what each key of the keys file has used.
	MetricsByKey bool
	// CacheIsolation keeps the cached prefixes of each API key to itself.
	CacheIsolation bool

	Version    string
	Logger     *slog.Logger
	LogPrompts bool
}

func (c Config) withDefaults() Config {
	if c.MaxBody <= 0 {
		c.MaxBody = defaultMaxBody
	}
	for _, d := range []struct {
		value  *time.Duration
		absent time.Duration
	}{
		{&c.BodyTimeout, 2 * time.Minute},
		{&c.WriteTimeout, time.Minute},
		{&c.Heartbeat, 5 * time.Second},
		{&c.Progress, time.Minute},
		{&c.SocketIdle, 15 * time.Minute},
		{&c.SocketLife, time.Hour},
	} {
		if *d.value <= 0 {
			*d.value = d.absent
		}
	}
	c.Limits = c.Limits.withDefaults()
	if c.MaxSockets <= 0 {
		c.MaxSockets = 256
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// Server answers HTTP for one model. Its methods may be called on any goroutine.
type Server struct {
	cfg      Config
	log      *slog.Logger
	contract *contract
	older    *contract // of chat and completions, which no profile changes
	keys     *keys.Ring
	model    atomic.Pointer[Model]
	gate     *gate
	recent   *recentItems
	jobs     *jobs
	seal     *seal
	sockets  *sockets
	intake   *intake
	metrics  *metrics
	handler  http.Handler
}

// New makes a server that answers 503 until it has a model.
func New(cfg Config) *Server {
	cfg = cfg.withDefaults()
	if cfg.Keys == nil {
		cfg.Keys = keys.Fixed(cfg.APIKeys...)
	}
	s := &Server{
		cfg: cfg, log: cfg.Logger, contract: contractNamed(cfg.Contract, cfg.Limits), older: contractNamed("", cfg.Limits), keys: cfg.Keys,
		gate: newGate(), recent: newRecentItems(), jobs: newJobs(), seal: newSeal(cfg.SealKey), sockets: newSockets(),
		intake: newIntake(cfg.MaxBody, runtime.GOMAXPROCS(0)), metrics: newMetrics(),
	}
	s.contract.storing = cfg.Store != nil && s.contract.name == contracts[0].name
	s.handler = s.routes()
	return s
}

// SetModel makes the server ready.
func (s *Server) SetModel(m *Model) {
	m.measure()
	s.model.Store(m)
}

// Handler returns what an http.Server serves.
func (s *Server) Handler() http.Handler { return s.handler }
