package gbnf

import "fmt"

// checkLeftRecursion finds rules that reach themselves without consuming
// anything; llama.cpp refuses such grammars.
func (g *Grammar) checkLeftRecursion() error {
	empty := make([]bool, len(g.rules))
	for changed := true; changed; {
		changed = false
		for i, alternatives := range g.rules {
			if !empty[i] && anyEmpty(alternatives, empty) {
				empty[i], changed = true, true
			}
		}
	}
	state := make([]uint8, len(g.rules)) // 1 = in progress, 2 = done
	var visit func(int) error
	visit = func(i int) error {
		switch state[i] {
		case 1:
			return fmt.Errorf("left recursion in rule %q", g.names[i])
		case 2:
			return nil
		}
		state[i] = 1
		for _, seq := range g.rules[i] {
			for _, e := range seq {
				if e.kind != ruleRef {
					break
				}
				if err := visit(e.rule); err != nil {
					return err
				}
				if !empty[e.rule] {
					break
				}
			}
		}
		state[i] = 2
		return nil
	}
	for i := range g.rules {
		if err := visit(i); err != nil {
			return err
		}
	}
	return nil
}

func anyEmpty(alternatives [][]element, empty []bool) bool {
	for _, seq := range alternatives {
		all := true
		for _, e := range seq {
			if e.kind != ruleRef || !empty[e.rule] {
				all = false
				break
			}
		}
		if all {
			return true
		}
	}
	return false
}
