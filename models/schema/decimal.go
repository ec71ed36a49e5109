package schema

import "math/big"

// maxDigits bounds numbers that are computed with; "1e999999999" would not
// fit into memory.
const maxDigits = 64

// decimal is an exact decimal number.
type decimal struct{ rat *big.Rat }

func parseDecimal(s string) (decimal, bool) {
	digits, exp, inExp := 0, 0, false
	for i := range len(s) {
		switch c := s[i]; {
		case c == 'e' || c == 'E':
			inExp = true
		case '0' <= c && c <= '9' && inExp:
			if exp = exp*10 + int(c-'0'); exp > maxDigits {
				return decimal{}, false
			}
		case '0' <= c && c <= '9':
			digits++
		}
	}
	if digits > maxDigits {
		return decimal{}, false
	}
	r, ok := new(big.Rat).SetString(s)
	return decimal{r}, ok
}

func (d decimal) cmp(o decimal) int { return d.rat.Cmp(o.rat) }
func (d decimal) isInt() bool       { return d.rat.IsInt() }
func (d decimal) neg() decimal      { return decimal{new(big.Rat).Neg(d.rat)} }
func (d decimal) sign() int         { return d.rat.Sign() }

// floor is the largest integer not above d.
func (d decimal) floor() *big.Int {
	// Euclidean division rounds down, since the denominator is positive.
	return new(big.Int).Div(d.rat.Num(), d.rat.Denom())
}

// ceil is the smallest integer not below d.
func (d decimal) ceil() *big.Int {
	f := d.neg().floor()
	return f.Neg(f)
}

// split gives the integer part and the fraction digits of a number ≥ 0.
func (d decimal) split() (whole, frac string) {
	text := d.rat.FloatString(2 * maxDigits)
	for i := range len(text) {
		if text[i] == '.' {
			whole, frac = text[:i], text[i+1:]
		}
	}
	for len(frac) > 0 && frac[len(frac)-1] == '0' {
		frac = frac[:len(frac)-1]
	}
	return whole, frac
}
