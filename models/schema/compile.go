package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"quern/models/schema/gbnf"
)

// Options say how a schema becomes a grammar.
type Options struct {
	// Strict makes an error of what a grammar cannot enforce, instead of
	// widening it, and implies Closed.
	Strict bool
	// Closed keeps objects that declare properties to those, unless
	// additionalProperties says otherwise. JSON Schema leaves them open;
	// small models then invent keys.
	Closed bool
	// Object demands an object at the top, whatever the schema says.
	Object bool
	// Pretty allows line breaks and indentation between tokens, bounded.
	// Otherwise a value is one line with at most a space after : and ",".
	Pretty bool
	// Recursion is how often a value may stand inside one of the same schema, 0
	// for no limit. Small models nest without end where they may; what lies
	// deeper has to be null, empty or absent. A schema that becomes too large so
	// has no limit.
	Recursion int
	// Spelling writes the arguments of a call as a family does; the schema's top
	// is then an object, and what stands around the arguments is not written.
	Spelling Spelling
}

// Compiled is a schema as grammar rules. Rules of the same name are the same
// in all Compileds, so several can stand in one grammar.
type Compiled struct {
	Root  string // name of the rule for a whole value
	Rules []Rule
	// Relaxed lists what the grammar does not enforce.
	Relaxed []*Error
	// member is what a Text's Member was made of; nil for a schema's grammar.
	member *textMember
}

// GBNF is the grammar of the schema alone.
func (c *Compiled) GBNF() string {
	var g Grammar
	g.Add(c)
	return g.Text(c.Root)
}

// maxSteps bounds the work on one schema.
const maxSteps = 100_000

type compiler struct {
	opt     Options
	dialect dialect
	root    *value
	b       *builder
	flats   map[*value][]flat
	open    map[*value]bool // being flattened
	anchors map[string]node
	names   map[string]string // key of a conj → its rule
	ids     map[*value]int
	written map[string]string // expressions of texts and numbers, see once
	pending map[string]bool   // rules being written → referred to meanwhile
	cyclic  bool              // some rule contains itself
	level   int               // of recursion
	looped  bool              // some schema contains itself
	none    map[string]bool   // keys of conjs that nothing satisfies at their level
	relaxed []*Error
	steps   int
	depth   int
}

// Compile makes a grammar of a schema. Absent, null and true mean any value.
// Errors are of type *Error.
func Compile(schema json.RawMessage, o Options) (*Compiled, error) {
	c, err := compile(schema, o)
	var e *Error
	if err != nil && !errors.As(err, &e) {
		err = &Error{Path: "$", Msg: err.Error()}
	}
	return c, err
}

func compile(schema json.RawMessage, o Options) (*Compiled, error) {
	c, out, err := compileOnce(schema, o)
	switch {
	case err == nil || c == nil || !c.looped || o.Recursion == 0:
		return out, err
	case isUnsatisfiable(err):
		return nil, requiresItself()
	}
	o.Recursion = 0
	_, out, err = compileOnce(schema, o)
	return out, err
}

func compileOnce(schema json.RawMessage, o Options) (*compiler, *Compiled, error) {
	root := &value{kind: kindBool, bool: true}
	if len(schema) > 0 {
		v, err := decode(schema)
		if err != nil {
			return nil, nil, err
		}
		if v.kind != kindNull {
			root = v
		}
	}
	o.Closed = o.Closed || o.Strict
	c := newCompiler(root, o, prefix(schema, o))
	top := conj{{root, "$"}}
	if o.Object {
		kind := &value{kind: kindString, text: "object"}
		top = append(top, node{&value{kind: kindObject, keys: []string{"type"}, vals: []*value{kind}}, "$"})
	}
	write := c.rule
	if o.Spelling.Kind == AsTags || o.Spelling.Kind == AsKeywords {
		write = c.arguments
	}
	name, err := write(top)
	if err != nil {
		return c, nil, err
	}
	out := &Compiled{Root: name, Rules: c.b.rules, Relaxed: c.relaxed}
	if c.cyclic {
		return c, out, out.checkEnds()
	}
	return c, out, nil
}

func newCompiler(root *value, o Options, prefix string) *compiler {
	return &compiler{
		opt: o, dialect: o.dialect(), root: root, b: newBuilder(prefix), flats: map[*value][]flat{},
		open: map[*value]bool{}, names: map[string]string{}, ids: map[*value]int{},
		pending: map[string]bool{}, written: map[string]string{}, none: map[string]bool{},
	}
}

// prefix makes rule names that differ between schemas and agree for one.
func prefix(schema []byte, o Options) string {
	h := fnv.New64a()
	h.Write(schema)
	fmt.Fprintf(h, "%+v", o)
	return "s" + strconv.FormatUint(h.Sum64(), 36)
}

// spend counts work.
func (c *compiler) spend(path string, steps int) error {
	if c.steps += steps; c.steps > maxSteps {
		return errorAt(path, "the schema is too complex")
	}
	return nil
}

// relax notes something that the grammar leaves open; under Strict it is an
// error.
func (c *compiler) relax(path, format string, args ...any) error {
	e := errorAt(path, format, args...)
	if c.opt.Strict {
		return e
	}
	if len(c.relaxed) < 32 {
		c.relaxed = append(c.relaxed, e)
	}
	return nil
}

// rule compiles schemas that all hold into an expression that stands for one
// element: a rule name.
func (c *compiler) rule(all conj) (string, error) {
	all = c.dedupe(all)
	key := c.key(all)
	if name, ok := c.names[key]; ok {
		_, inside := c.pending[name]
		switch {
		case inside && c.opt.Recursion > 0:
			return c.deeper(all)
		case inside:
			c.pending[name], c.cyclic = true, true
		}
		return name, nil
	}
	if c.none[key] {
		return "", unsatisfiable(all.path())
	}
	if c.depth++; c.depth > 2*maxDepth*(1+c.opt.Recursion) {
		return "", errorAt(all.path(), "nested too deeply")
	}
	defer func() { c.depth-- }()
	name := c.b.reserve()
	c.names[key], c.pending[name] = name, false
	body, err := c.body(all)
	used := c.pending[name]
	delete(c.pending, name)
	switch {
	case err != nil && used && isUnsatisfiable(err):
		return "", errorAt(all.path(), "no value satisfies this") // other rules have the name
	case err != nil:
		delete(c.names, key)
		c.none[key] = isUnsatisfiable(err)
		return "", err
	case used:
		return name, c.b.put(name, body)
	case !isRuleName(body):
		if body, err = c.b.add(body); err != nil {
			return "", err
		}
	}
	c.names[key] = body
	return body, nil
}

// deeper compiles schemas that are being compiled further out, for one level of
// recursion more.
func (c *compiler) deeper(all conj) (string, error) {
	c.looped = true
	if c.level == c.opt.Recursion {
		return "", unsatisfiable(all.path())
	}
	c.level++
	defer func() { c.level-- }()
	return c.rule(all)
}

func requiresItself() *Error { return errorAt("$", "some object or array requires itself without end") }

// checkEnds refuses rules that nothing finite derives, such as an object that
// requires itself: the sampler would never get out of one.
func (c *Compiled) checkEnds() error {
	g, err := gbnf.Parse(c.GBNF())
	if err != nil {
		return err
	}
	if _, endless := gbnf.NewDeriver(g, 0); endless != "" {
		return requiresItself()
	}
	return nil
}

// dedupe drops repeated schemas, and takes what a bare reference leads to for the
// reference, so that all references to one schema share its rule.
func (c *compiler) dedupe(all conj) conj {
	var out conj
	for _, n := range all {
		n = c.target(n)
		if !slices.ContainsFunc(out, func(o node) bool { return o.v == n.v }) {
			out = append(out, n)
		}
	}
	return out
}

// target follows references within the schema beside which nothing else is said.
// Faults are left to flatten.
func (c *compiler) target(n node) node {
	for range maxDepth {
		if n.v.kind != kindObject || len(n.v.keys) != 1 || n.v.keys[0] != "$ref" || !strings.HasPrefix(n.v.vals[0].text, "#") {
			return n
		}
		next, err := c.resolve(node{n.v.vals[0], join(n.path, "$ref")})
		if err != nil || next.v == nil {
			return n
		}
		n = next
	}
	return n
}

// key names schemas at the current level of recursion.
func (c *compiler) key(all conj) string {
	b := strconv.AppendInt(nil, int64(c.level), 10)
	b = append(b, '@')
	for _, n := range all {
		id, ok := c.ids[n.v]
		if !ok {
			id = len(c.ids)
			c.ids[n.v] = id
		}
		b = append(strconv.AppendInt(b, int64(id), 10), ',')
	}
	return string(b)
}

// alternatives are those of schemas that all hold.
func (c *compiler) alternatives(all conj) ([]flat, error) {
	flats := []flat{newFlat("")}
	for _, n := range all {
		var err error
		if flats, err = c.with(flats, []node{n}); err != nil {
			return nil, err
		}
	}
	return flats, nil
}

// body writes the alternatives of a value.
func (c *compiler) body(all conj) (string, error) {
	flats, err := c.alternatives(all)
	if err != nil {
		return "", err
	}
	var alts []string
	var literals []*value
	add := func(s string) {
		if !slices.Contains(alts, s) {
			alts = append(alts, s)
		}
	}
	for i := range flats {
		f := &flats[i]
		if f.hasEnum {
			values, err := c.allowed(f)
			if err != nil {
				return "", err
			}
			literals = append(literals, values...)
			continue
		}
		exprs, err := c.types(f)
		if err != nil {
			return "", err
		}
		for _, e := range exprs {
			add(e)
		}
	}
	exprs, err := c.literals(literals)
	if err != nil {
		return "", err
	}
	for _, e := range exprs {
		add(e)
	}
	if len(alts) == 0 {
		return "", unsatisfiable(all.path())
	}
	return strings.Join(alts, " | "), nil
}

// types writes one expression for each type that an alternative allows.
func (c *compiler) types(f *flat) ([]string, error) {
	f.implied()
	if f.types == typeAny && !f.typed {
		return []string{c.prim("value")}, nil
	}
	var out []string
	for _, t := range [...]struct {
		set   typeSet
		write func(*flat) (string, error)
	}{
		{typeObject, c.object}, {typeArray, c.array}, {typeString, c.string},
		{typeInteger, c.number}, {typeBool, c.fixed("boolean")}, {typeNull, c.fixed("null")},
	} {
		if f.types&t.set == 0 {
			continue
		}
		expr, err := t.write(f)
		switch {
		case err == nil:
			out = append(out, expr)
		case isUnsatisfiable(err): // other types may do
		default:
			return nil, err
		}
	}
	return out, nil
}

func isRuleName(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool {
		return r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z')
	})
}

func (c *compiler) fixed(name string) func(*flat) (string, error) {
	return func(*flat) (string, error) { return c.prim(name), nil }
}

// comma is what stands between members, inner what stands inside brackets.
func (c *compiler) comma() string { return `"," ` + c.b.prim("ws"+c.layout()) }

func (c *compiler) layout() string {
	if c.dialect.pretty {
		return "-p"
	}
	return "-l"
}

func (c *compiler) inner() string {
	if c.dialect.pretty {
		return " " + c.b.prim("ws-p")
	}
	return ""
}
