package schema

import (
	"errors"
	"fmt"
	"strings"
)

// Error says what is wrong with a schema and where.
type Error struct {
	// Path leads to the keyword or subschema, "$" being the whole schema:
	// $.properties.city.pattern, $.anyOf[1], $.properties["a b"].
	Path string
	Msg  string
	// none marks a subschema that no value satisfies, which matters only
	// where a value is needed.
	none bool
}

func (e *Error) Error() string { return e.Path + ": " + e.Msg }

// unsatisfiable says that nothing fits; callers with another choice take that.
func unsatisfiable(path string) *Error {
	return &Error{Path: path, Msg: "no value satisfies this", none: true}
}

func isUnsatisfiable(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.none
}

func errorAt(path, format string, args ...any) *Error {
	return &Error{Path: path, Msg: fmt.Sprintf(format, args...)}
}

// join appends a key to a path.
func join(path, key string) string {
	plain := key != ""
	for _, c := range key {
		plain = plain && (c == '_' || c == '$' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z')
	}
	if plain {
		return path + "." + key
	}
	var b strings.Builder
	b.WriteString(path)
	b.WriteByte('[')
	writeJSONString(&b, key)
	b.WriteByte(']')
	return b.String()
}

func index(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }
