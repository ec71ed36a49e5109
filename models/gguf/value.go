package gguf

import (
	"fmt"
	"math"
	"strconv"
)

// KV is one metadata entry.
type KV struct {
	Key   string
	Value Value
}

// Value is one metadata value of any type.
type Value struct {
	Type ValueType
	bits uint64 // numbers and bool: two's complement or IEEE bits
	text string
	arr  *Array
}

// Array is an array value. Short ones are decoded; of long ones (a
// vocabulary) only the place in the file is kept and Items is nil.
type Array struct {
	Type   ValueType
	Len    uint64
	Items  []Value
	Offset int64 // of the first element in the file
	Bytes  int64
}

// Text returns a string value.
func (v Value) Text() (string, bool) { return v.text, v.Type == String }

// Array returns an array value.
func (v Value) Array() (*Array, bool) { return v.arr, v.Type == ArrayOf }

// Bool returns a bool value.
func (v Value) Bool() (value, ok bool) { return v.bits != 0, v.Type == Bool }

// Int returns an integer value of any width. A u64 that does not fit is not
// an integer here.
func (v Value) Int() (int64, bool) {
	switch v.Type {
	case Uint8, Uint16, Uint32, Int8, Int16, Int32, Int64:
		return int64(v.bits), true
	case Uint64:
		return int64(v.bits), v.bits <= math.MaxInt64
	}
	return 0, false
}

// Float returns a number of any type.
func (v Value) Float() (float64, bool) {
	switch v.Type {
	case Float32:
		return float64(math.Float32frombits(uint32(v.bits))), true
	case Float64:
		return math.Float64frombits(v.bits), true
	case Uint64:
		return float64(v.bits), true
	}
	i, ok := v.Int()
	return float64(i), ok
}

// String shows the value as a table does: whole text, the items of a short
// array, the length of a long one.
func (v Value) String() string {
	switch v.Type {
	case String:
		return v.text
	case Bool:
		return strconv.FormatBool(v.bits != 0)
	case Float32:
		return strconv.FormatFloat(float64(math.Float32frombits(uint32(v.bits))), 'g', -1, 32)
	case Float64:
		return strconv.FormatFloat(math.Float64frombits(v.bits), 'g', -1, 64)
	case Uint64:
		return strconv.FormatUint(v.bits, 10)
	case ArrayOf:
		if v.arr.Items != nil || v.arr.Len == 0 {
			return fmt.Sprint(v.arr.Items)
		}
		return fmt.Sprintf("[%d × %s]", v.arr.Len, v.arr.Type)
	}
	return strconv.FormatInt(int64(v.bits), 10)
}
