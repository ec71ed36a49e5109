package gguf

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWork(t *testing.T) {
	const f32 = TensorType(0)
	embd := Tensor{Name: "token_embd.weight", Type: f32, Dims: []uint64{8, 100}}
	attn := Tensor{Name: "blk.0.attn_q.weight", Type: f32, Dims: []uint64{8, 8}}
	norm := Tensor{Name: "blk.0.attn_norm.weight", Type: f32, Dims: []uint64{8}}
	tied := File{Tensors: []Tensor{embd, attn, norm}}
	require.Equal(t, Work{DecodeBytes: 4 * (800 + 64 + 8), Products: 64, Sampled: 800}, tied.Work(Info{}))

	output := embd
	output.Name = "output.weight"
	own := File{Tensors: []Tensor{embd, attn, output}}
	require.Equal(t, Work{DecodeBytes: 4 * (64 + 800), Products: 64, Sampled: 800}, own.Work(Info{}), "the embedding is a row")

	experts := File{Tensors: []Tensor{{Name: "blk.0.ffn_up_exps.weight", Type: f32, Dims: []uint64{8, 16, 10}}}}
	require.Equal(t, Work{DecodeBytes: 4 * 256, Products: 256}, experts.Work(Info{Experts: 10, ExpertsUsed: 2}))
}
