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
	KeyLength       int // of one head
	ValueLength     int
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
