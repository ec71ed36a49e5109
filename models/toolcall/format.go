package toolcall

import (
	"regexp"
	"slices"
	"strings"
)

// Format is how one family of models writes calls and thoughts.
type Format struct {
	// Name identifies the row, in the config, the log and /v1/models.
	Name string
	// Blocks are the ways to write calls. The first is the one that grammars
	// force; all are understood.
	Blocks []Block
	// Reasoning are the markers around thoughts; the first pair is the one
	// that a prompt may leave open.
	Reasoning []Span
	// ThoughtsEnd is how the family ends its thoughts, with the white space
	// around the marker; empty is a marker on a line of its own, see EndThoughts.
	ThoughtsEnd string
	// Frames are markers around the visible text, which are dropped; an End
	// without Start anywhere.
	Frames []Span
	// Messages says that an answer consists of messages with headers; nil if it
	// doesn't. Its headers begin thoughts and calls then.
	Messages *Messages
	// Bare says whether a whole answer without any marker can be a call.
	Bare Bare
}

// Span is a pair of markers.
type Span struct{ Start, End string }

// Bare says what an answer without markers may be.
type Bare uint8

const (
	// BareNone makes no call of unmarked text.
	BareNone Bare = iota
	// BareObject makes a call of one object that names a declared tool and
	// fits its schema, plain or in a json fence.
	BareObject
	// BareNative is for families that write calls so: the name decides.
	BareNative
	// BareList is for families that write a list of such objects.
	BareList
)

// ArgStyle is how name and arguments stand in a block.
type ArgStyle uint8

const (
	// ArgsInObject is {"name": …, "arguments": {…}}, one, several or a list.
	ArgsInObject ArgStyle = iota
	// ArgsAfterName is a name, a marker, the arguments as JSON.
	ArgsAfterName
	// NameIsKey is {"name": {…}}.
	NameIsKey
	// Tagged is a name, a marker, and a pair of tags for each argument.
	Tagged
	// Expression is a call as in a programming language, name(key='value'), or
	// name{key:'value'} by NameEnd, one or several, or a list.
	Expression
)

// Tags are the markers of one argument (Tagged): KeyStart key KeyEnd ValueStart
// value ValueEnd. White space may stand before KeyStart and ValueStart.
type Tags struct {
	KeyStart, KeyEnd     string
	ValueStart, ValueEnd string
	// Attributes may stand between KeyEnd and ValueStart: string="true" or
	// type="string" say there that the value is a string, other values of the
	// two that it is JSON.
	Attributes bool
	// Trim drops one line break at each end of a value.
	Trim bool
	// Nested values are elements within elements, and KeyEnd ends each tag:
	// KeyStart name KeyEnd value ValueEnd name KeyEnd.
	Nested bool
	// Whole stands around all arguments as one JSON object, in their place; its
	// Start is followed by what follows KeyEnd.
	Whole Span
	// Entities says that quotation marks in keys are written as in XML.
	Entities bool
	// The rest only matters when a call is forced. Typed is the attribute, string
	// or type, in which tags say what each value is. Gap stands before ValueStart,
	// Lead and Trail around the value, After behind ValueEnd.
	Typed, Gap, Lead, Trail, After string
}

// Block is one way to write calls.
type Block struct {
	Style ArgStyle
	// Section and SectionEnd stand around all calls of an answer; empty where
	// the format has none. Calls without them are understood, too.
	Section, SectionEnd string
	// Start and End stand around one call or one list. Without End, a call
	// ends with its JSON. A missing End is forgiven.
	Start, End string
	// NameEnd stands between name and arguments (ArgsAfterName), IDStart
	// between name and call id where there is one.
	NameEnd, IDStart string
	// HeadEnd, where there is one, ends what else stands before the arguments.
	HeadEnd string
	// Tags stand around the arguments of a Tagged call. With such a Style, an
	// End is read as part of the call; without NameEnd, white space or a tag
	// ends the name.
	Tags Tags
	// Quote stands around strings without escapes (Expression); the usual
	// quotation marks are known, too.
	Quote string
	// Literals says that objects are written as Python does.
	Literals bool
	// Indexed names look like functions.NAME:7, and that is the call's id.
	Indexed bool
	// NameKey, ArgsKey are the canonical keys of an object; "name" and
	// "arguments" if empty. IDKey is that of an id before the name, if the
	// model has to write one. On reading, the usual synonyms are known.
	NameKey, ArgsKey, IDKey string
	// The rest only matters when a call is forced: it is how the family's
	// template spells history, so that the next turn finds this one in the
	// prefix cache. Lead and Trail are the white space inside Start and End
	// (with List, inside the brackets), Between is what separates two calls;
	// Shared puts all calls into one block, List as a list. Inner is what stands
	// inside Section and SectionEnd, or around the brackets of a List; Single says
	// that a section holds one call. In a Tagged block Lead stands behind NameEnd.
	// Loose are blocks whose white space some of the family's models leave out.
	// LastIDKey is that of an id that a model may write behind the arguments, Head
	// what stands before HeadEnd, # being the number of a call. Preface and
	// Epilogue are frames without text that models may write around all calls.
	Lead, Trail, Between, Inner, LastIDKey, Head, Preface, Epilogue string

	Shared, List, Single, Loose bool
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// open says that a block has no marker of its own at its end.
func (b *Block) open() bool { return b.End == "" && b.SectionEnd == "" }

// named says that a name can follow Start.
func (b *Block) named() bool { return b.NameEnd != "" || b.Style == Tagged }

// objects says that an object can stand where no Start does: as a further call,
// or in a section of tagged calls, as models of other families write it.
func (b *Block) objects(further bool) bool {
	return b.Style == Tagged && b.Section != "" || b.Style != ArgsAfterName && further
}

// StartsInReasoning says whether a rendered prompt leaves the thoughts open,
// so that what the model writes begins inside them.
func (f *Format) StartsInReasoning(prompt string) bool { return f.Thoughts(prompt) == InThoughts }

// Thoughts says what a rendered prompt leaves to the model: it has opened the
// thoughts, closed them, or said nothing about them.
func (f *Format) Thoughts(prompt string) Thinking {
	if len(f.Reasoning) == 0 {
		return NoThoughts
	}
	tail := strings.TrimRight(prompt, " \t\r\n")
	switch s := f.Reasoning[0]; {
	case strings.HasSuffix(tail, s.Start):
		return InThoughts
	case strings.HasSuffix(tail, s.End):
		return NoThoughts
	}
	return MayThink
}

// Begins says whether a mark begins calls of the format.
func (f *Format) Begins(mark string) bool {
	return slices.ContainsFunc(f.Blocks, func(b Block) bool { return b.Start == mark || b.Section == mark })
}

// EndThoughts is what ends thoughts that the prompt or the model has opened;
// empty where the family has none.
func (f *Format) EndThoughts() string {
	if f.Messages != nil && len(f.Reasoning) > 0 {
		return f.Messages.between()
	}
	if f.ThoughtsEnd != "" || len(f.Reasoning) == 0 {
		return f.ThoughtsEnd
	}
	return "\n" + f.Reasoning[0].End + "\n\n"
}

// frame is what stands around visible text, nil if nothing does.
func (f *Format) frame() *Span {
	for i := range f.Frames {
		if f.Frames[i].Start != "" {
			return &f.Frames[i]
		}
	}
	return nil
}

// Framed says that a rendered prompt leaves the frame of visible text open.
func (f *Format) Framed(prompt string) bool {
	s := f.frame()
	return s != nil && strings.HasSuffix(strings.TrimRight(prompt, " \t\r\n"), s.Start)
}

// BeginAnswer is EndThoughts for a model that has come back to its thoughts: where
// the family has a header for that, the answer has begun, too.
func (f *Format) BeginAnswer() string {
	if f.Messages != nil && len(f.Reasoning) > 0 {
		return f.Messages.between() + f.Messages.Say
	}
	return f.EndThoughts()
}

// headed says that a header of a message begins a block, and no marker.
func (f *Format) headed(b *Block) bool { return f.Messages != nil && b.Style != Tagged }

// special is the spelling of a token that may stand inside a marker.
var special = regexp.MustCompile(`<[|｜]?[^<>|｜]+[|｜]?>|｜[^<>|｜]+｜|\]<\]\w+\[>\[`)

// Markers are all marker texts of the format, and the special tokens in them,
// for looking up which of them are single tokens: a decoder gives no text for
// those.
func (f *Format) Markers() []string {
	var out []string
	add := func(texts ...string) {
		for _, s := range texts {
			if s != "" {
				out = append(out, s)
			}
			for _, part := range special.FindAllString(s, -1) {
				if part != s {
					out = append(out, part)
				}
			}
		}
	}
	for i := range f.Blocks {
		b := &f.Blocks[i]
		if f.headed(b) {
			continue
		}
		add(b.Section, b.Start, b.NameEnd, b.HeadEnd, b.IDStart, b.End, b.SectionEnd)
		add(b.Quote, b.Tags.KeyStart, b.Tags.KeyEnd, b.Tags.ValueStart, b.Tags.ValueEnd)
	}
	if m := f.Messages; m != nil {
		add(m.Start)
		add(m.Marks...)
		add(m.Ends...)
		for _, b := range m.Bodies {
			add(b.Marker)
		}
		return out
	}
	for _, s := range f.Reasoning {
		add(s.Start, s.End)
	}
	for _, s := range f.Frames {
		add(s.Start, s.End)
	}
	return out
}
