package toolcall

import (
	"strings"

	"quern/models/schema"
)

// asObjects is the block of objects between the same markers, where the family
// writes something else. Readers know it as well, and every JSON Schema that a
// grammar can hold can be held in it. nil is for families of JSON.
func (b *Block) asObjects() *Block {
	switch {
	case b.Style == Expression && b.closing() == '}': // JSON has that form
		c := *b
		c.Style, c.NameEnd = ArgsAfterName, ""
		return &c
	case b.Style == Expression:
		return &Block{Start: b.Start, End: b.End, List: true}
	case b.Literals: // JSON is among them
		c := *b
		c.Literals = false
		return &c
	case b.Style == Tagged:
		return &Block{Start: b.first(), End: orElse(b.SectionEnd, b.End), Lead: "\n", Trail: "\n", Between: "\n"}
	}
	return nil
}

// spelling is how the arguments of a call are written.
func (b *Block) spelling() schema.Spelling {
	if b.Literals {
		return schema.Spelling{Kind: schema.AsLiterals}
	}
	switch b.Style {
	case Tagged:
		t := &b.Tags
		return schema.Spelling{
			Kind: schema.AsTags, KeyStart: t.KeyStart, KeyEnd: t.KeyEnd, ValueStart: t.ValueStart, ValueEnd: t.ValueEnd,
			Lead: t.Lead, Trail: t.Trail, Gap: t.Gap, After: t.After, Typed: t.Typed, Trim: t.Trim, Loose: b.Loose,
		}
	case Expression:
		assign := "="
		if b.closing() == '}' {
			assign = ":"
		}
		return schema.Spelling{Kind: schema.AsKeywords, Assign: assign, Quote: b.Quote}
	}
	return schema.Spelling{}
}

// first is the marker that begins a block.
func (b *Block) first() string { return orElse(b.Section, b.Start) }

// inside is what stands between the markers of one call and the call.
func (b *Block) inside() (lead, trail string) {
	switch {
	case b.List:
		return "", ""
	case b.Style == Tagged:
		return "", b.Trail + b.End
	}
	return b.Lead, b.Trail + b.End
}

// around is what stands before the first and after the last call.
func (b *Block) around() (before, after string) {
	lead, trail := b.inside()
	if b.List { // Inner is the list's
		return b.Section + b.Start, b.End + b.SectionEnd
	}
	return b.Section + b.Inner + b.Start + lead, trail + b.Inner + b.SectionEnd
}

// repeat is what stands around all calls, inside of the outermost markers, and
// between two of them, as expressions.
func (b *Block) repeat() (open, between, shut string) {
	before, after := b.around()
	lead, trail := b.inside()
	switch {
	case b.List && strings.HasSuffix(b.Start, "["):
		return literal(b.Lead), literal(orElse(b.Between, ", ")), literal(b.Trail + "]")
	case b.List:
		open, shut = sequence(b.space(b.Inner), literal("["+b.Lead)), literal(b.Trail+"]")
		if b.End != "" {
			shut = sequence(shut, b.space(b.Inner))
		}
		return open, literal(orElse(b.Between, ", ")), shut
	case b.Shared:
		return "", literal(b.Between), ""
	case b.Single:
		return "", sequence(literal(after), b.space(b.Between), literal(before)), ""
	}
	return "", sequence(literal(trail), b.space(b.Between), literal(b.Start+lead)), ""
}

// space is white space that a loose format may leave out, as an expression.
func (b *Block) space(text string) string {
	if b.Loose {
		return maybe(text)
	}
	return literal(text)
}

// callLead is what every call begins with.
func (b *Block) callLead() string {
	switch {
	case b.Style == NameIsKey:
		return literal(`{"`)
	case b.Style == ArgsAfterName && b.Indexed:
		return literal("functions.")
	case b.Style == ArgsAfterName, b.Style == Tagged, b.Style == Expression:
		return ""
	}
	if b.Literals {
		return literal("{'" + orElse(b.NameKey, "name") + "': '")
	}
	name := `"` + orElse(b.NameKey, "name") + `": "`
	if b.IDKey != "" {
		return sequence(literal(`{"`+b.IDKey+`": "`), "[0-9]{1,2}", literal(`", `+name))
	}
	return literal("{" + name)
}

// callOf is the rest of a call of one tool.
func (b *Block) callOf(name, args string) string {
	switch {
	case b.Style == NameIsKey:
		return sequence(literal(inJSON(name)+`": `), args, literal("}"))
	case b.Style == ArgsAfterName && b.Indexed:
		return sequence(literal(name+":"), "[0-9]{1,3}", literal(b.NameEnd), args)
	case b.Style == ArgsAfterName && b.IDStart != "":
		return sequence(literal(name), "( "+literal(b.IDStart)+" "+shortID+" )?", literal(b.NameEnd), args)
	case b.Style == ArgsAfterName:
		return sequence(literal(name+b.NameEnd), args)
	case b.Style == Tagged && b.HeadEnd != "":
		before, after, _ := strings.Cut(b.Head, "#")
		return sequence(literal(name+b.NameEnd+before), "[1-9] [0-9]?", literal(after+b.HeadEnd), b.space(b.Lead), args)
	case b.Style == Tagged:
		return sequence(literal(name+b.NameEnd), b.space(b.Lead), args)
	case b.Literals:
		return sequence(literal(name+"', '"+orElse(b.ArgsKey, "arguments")+"': "), args, literal("}"))
	case b.Style == Expression:
		return sequence(literal(name+b.NameEnd), args, literal(string(b.closing())))
	}
	id := ""
	if b.LastIDKey != "" {
		id = "( " + literal(`, "`+b.LastIDKey+`": "`) + " " + shortID + ` "\"" )?`
	}
	return sequence(literal(inJSON(name)+`", "`+orElse(b.ArgsKey, "arguments")+`": `), args, id, literal("}"))
}

// shortID is an id as Mistral's models write it.
const shortID = "[a-zA-Z0-9]{9}"
