package gguf

import "strings"

// Work is what one token costs, by the tensors of a file: all else, attention
// over earlier tokens above all, comes on top.
type Work struct {
	DecodeBytes int64  // weights read for a token that is decoded alone
	Products    uint64 // multiply-adds of weights for a token of a prompt
	Sampled     uint64 // further ones where a token is sampled
}

// Work adds up the weights that a token meets. Of experts it counts those that
// are used.
func (f *File) Work(info Info) Work {
	own := false // the output has weights of its own
	for _, t := range f.Tensors {
		own = own || t.Name == "output.weight"
	}
	var w Work
	for _, t := range f.Tensors {
		bytes, _ := t.Bytes()
		products := uint64(0)
		if len(t.Dims) > 1 {
			products = t.Elements()
		}
		if strings.Contains(t.Name, "_exps.") && info.Experts > 0 {
			bytes = bytes / int64(info.Experts) * int64(info.ExpertsUsed)
			products = products / uint64(info.Experts) * uint64(info.ExpertsUsed)
		}
		switch {
		case t.Name == "token_embd.weight" && own:
			// One row is read.
		case t.Name == "output.weight" || t.Name == "token_embd.weight":
			w.DecodeBytes += bytes
			w.Sampled += products
		default:
			w.DecodeBytes += bytes
			w.Products += products
		}
	}
	return w
}
