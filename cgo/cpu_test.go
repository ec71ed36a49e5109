package cgo

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCheckCPU(t *testing.T) {
	require.NoError(t, CheckCPU(), "this test could not run otherwise")
	require.Contains(t, []string{"on", "off", "none"}, AMX())
	t.Log(CPUFeatures(), "AMX:", AMX())
}
