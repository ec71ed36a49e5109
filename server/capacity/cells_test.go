package capacity

import (
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	half  = Model{HeadsKV: 24 * 2, HeadDimK: 64, HeadDimV: 64, TrainContext: 32768, WeightBytes: 491 << 20}
	seven = Model{HeadsKV: 32 * 8, HeadDimK: 128, HeadDimV: 128, TrainContext: 131072, WeightBytes: 5 << 30}
	small = Model{HeadsKV: 30 * 3, HeadDimK: 64, HeadDimV: 64, TrainContext: 2048, WeightBytes: 98 << 20}
)

func TestCellBytes(t *testing.T) {
	for kvType, want := range map[string]int64{"f16": 12288, "q8_0": 6528, "q4_0": 3456} {
		got, err := half.CellBytes(kvType)
		require.NoError(t, err)
		require.Equal(t, want, got, kvType)
	}
	_, err := half.CellBytes("f64")
	require.ErrorContains(t, err, "f64")
}

func TestCells(t *testing.T) {
	for _, tc := range []struct {
		name      string
		model     Model
		kvType    string
		parallel  int
		available int64
		want      Choice
	}{
		{"plenty", half, "f16", 8, 24 << 30, Choice{65536, "comfort"}},
		{"one sequence at a time", half, "f16", 1, 24 << 30, Choice{32768, "parallel"}},
		{"short contexts", small, "f16", 8, 24 << 30, Choice{16384, "parallel"}},
		{"long context fits", seven, "f16", 4, 64 << 30, Choice{131072, "model"}},
		{"one long context may take more than half", seven, "f16", 4, 24 << 30, Choice{131072, "model"}},
		{"memory is short", seven, "f16", 4, 8 << 30, Choice{20480, "memory"}},
		{"smaller cells fit more", seven, "q4_0", 4, 8 << 30, Choice{69376, "memory"}},
		{"weights do not fit", seven, "f16", 4, 4 << 30, Choice{2048, "memory"}},
		{"memory unknown", half, "f16", 8, 0, Choice{65536, "comfort"}},
		{"nothing known of the model", Model{}, "f16", 8, 8 << 30, Choice{2048, "model"}},
		{"odd context", Model{HeadsKV: 1, HeadDimK: 32, HeadDimV: 32, TrainContext: 300}, "f16", 1, 1 << 30, Choice{512, "parallel"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := Cells(tc.model, Ask{KVType: tc.kvType, Parallel: tc.parallel, UBatch: 512, Flash: true}, tc.available)
			require.NoError(t, err)
			require.Equal(t, tc.want, got)
		})
	}
	_, err := Cells(half, Ask{KVType: "int8", Parallel: 1, UBatch: 512}, 0)
	require.Error(t, err)
}

// What is chosen never exceeds memory, except for the least that a node gets.
func TestCellsStayWithinMemory(t *testing.T) {
	for _, m := range []Model{half, seven, small} {
		for _, kvType := range []string{"f16", "q8_0", "q4_0"} {
			cell, err := m.CellBytes(kvType)
			require.NoError(t, err)
			for available := int64(1 << 28); available < 1<<37; available += available / 7 {
				c, err := Cells(m, Ask{KVType: kvType, Parallel: 8, UBatch: 512, Flash: true}, available)
				require.NoError(t, err)
				require.Zero(t, c.Cells%granule)
				if c.Cells > least {
					require.Less(t, int64(c.Cells)*cell+m.WeightBytes+program, available)
				}
			}
		}
	}
}
