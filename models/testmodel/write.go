package testmodel

import (
	"quern/models/gguf"
)

// ContextLength is what the file claims; positions do not matter to the model.
const ContextLength = 32768

// Write writes the model to path.
func Write(path string) error {
	n := build()
	var w gguf.Writer
	w.Text("general.architecture", "llama")
	w.Text("general.type", "model")
	w.Text("general.name", "scripted")
	w.Text("general.size_label", "tiny")
	w.Uint32("general.file_type", 0)
	w.Uint32("llama.context_length", ContextLength)
	w.Uint32("llama.embedding_length", embd)
	w.Uint32("llama.block_count", 1)
	w.Uint32("llama.feed_forward_length", ffn)
	w.Uint32("llama.attention.head_count", heads)
	w.Uint32("llama.attention.head_count_kv", heads)
	w.Float32("llama.attention.layer_norm_rms_epsilon", rmsEps)
	w.Float32("llama.rope.freq_base", ropeBase)
	w.Uint32("llama.rope.dimension_count", headDim)
	n.writeVocab(&w)
	n.writeTensors(&w)
	return w.WriteFile(path)
}

func (n *network) writeVocab(w *gguf.Writer) {
	w.Uint32("llama.vocab_size", uint32(len(n.v.texts)))
	w.Text("tokenizer.ggml.model", "gpt2")
	w.Text("tokenizer.ggml.pre", "qwen2")
	w.Texts("tokenizer.ggml.tokens", n.v.coded)
	w.Int32s("tokenizer.ggml.token_type", n.v.types)
	w.Texts("tokenizer.ggml.merges", n.v.merges)
	w.Uint32("tokenizer.ggml.bos_token_id", uint32(n.v.id("<|endoftext|>")))
	w.Uint32("tokenizer.ggml.eos_token_id", uint32(n.v.id(eos)))
	w.Uint32("tokenizer.ggml.padding_token_id", uint32(n.v.id("<|endoftext|>")))
	w.Bool("tokenizer.ggml.add_bos_token", false)
	w.Text("tokenizer.chat_template", ChatTemplate)
}

func (n *network) writeTensors(w *gguf.Writer) {
	ones := make([]float32, embd)
	for i := range ones {
		ones[i] = 1
	}
	size := uint64(len(n.v.texts))
	w.Tensor("token_embd.weight", n.embed, embd, size)
	w.Tensor("output_norm.weight", ones, embd)
	w.Tensor("output.weight", n.out, embd, size)
	w.Tensor("blk.0.attn_norm.weight", ones, embd)
	w.Tensor("blk.0.attn_q.weight", n.wq, embd, embd)
	w.Tensor("blk.0.attn_k.weight", n.wk, embd, embd)
	w.Tensor("blk.0.attn_v.weight", n.wv, embd, embd)
	w.Tensor("blk.0.attn_output.weight", n.wo, embd, embd)
	w.Tensor("blk.0.ffn_norm.weight", ones, embd)
	w.Tensor("blk.0.ffn_gate.weight", make([]float32, ffn*embd), embd, ffn)
	w.Tensor("blk.0.ffn_up.weight", make([]float32, ffn*embd), embd, ffn)
	w.Tensor("blk.0.ffn_down.weight", make([]float32, ffn*embd), ffn, embd)
}
