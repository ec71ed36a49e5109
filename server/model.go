package server

import (
	"slices"
	"time"

	"quern/engine"
	"quern/models/schema"
	"quern/models/template"
	"quern/models/toolcall"
	"quern/tokenizer"
)

// Model is a loaded model with all that serving it takes. It is not changed
// once SetModel has it.
type Model struct {
	ID      string
	Aliases []string // further names that requests may use
	Created time.Time
	// ContextLength is the most tokens, prompt and answer, of one request.
	ContextLength int
	Info          Facts
	Template      *template.Template
	Format        toolcall.Format
	// FormatReason says how the format was chosen.
	FormatReason string
	Tokenizer    *tokenizer.Tokenizer
	Engine       *engine.Engine
	Defaults     Sampling
	// ThoughtLimit is how many tokens the model may think where a request does not
	// say, 0 being none; nil sets no limit.
	ThoughtLimit *int
	// SchemaLevels is how often a value may stand inside one of the same schema, 0
	// for no limit.
	SchemaLevels int

	longestPiece int // bytes of the longest token
	schemas      *schema.Cache
	encoders     encoders
}

// measure prepares what is looked up again and again.
func (m *Model) measure() {
	m.schemas = schema.NewCache(schemaCacheBytes)
	m.encoders = newEncoders()
	vocab := m.Tokenizer.Vocab()
	for t := range vocab.Size() {
		m.longestPiece = max(m.longestPiece, len(vocab.Piece(tokenizer.Token(t))))
	}
}

// Facts describe a model for GET /v1/models.
type Facts struct {
	Architecture  string
	Parameters    int64 // count of weights
	Quantization  string
	Device        string // kind: cpu, cuda
	SizeBytes     int64
	ContextTrain  int // the window it was trained for
	KVType        string
	Parallel      int // requests that run at once
	Queue         int // requests that wait at most
	KVBlockTokens int // granule of the prefix cache, for routers
}

// Sampling is how tokens are chosen where a request does not say.
type Sampling struct {
	Temperature      float64
	TopP             float64
	TopK             int
	MinP             float64
	PresencePenalty  float64
	FrequencyPenalty float64
	RepeatPenalty    float64
}

// named says whether a request may call the model by this name. No name means
// the model that is there.
func (m *Model) named(name string) bool {
	return name == "" || name == m.ID || slices.Contains(m.Aliases, name)
}
