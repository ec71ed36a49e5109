package gguf

import "strings"

// Info is what the header says about the model, in plain numbers. Zero means
// that the file does not say.
type Info struct {
	Name         string
	Architecture string
	Kind         string // general.type: model, adapter, mmproj, ...
	SizeLabel    string
	License      string

	Parameters   uint64 // elements of all tensors in this file
	Quantization string
	FileSize     int64
	Alignment    int64
	SplitCount   int // parts, where the model comes in several files

	ContextLength   int
	EmbeddingLength int
	Layers          int
	Heads           int // the most that any layer has
	HeadsKV         int
	HeadsKVAll      int // of all layers together
	KeyLength       int // of one head
	ValueLength     int
	FeedForward     int  // the widest of any layer
	StateValues     int  // that recurrent layers keep of a sequence, as far as is known
	OddCache        bool // some layers keep less than keys and values of their heads, or something else
	SlidingWindow   int
	Experts         int
	ExpertsUsed     int

	ChatTemplate  string          // the default one
	ChatTemplates []NamedTemplate // further ones, such as tool_use

	TokenizerModel string
	TokenizerPre   string
	VocabSize      int
	Specials       []Special
	AddBOS         *bool // nil where the file leaves it to the tokenizer
	AddEOS         *bool

	// Sampling holds the general.sampling.* entries without their prefix.
	Sampling []KV
}

// NamedTemplate is a chat template besides the default one.
type NamedTemplate struct{ Name, Source string }

// Special is a token with a role, such as bos, eos, eot or fim_pre.
type Special struct {
	Name string
	ID   int64
	Text string // empty where the vocabulary has no such id
}

const (
	templateKey    = "tokenizer.chat_template"
	samplingPrefix = "general.sampling."
	tokenPrefix    = "tokenizer.ggml."
	tokenSuffix    = "_token_id"
)

// Info gathers the fields that a server or a table needs.
func (f *File) Info() Info {
	i := Info{
		Name:           f.text("general.name"),
		Architecture:   f.text("general.architecture"),
		Kind:           f.text("general.type"),
		SizeLabel:      f.text("general.size_label"),
		License:        f.text("general.license"),
		Quantization:   f.quantization(),
		FileSize:       f.Size,
		Alignment:      f.Alignment,
		SplitCount:     f.int("split.count"),
		ChatTemplate:   f.text(templateKey),
		TokenizerModel: f.text("tokenizer.ggml.model"),
		TokenizerPre:   f.text("tokenizer.ggml.pre"),
		AddBOS:         f.flag("tokenizer.ggml.add_bos_token"),
		AddEOS:         f.flag("tokenizer.ggml.add_eos_token"),
	}
	for _, t := range f.Tensors {
		i.Parameters += t.Elements()
	}
	f.shape(&i)
	for _, kv := range f.KV {
		if name, ok := strings.CutPrefix(kv.Key, templateKey+"."); ok {
			if src, ok := kv.Value.Text(); ok {
				i.ChatTemplates = append(i.ChatTemplates, NamedTemplate{name, src})
			}
		}
		if name, ok := strings.CutPrefix(kv.Key, samplingPrefix); ok {
			i.Sampling = append(i.Sampling, KV{name, kv.Value})
		}
	}
	i.Specials = f.specialIDs()
	for n := range i.Specials {
		i.Specials[n].Text = f.pieces[i.Specials[n].ID]
	}
	return i
}

// shape fills in the numbers that stand under the architecture's name.
func (f *File) shape(i *Info) {
	a := i.Architecture + "."
	i.ContextLength = f.int(a + "context_length")
	i.EmbeddingLength = f.int(a + "embedding_length")
	i.Layers = f.int(a + "block_count")
	i.Heads = f.int(a + "attention.head_count")
	i.HeadsKV = f.int(a + "attention.head_count_kv")
	if i.HeadsKV == 0 {
		i.HeadsKV = i.Heads
	}
	i.KeyLength = f.int(a + "attention.key_length")
	i.ValueLength = f.int(a + "attention.value_length")
	if i.Heads > 0 {
		if i.KeyLength == 0 {
			i.KeyLength = i.EmbeddingLength / i.Heads
		}
		if i.ValueLength == 0 {
			i.ValueLength = i.EmbeddingLength / i.Heads
		}
	}
	i.HeadsKVAll = f.sum(a + "attention.head_count_kv")
	if i.HeadsKVAll == 0 {
		i.HeadsKVAll = i.HeadsKV * i.Layers
	}
	i.FeedForward = f.int(a + "feed_forward_length")
	i.OddCache = f.oddCache(a)
	f.recurrent(a, i)
	i.SlidingWindow = f.int(a + "attention.sliding_window")
	i.Experts = f.int(a + "expert_count")
	i.ExpertsUsed = f.int(a + "expert_used_count")
	i.VocabSize = f.int(a + "vocab_size")
	if v, ok := f.Get("tokenizer.ggml.tokens"); ok {
		if arr, ok := v.Array(); ok {
			i.VocabSize = int(arr.Len)
		}
	}
}

// oddCache goes by the keys of architectures with recurrent layers, compressed
// keys, layers that share a cache or have none, or heads of several sizes.
func (f *File) oddCache(prefix string) bool {
	for _, kv := range f.KV {
		name, ok := strings.CutPrefix(kv.Key, prefix)
		if !ok {
			continue
		}
		for _, odd := range []string{"ssm.", "wkv", "kv_lora", "shared_kv", "nextn", "_swa", "full_attention_interval"} {
			if strings.Contains(name, odd) {
				return true
			}
		}
	}
	return false
}

// recurrent finds what the recurrent layers of Mamba's kind keep: the inputs of
// their convolution and their state (llama_hparams::n_embd_r and n_embd_s). In
// some families each so many layers is one of attention; in others those without
// heads for keys are recurrent.
func (f *File) recurrent(prefix string, i *Info) {
	state, inner := f.int(prefix+"ssm.state_size"), f.int(prefix+"ssm.inner_size")
	layers := i.Layers
	if every := f.int(prefix + "full_attention_interval"); every > 0 {
		layers = i.Layers - i.Layers/every
		i.HeadsKVAll = i.HeadsKV * (i.Layers / every)
	} else if v, ok := f.Get(prefix + "attention.head_count_kv"); ok {
		if a, ok := v.Array(); ok {
			layers = 0
			for _, item := range a.Items {
				if n, ok := item.Int(); ok && n == 0 {
					layers++
				}
			}
		}
	}
	inputs := max(0, f.int(prefix+"ssm.conv_kernel")-1) * (inner + 2*f.int(prefix+"ssm.group_count")*state)
	if values := inputs + state*inner; values > 0 && values < 1<<32 && layers < 1<<16 {
		i.StateValues = layers * values
	}
}

// Special returns the token with that role.
func (i Info) Special(name string) (Special, bool) {
	for _, s := range i.Specials {
		if s.Name == name {
			return s, true
		}
	}
	return Special{}, false
}

// quantization is the file type that the file states, else the type that
// most of its weights have.
func (f *File) quantization() string {
	if v, ok := f.Get("general.file_type"); ok {
		if n, ok := v.Int(); ok {
			if name := fileTypes[uint64(n)&^1024]; name != "" { // 1024 marks a guess
				return name
			}
		}
	}
	count := map[TensorType]uint64{}
	best, most := TensorType(0), uint64(0)
	for _, t := range f.Tensors {
		count[t.Type] += t.Elements()
		if n := count[t.Type]; n > most {
			best, most = t.Type, n
		}
	}
	if most == 0 {
		return ""
	}
	return best.String()
}

// specialIDs lists the tokens with a role in file order, without texts.
func (f *File) specialIDs() []Special {
	var list []Special
	for _, kv := range f.KV {
		name, ok := strings.CutPrefix(kv.Key, tokenPrefix)
		if !ok {
			continue
		}
		if name, ok = strings.CutSuffix(name, tokenSuffix); !ok {
			continue
		}
		if id, ok := kv.Value.Int(); ok {
			list = append(list, Special{Name: name, ID: id})
		}
	}
	return list
}

func (f *File) text(key string) string {
	v, _ := f.Get(key)
	s, _ := v.Text()
	return s
}

func (f *File) flag(key string) *bool {
	v, _ := f.Get(key)
	if b, ok := v.Bool(); ok {
		return &b
	}
	return nil
}

// int returns a count; of an array (one value a layer) the largest. What is
// negative or no count at all is as good as absent.
func (f *File) int(key string) int {
	v, _ := f.Get(key)
	most := int64(0)
	if n, ok := v.Int(); ok {
		most = n
	}
	if a, ok := v.Array(); ok {
		for _, item := range a.Items {
			if n, ok := item.Int(); ok {
				most = max(most, n)
			}
		}
	}
	return int(max(most, 0))
}

// sum adds up an array of one value a layer; 0 if it is none.
func (f *File) sum(key string) int {
	v, _ := f.Get(key)
	a, ok := v.Array()
	if !ok {
		return 0
	}
	all := 0
	for _, item := range a.Items {
		if n, ok := item.Int(); ok && n > 0 && n < 1<<32 {
			all += int(n)
		}
	}
	return all
}
