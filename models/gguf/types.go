package gguf

import "fmt"

// ValueType is the type of a metadata value, as the file numbers them.
type ValueType uint32

// The value types of GGUF.
const (
	Uint8 ValueType = iota
	Int8
	Uint16
	Int16
	Uint32
	Int32
	Float32
	Bool
	String
	ArrayOf
	Uint64
	Int64
	Float64
)

var valueTypes = [...]struct {
	name string
	size int // bytes of one value, 0 where it varies
}{
	Uint8: {"u8", 1}, Int8: {"i8", 1}, Uint16: {"u16", 2}, Int16: {"i16", 2},
	Uint32: {"u32", 4}, Int32: {"i32", 4}, Float32: {"f32", 4}, Bool: {"bool", 1},
	String: {"str", 0}, ArrayOf: {"arr", 0}, Uint64: {"u64", 8}, Int64: {"i64", 8}, Float64: {"f64", 8},
}

func (t ValueType) valid() bool { return int(t) < len(valueTypes) }

func (t ValueType) String() string {
	if !t.valid() {
		return fmt.Sprintf("type %d", uint32(t))
	}
	return valueTypes[t].name
}

// TensorType is the storage type of a tensor, as ggml numbers them.
type TensorType uint32

// TensorF32 is the one type the Writer writes.
const TensorF32 TensorType = 0

// tensorTypes gives name, elements a block and bytes a block. Numbers left
// out were withdrawn or are newer than this table: their size is unknown.
var tensorTypes = map[TensorType]struct {
	name         string
	block, bytes uint64
}{
	0: {"F32", 1, 4}, 1: {"F16", 1, 2}, 30: {"BF16", 1, 2}, 28: {"F64", 1, 8},
	24: {"I8", 1, 1}, 25: {"I16", 1, 2}, 26: {"I32", 1, 4}, 27: {"I64", 1, 8},
	2: {"Q4_0", 32, 18}, 3: {"Q4_1", 32, 20}, 6: {"Q5_0", 32, 22}, 7: {"Q5_1", 32, 24},
	8: {"Q8_0", 32, 34}, 9: {"Q8_1", 32, 36},
	10: {"Q2_K", 256, 84}, 11: {"Q3_K", 256, 110}, 12: {"Q4_K", 256, 144},
	13: {"Q5_K", 256, 176}, 14: {"Q6_K", 256, 210}, 15: {"Q8_K", 256, 292},
	16: {"IQ2_XXS", 256, 66}, 17: {"IQ2_XS", 256, 74}, 18: {"IQ3_XXS", 256, 98},
	19: {"IQ1_S", 256, 50}, 20: {"IQ4_NL", 32, 18}, 21: {"IQ3_S", 256, 110},
	22: {"IQ2_S", 256, 82}, 23: {"IQ4_XS", 256, 136}, 29: {"IQ1_M", 256, 56},
	34: {"TQ1_0", 256, 54}, 35: {"TQ2_0", 256, 66}, 39: {"MXFP4", 32, 17},
}

func (t TensorType) String() string {
	if d, ok := tensorTypes[t]; ok {
		return d.name
	}
	return fmt.Sprintf("type %d", uint32(t))
}

// fileTypes names the values of general.file_type.
var fileTypes = map[uint64]string{
	0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 7: "Q8_0", 8: "Q5_0", 9: "Q5_1",
	10: "Q2_K", 11: "Q3_K_S", 12: "Q3_K_M", 13: "Q3_K_L", 14: "Q4_K_S", 15: "Q4_K_M",
	16: "Q5_K_S", 17: "Q5_K_M", 18: "Q6_K", 19: "IQ2_XXS", 20: "IQ2_XS", 21: "Q2_K_S",
	22: "IQ3_XS", 23: "IQ3_XXS", 24: "IQ1_S", 25: "IQ4_NL", 26: "IQ3_S", 27: "IQ3_M",
	28: "IQ2_S", 29: "IQ2_M", 30: "IQ4_XS", 31: "IQ1_M", 32: "BF16", 36: "TQ1_0",
	37: "TQ2_0", 38: "MXFP4_MOE",
}
