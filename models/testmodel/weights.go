package testmodel

import "strings"

// Sizes of the network. Heads are 32 wide, so that quantised KV caches work.
const (
	embd     = 128
	headDim  = 32
	heads    = embd / headDim
	ffn      = 32
	ropeBase = 1e15
	rmsEps   = 1e-6
)

// The residual stream: a constant, the flags that attention writes, the marks
// that embeddings carry, and one dimension for each token of the script.
const (
	dimConst = iota
	flagTools
	flagSlash
	flagLong
	markTools
	markResult
	markNoTool
	markSlash
	markLong
	dimState = 16
)

const (
	// lookPair is the dimension of a head that compares: its rotation is the
	// slowest, with ropeBase next to none at any position.
	lookPair = headDim - 2
	// norm is about what RMSNorm multiplies a row by.
	norm = 7.0
	// gain sharpens all margins alike.
	gain = 1.5
)

// network holds the tensors row by row, a row an output.
type network struct {
	v              vocab
	state          []int // of each token
	embed, out     []float32
	wq, wk, wv, wo []float32
}

func build() *network {
	n := &network{v: newVocab()}
	size := len(n.v.texts)
	n.embed, n.out = make([]float32, size*embd), make([]float32, size*embd)
	n.wq, n.wk = make([]float32, embd*embd), make([]float32, embd*embd)
	n.wv, n.wo = make([]float32, embd*embd), make([]float32, embd*embd)
	n.assignStates()
	n.setEmbeddings()
	n.setAttention()
	n.setOutput()
	return n
}

// assignStates gives each token of the script a dimension of its own; all
// others share that of anyOther, and short tokens that end a quotation that
// of the quote.
func (n *network) assignStates() {
	n.state = make([]int, len(n.v.texts))
	byID := map[int]int{}
	for _, f := range script() {
		id := n.v.id(f.after)
		if _, ok := byID[id]; !ok {
			byID[id] = dimState + len(byID)
		}
	}
	if dimState+len(byID) > embd {
		panic("the script has more states than dimensions")
	}
	for id, text := range n.v.texts {
		s, ok := byID[id]
		switch {
		case ok:
		case strings.HasSuffix(text, quote) && len(text) < 4:
			s = byID[n.v.id(quote)]
		default:
			s = byID[n.v.id(anyOther)]
		}
		n.state[id] = s
	}
}

func (n *network) setEmbeddings() {
	for id, s := range n.state {
		n.embed[id*embd+dimConst] = 1
		n.embed[id*embd+s] = 1
	}
	mark := func(text string, dims ...int) {
		for _, d := range dims {
			n.embed[n.v.id(text)*embd+d] = 1
		}
	}
	mark("<tools>", markTools)
	mark("<tool_response>", markResult)
	mark("/notool", markNoTool)
	mark("notool", markNoTool)
	mark("/long", markSlash, markLong)
	mark("/", markSlash)
	mark(" /", markSlash)
	mark("long", markLong)
}

// setAttention lets head 0 look for the strongest of three marks, heads 1 and
// 2 for one mark each. Where there is none, attention is spread evenly over
// values of zero.
func (n *network) setAttention() {
	look := func(head, mark int, strength, value float32, flag int) {
		n.wq[(head*headDim+lookPair)*embd+dimConst] = 1
		n.wk[(head*headDim+lookPair)*embd+mark] = strength
		n.wv[head*headDim*embd+mark] = value / norm
		n.wo[flag*embd+head*headDim] = 1
	}
	look(0, markTools, 4, 1, flagTools)
	look(0, markResult, 8, -1, flagTools)
	look(0, markNoTool, 16, 0, flagTools)
	look(1, markSlash, 4, 1.15, flagSlash)
	look(2, markLong, 4, 1.15, flagLong)
}

func (n *network) setOutput() {
	add := func(token, dim int, logit float64) {
		n.out[token*embd+dim] += float32(gain * logit / norm)
	}
	for _, f := range script() {
		add(n.v.id(f.next), n.state[n.v.id(f.after)], f.logit)
	}
	for _, l := range leans {
		add(n.v.id(l.token), l.flag, l.logit)
	}
	for id := range n.v.texts {
		add(id, dimConst, bias(n.v, id))
	}
}
