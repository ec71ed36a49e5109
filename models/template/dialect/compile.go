package dialect

import (
	"errors"
	"fmt"
	"sort"
	"strconv"
	"strings"

	"github.com/ardanlabs/jinja"
)

// prefix keeps the names that the compiler makes apart from a template's own.
const prefix = "__q_"

// Program is a compiled template.
type Program struct {
	tmpl  *jinja.Template
	texts []jinja.Value
	used  []string
	names map[string]bool
}

// Reads tells whether the template mentions a variable of that name. A name
// that the template only sets counts too.
func (p *Program) Reads(name string) bool { return p.names[name] }

// compiler writes the library's template. Blocks are written innermost first,
// because what a loop needs before and inside it is known only at its end.
type compiler struct {
	texts  []jinja.Value
	used   map[string]bool
	names  map[string]bool
	blocks []*block
	serial int
	grows  bool // the expression being read can make a string longer
}

// block is an open block statement.
type block struct {
	keyword string
	line    int
	head    string // the opening tag, written when the block ends
	before  string // goes in front of it
	first   string // goes first into the body
	after   string // follows the closing tag
	body    strings.Builder
	hasElse bool
	targets map[string]bool // of a loop
	sets    []string        // variables set in its scope
}

// Compile reads a template.
func Compile(src string) (p *Program, err error) {
	if len(src) > maxSourceBytes {
		return nil, fault(0, "%d bytes long, the limit is %d", len(src), maxSourceBytes)
	}
	pieces, err := scan(src)
	if err != nil {
		return nil, err
	}
	defer func() {
		if r := recover(); r != nil {
			var e *Error
			if re, ok := r.(error); !ok || !errors.As(re, &e) {
				e = &Error{0, fmt.Errorf("can't be compiled: %v", r)}
			}
			p, err = nil, e
		}
	}()
	c := &compiler{used: map[string]bool{}, names: map[string]bool{}, blocks: []*block{{}}}
	for _, pc := range pieces {
		c.piece(pc)
	}
	if b := c.top(); b.keyword != "" {
		return nil, fault(b.line, "%s block is not closed", b.keyword)
	}
	tmpl, err := jinja.Compile(c.top().body.String())
	if err != nil {
		return nil, fault(0, "can't be compiled: %w", err)
	}
	p = &Program{tmpl: tmpl, texts: c.texts, names: c.names}
	for fn := range c.used {
		p.used = append(p.used, fn)
	}
	sort.Strings(p.used)
	return p, nil
}

func (c *compiler) top() *block { return c.blocks[len(c.blocks)-1] }

func (c *compiler) write(parts ...string) {
	for _, s := range parts {
		c.top().body.WriteString(s)
	}
}

func (c *compiler) fresh() string {
	c.serial++
	return prefix + strconv.Itoa(c.serial)
}

func (c *compiler) piece(pc piece) {
	switch pc.kind {
	case pieceText:
		c.write("{{", c.call("text", strconv.Itoa(len(c.texts))), "}}")
		c.texts = append(c.texts, jinja.NewString(pc.text))
	case pieceOutput:
		p := &parser{c: c, toks: pc.toks}
		e := p.tuple()
		p.end()
		c.write("{{", c.at(pc.line), c.call("out", e), " }}")
	case pieceStatement:
		p := &parser{c: c, toks: pc.toks}
		c.statement(p, pc.line)
		p.end()
	}
}

func (c *compiler) statement(p *parser, line int) {
	switch keyword := p.name(); keyword {
	case "if":
		c.write("{%if ", c.at(line), p.tuple(), " %}")
		c.open(&block{keyword: "if", line: line})
	case "elif", "else":
		c.branch(p, keyword, line)
	case "for":
		c.loop(p, line)
	case "set":
		c.set(p, line)
	case "macro":
		c.macro(p, line)
	case "call":
		c.callBlock(p, line)
	case "filter":
		c.filterBlock(p, line)
	case "break", "continue":
		c.write("{%", keyword, "%}")
	case "generation":
		c.open(&block{keyword: keyword, line: line})
	case "endif", "endfor", "endset", "endmacro", "endcall", "endfilter", "endgeneration":
		if keyword == "endmacro" && p.peek().kind == tokName {
			p.pos++
		}
		c.close(strings.TrimPrefix(keyword, "end"), line)
	default:
		panic(fault(line, "statement %q is not supported", keyword))
	}
}

func (c *compiler) open(b *block) {
	if len(c.blocks) > maxNesting {
		panic(fault(b.line, "blocks are nested too deeply"))
	}
	c.blocks = append(c.blocks, b)
}

func (c *compiler) branch(p *parser, keyword string, line int) {
	b := c.top()
	if b.hasElse || b.keyword != "if" && (b.keyword != "for" || keyword == "elif") {
		panic(fault(line, "%s without if", keyword))
	}
	if keyword == "else" {
		b.hasElse = true
		c.write("{%else%}")
		return
	}
	c.write("{%elif ", c.at(line), p.tuple(), " %}")
}

// close ends the innermost block and writes it into the one around it.
func (c *compiler) close(keyword string, line int) {
	b := c.top()
	if b.keyword != keyword {
		if b.keyword == "" {
			panic(fault(line, "end%s without %s", keyword, keyword))
		}
		panic(fault(line, "end%s where the %s of line %d is open", keyword, b.keyword, b.line))
	}
	c.blocks = c.blocks[:len(c.blocks)-1]
	if keyword == "generation" {
		c.inherit(b)
		c.write(b.body.String())
		return
	}
	if keyword == "for" {
		c.isolate(b)
	}
	if keyword == "if" || keyword == "set" || keyword == "filter" {
		c.inherit(b)
	}
	if keyword == "macro" {
		b.body.WriteString("{{" + c.call("leave") + "}}")
	}
	c.write(b.before, b.head, b.first, b.body.String())
	if keyword == "filter" {
		keyword = "set" // a filter block is run as a block assignment
	}
	c.write("{%end", keyword, "%}", b.after)
}

// inherit hands the assignments in a block without a scope of its own up.
func (c *compiler) inherit(b *block) {
	c.top().sets = append(c.top().sets, b.sets...)
}

// isolate makes a loop body begin each round with the variables as they were
// before the loop; the library keeps what the last round has set.
func (c *compiler) isolate(b *block) {
	seen := map[string]bool{}
	for _, name := range b.sets {
		if seen[name] || b.targets[name] {
			continue
		}
		seen[name] = true
		saved := c.fresh()
		b.before += "{%set " + saved + " = " + name + "%}"
		b.first += "{%set " + name + " = " + saved + "%}"
	}
}

func (c *compiler) assigned(name string) {
	c.top().sets = append(c.top().sets, name)
	c.names[name] = true
}
