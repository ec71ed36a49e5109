package server

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestStringsAreEscaped(t *testing.T) {
	require.Equal(t, `"a\"b\\c\n\r\t\u0001<&>é\u2028\u2029\u0085😀\ufffd"`, string(appendString(nil, "a\"b\\c\n\r\t\x01<&>é\u2028\u2029\u0085😀\xff")))
	require.Equal(t, `"\ufffd\ufffd"`, string(appendString(nil, []byte{0xe2, 0x80})), "a character that is not whole")
}

func TestNumbers(t *testing.T) {
	for want, f := range map[string]float64{"0": math.NaN(), "1": 1, "0.1": .1, "1e+21": 1e21} {
		require.Equal(t, want, string(appendFloat(nil, f)))
	}
	require.Equal(t, "-3.4028234663852886e+38", string(appendFloat32(nil, float32(math.Inf(-1)))))
	require.Equal(t, "0.1", string(appendFloat32(nil, .1)))
}

func TestCompact(t *testing.T) {
	want := `{"a b":[1,"x \" y\\",{"c":null}],"\u2028":"\u0085"}`
	require.Equal(t, want, string(appendCompact(nil, []byte("{ \"a b\" :\n [1, \"x \\\" y\\\\\",\t{\"c\":null}],\r\n\"\u2028\":\"\u0085\" }"))))
}

// FuzzAppendString: what is written is what a JSON reader reads, on one line.
func FuzzAppendString(f *testing.F) {
	f.Add("plain")
	f.Add("\u2028\x00\xff\"\\é")
	f.Fuzz(func(t *testing.T, s string) {
		raw := appendString(nil, s)
		require.False(t, strings.ContainsAny(string(raw), "\n\r\u2028\u2029\u0085"))
		var back string
		require.NoError(t, json.Unmarshal(raw, &back))
		if utf8.ValidString(s) {
			require.Equal(t, s, back)
		}
		quoted, err := json.MarshalIndent(map[string]any{"k": s, "l": []int{1, 2}}, "", "  ")
		require.NoError(t, err)
		require.JSONEq(t, string(quoted), string(appendCompact(nil, quoted)))
	})
}
