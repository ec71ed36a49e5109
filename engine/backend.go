package engine

import (
	"errors"
	"time"
)

// Token is a vocabulary id.
type Token = int32

// SeqID names one sequence of the backend's KV cache: 0 <= id < Limits.Seqs.
type SeqID = int32

// Limits is what a backend can hold. It never changes.
type Limits struct {
	Cells  int // KV cells in all
	Seqs   int // sequence ids
	Batch  int // rows a Step
	UBatch int // rows the backend computes at once inside a Step
	Vocab  int // token ids are below this; 0 = not checked

	// Unified: all sequences draw from one pool of cells and SeqCopy shares
	// them. Otherwise each sequence has Cells/Seqs cells of its own and SeqCopy
	// copies.
	Unified bool
	// Partial: SeqRemove can take a tail off a sequence. Recurrent and hybrid
	// models can't; there a sequence can only be continued from its very end or
	// be removed as a whole.
	Partial bool
}

// Batch is the flat input and output of one Step. The backend owns the slices,
// all of length Limits.Batch; rows [0,N) are in use.
type Batch struct {
	N     int
	Token []Token
	Pos   []int32
	Seq   []SeqID
	// Want says what to sample at a row: -1 nothing, 0 a token, 1+n a token with
	// its logprob and n alternatives.
	Want []int32
	// Sampler is that of the row's request, also where Want is -1. A row that
	// follows one of the same sequence with Want >= 0 is a draft: its token is a
	// guess at what is sampled there.
	Sampler []Sampler
	// Out is valid for rows with Want >= 0 until the next Step, Top included.
	Out []Output
	// SampleTime is what sampling took of the Step.
	SampleTime time.Duration
}

// Output is one sampled token. Err fails the row's request alone. Skipped: the
// row was a draft that did not come true, and has no token.
type Output struct {
	Token   Token
	Logprob float32
	Top     []TokenLogprob
	Err     error
	Skipped bool
}

// TokenLogprob is an alternative that could have been sampled.
type TokenLogprob struct {
	Token   Token
	Logprob float32
}

// Sampler chooses tokens for one request and keeps state between them.
type Sampler interface {
	AcceptPrompt(prompt []Token)
	// Accept takes tokens as if it had chosen them. An error means that its
	// grammar refuses them; it can't go on then.
	Accept(tokens []Token) error
	Close()
}

// SamplerParams is what a Sampler is made of. The zero value is greedy.
type SamplerParams struct {
	Temperature, TopP, MinP     float32
	Presence, Frequency, Repeat float32
	TopK, RepeatLastN           int
	Seed                        uint64
	Grammar                     string
	LazyTokens                  []Token
	LazyPatterns                []string
}

// Backend is a model with its KV cache. The engine calls it from one goroutine,
// except for Limits, IsEOG, NewSampler and Abort, which any goroutine may call.
type Backend interface {
	Limits() Limits
	// Batch returns the one batch that Step is given.
	Batch() *Batch
	// Step computes rows [0,N) and samples where wanted, in order. A draft is
	// sampled only if the row before it was and got the draft's token, which does
	// not end the turn; otherwise it is Skipped and its sampler unchanged, but its
	// sequence holds it until SeqRemove. On ErrNoCells nothing
	// has changed. After ErrAborted nothing has been sampled, but sequences of
	// the batch may hold some of its rows. Any other error leaves the sequences
	// of the batch undefined and all others as they were.
	Step(b *Batch) error
	IsEOG(t Token) bool
	NewSampler(p SamplerParams) (Sampler, error)

	// SeqCopy makes the empty sequence dst hold positions [0,n) of src. Where
	// Limits.Partial is false, n is the whole length of src.
	SeqCopy(src, dst SeqID, n int) error
	// SeqRemove takes positions [from,end) off seq; from 0 always works.
	SeqRemove(seq SeqID, from int) error

	// Abort makes a running Step return ErrAborted soon; the next Step clears it.
	Abort()
	Close() error
}

// StateBackend is a Backend that can move stretches of a sequence out of its KV
// cache and back. The engine calls these methods from its one goroutine, too.
type StateBackend interface {
	Backend
	// StateSize is the most bytes that the state of n positions takes; 0 says
	// that this model or cache can't be saved in parts.
	StateSize(n int) int
	// SeqSave writes positions [from,to) of seq to dst and returns the bytes used.
	SeqSave(seq SeqID, from, to int, dst []byte) (int, error)
	// SeqRestore gives positions [from,to) to seq, which holds [0,from). They get
	// cells of their own. After an error, ErrNoCells if there was no room, seq is
	// as it was.
	SeqRestore(seq SeqID, from, to int, state []byte) error
}

var (
	// ErrNoCells is Step's answer when the batch finds no room in the KV cache.
	ErrNoCells = errors.New("engine: no free KV cells")
	// ErrAborted is Step's answer to Abort.
	ErrAborted = errors.New("engine: step aborted")
)
