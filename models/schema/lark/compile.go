package lark

import (
	"quern/models/schema"
	"quern/models/schema/gbnf"
)

// Compile makes the grammar of a JSON object whose only member, of this key, is
// a string with a text that follows a Lark grammar. Errors are of type *Error;
// schema.IsBeyond tells those of grammars that can't be held from those of
// grammars that are wrong.
func Compile(grammar, key string) (*schema.Compiled, error) {
	c, err := compile(grammar, key)
	if err == nil {
		err = runs(c)
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

func compile(grammar, key string) (*schema.Compiled, error) {
	src, err := parse(grammar)
	if err != nil {
		return nil, err
	}
	r, err := resolve(src)
	if err != nil {
		return nil, err
	}
	if err := normalize(&r.graph); err != nil {
		return nil, err
	}
	c, err := emit(&r.graph, grammar, key)
	if err != nil {
		return nil, tooLarge(0, "%v", err)
	}
	return c, nil
}

// Bounds on what a sampler has to follow at once, measured on a few texts: well
// below those at which it gives up in the middle of an answer.
const (
	sampleTexts  = 4
	sampleLength = 200
	maxStacks    = 128
)

// runs refuses what a sampler could not follow.
func runs(c *schema.Compiled) error {
	g, err := gbnf.Parse(c.GBNF())
	if err == nil {
		err = g.CheckCost()
	}
	if err != nil {
		return beyond(0, "%v", err)
	}
	d, endless := gbnf.NewDeriver(g, 1)
	if endless != "" {
		return beyond(0, "a rule never ends")
	}
	for range sampleTexts {
		m := gbnf.NewBoundedMatcher(g, maxStacks)
		if m.Feed(d.Long(sampleLength)); m.Peak() > maxStacks {
			return beyond(0, "the grammar is too ambiguous")
		}
	}
	return nil
}
