package gbnf

import "fmt"

// Bounds of the sampler's automaton, which recurses to find the characters that
// may come next.
const (
	maxDepth  = 4096  // of that recursion
	maxVisits = 65536 // positions tried for one character
)

type cost struct {
	depth, visits, empties float64 // empties counts the ways to be empty
}

// CheckCost refuses grammars that the sampler refuses: rules that are too deep or
// too ambiguous before their first character.
func (g *Grammar) CheckCost() error {
	costs := make([]*cost, len(g.rules))
	var measure func(int) (*cost, error)
	measure = func(rule int) (*cost, error) {
		if costs[rule] != nil {
			return costs[rule], nil
		}
		c := &cost{depth: 1, visits: 1}
		costs[rule] = c
		for _, alternative := range g.rules[rule] {
			depth, empties := 0.0, 1.0
			for _, e := range alternative {
				if empties == 0 {
					break
				}
				if e.kind == charClass {
					c.visits += empties
					empties = 0
					break
				}
				x, err := measure(e.rule)
				if err != nil {
					return nil, err
				}
				c.visits += empties * x.visits
				depth += x.depth + 1
				empties *= x.empties
			}
			c.depth = max(c.depth, depth+1)
			c.empties += empties
			c.visits += empties
		}
		if c.depth > maxDepth || c.visits > maxVisits || c.empties > maxVisits {
			return nil, fmt.Errorf("rule %q is too ambiguous or too deep", g.names[rule])
		}
		return c, nil
	}
	for i := range g.rules {
		if _, err := measure(i); err != nil {
			return err
		}
	}
	return nil
}
