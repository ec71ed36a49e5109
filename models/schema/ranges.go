package schema

import (
	"fmt"
	"math/big"
	"strings"
)

// openDigits is how many digits a number may have on the side that has no
// bound.
const openDigits = 16

// bound is one end of a numeric range.
type bound struct {
	at        decimal
	exclusive bool
}

// tighter says whether b excludes more than o, as an upper (or lower) bound.
func (b *bound) tighter(o *bound, upper bool) bool {
	if o == nil {
		return true
	}
	c := b.at.cmp(o.at)
	if !upper {
		c = -c
	}
	return c < 0 || c == 0 && b.exclusive
}

// integerPattern is a pattern for the integers between lo and hi, either of
// which may be nil; "" means there are none.
func integerPattern(lo, hi *bound) string {
	var from, to *big.Int
	if lo != nil {
		from = lo.at.ceil()
		if lo.exclusive && lo.at.isInt() {
			from.Add(from, big.NewInt(1))
		}
	}
	if hi != nil {
		to = hi.at.floor()
		if hi.exclusive && hi.at.isInt() {
			to.Sub(to, big.NewInt(1))
		}
	}
	return signed(from, to)
}

// signed splits a range of integers at zero.
func signed(from, to *big.Int) string {
	if from != nil && to != nil && from.Cmp(to) > 0 {
		return ""
	}
	var alts []string
	if to == nil || to.Sign() >= 0 {
		a := new(big.Int)
		if from != nil && from.Sign() > 0 {
			a = from
		}
		alts = append(alts, wholePattern(a, to))
	}
	if from == nil || from.Sign() < 0 {
		a := big.NewInt(1)
		if to != nil && to.Sign() < 0 {
			a = new(big.Int).Neg(to)
		}
		var b *big.Int
		if from != nil {
			b = new(big.Int).Neg(from)
		}
		alts = append(alts, "-"+wholePattern(a, b))
	}
	return "(" + strings.Join(alts, "|") + ")"
}

// wholePattern takes the digits of the integers from a ≥ 0 to b; nil is no
// upper bound.
func wholePattern(a, b *big.Int) string {
	lo := a.String()
	var alts []string
	digits := len(lo)
	last := max(openDigits, digits+1)
	hi := ""
	if b != nil {
		hi = b.String()
		last = len(hi)
	}
	for ; digits <= last; digits++ {
		from, to := lo, strings.Repeat("9", digits)
		if digits > len(lo) {
			from = "1" + strings.Repeat("0", digits-1)
		}
		if digits == len(hi) {
			to = hi
		}
		alts = append(alts, sameLength(from, to))
	}
	return "(" + strings.Join(alts, "|") + ")"
}

// sameLength takes the digit strings from a to b, which have one length.
func sameLength(a, b string) string {
	n := len(a)
	switch {
	case n == 0:
		return ""
	case a[0] == b[0]:
		return a[:1] + sameLength(a[1:], b[1:])
	case strings.Trim(a[1:], "0") == "" && strings.Trim(b[1:], "9") == "":
		return digitClass(a[0], b[0]) + anyDigits(n-1)
	}
	alts := []string{a[:1] + sameLength(a[1:], strings.Repeat("9", n-1))}
	if a[0]+1 < b[0] {
		alts = append(alts, digitClass(a[0]+1, b[0]-1)+anyDigits(n-1))
	}
	alts = append(alts, b[:1]+sameLength(strings.Repeat("0", n-1), b[1:]))
	return "(" + strings.Join(alts, "|") + ")"
}

func digitClass(lo, hi byte) string {
	if lo == hi {
		return string(lo)
	}
	return fmt.Sprintf("[%c-%c]", lo, hi)
}

func anyDigits(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("[0-9]{%d}", n)
}

const anyFraction = `(\.[0-9]{1,16})?`

// numberPattern is a pattern for the decimal numbers between lo and hi.
// Exponents are left out: what they do to a bound no pattern can say.
func numberPattern(lo, hi *bound) string {
	if lo != nil && hi != nil {
		if c := lo.at.cmp(hi.at); c > 0 || c == 0 && (lo.exclusive || hi.exclusive) {
			return ""
		}
	}
	var alts []string
	if hi == nil || hi.at.sign() > 0 || hi.at.sign() == 0 && !hi.exclusive {
		from := &bound{at: decimal{new(big.Rat)}}
		if lo != nil && lo.at.sign() >= 0 {
			from = lo
		}
		alts = append(alts, magnitude(from, hi))
	}
	if lo == nil || lo.at.sign() < 0 {
		from := &bound{at: decimal{new(big.Rat)}, exclusive: true}
		if hi != nil && hi.at.sign() <= 0 {
			from = &bound{hi.at.neg(), hi.exclusive}
		}
		var to *bound
		if lo != nil {
			to = &bound{lo.at.neg(), lo.exclusive}
		}
		alts = append(alts, "-"+magnitude(from, to))
	}
	return "(" + strings.Join(alts, "|") + ")"
}

// magnitude takes the numbers from lo ≥ 0 to hi: those with the integer part
// of lo, those with that of hi, and all between.
func magnitude(lo, hi *bound) string {
	a, fa := lo.at.split()
	first, _ := new(big.Int).SetString(a, 10)
	one := big.NewInt(1)
	if hi == nil {
		return "(" + a + above(fa, lo.exclusive) + "|" + wholePattern(new(big.Int).Add(first, one), nil) + anyFraction + ")"
	}
	b, fb := hi.at.split()
	if a == b {
		return a + between(fa, lo.exclusive, fb, hi.exclusive)
	}
	alts := []string{a + above(fa, lo.exclusive)}
	last, _ := new(big.Int).SetString(b, 10)
	from, to := new(big.Int).Add(first, one), new(big.Int).Sub(last, one)
	if from.Cmp(to) <= 0 {
		alts = append(alts, wholePattern(from, to)+anyFraction)
	}
	if end := below(fb, hi.exclusive); end != "" {
		alts = append(alts, b+end)
	}
	return "(" + strings.Join(alts, "|") + ")"
}

// above takes the fractions ≥ f, or > f; f has no trailing zeros.
func above(f string, exclusive bool) string {
	if f == "" {
		if !exclusive {
			return anyFraction
		}
		return `\.[0-9]{0,12}[1-9][0-9]{0,3}`
	}
	var alts []string
	for i := range len(f) {
		if f[i] < '9' {
			alts = append(alts, f[:i]+digitClass(f[i]+1, '9')+"[0-9]{0,8}")
		}
	}
	if exclusive {
		alts = append(alts, f+"[0-9]{0,4}[1-9]")
	} else {
		alts = append(alts, f+"[0-9]{0,8}")
	}
	return `\.(` + strings.Join(alts, "|") + ")"
}

// below takes the fractions ≤ f, or < f; "" means none.
func below(f string, exclusive bool) string {
	if f == "" {
		if exclusive {
			return ""
		}
		return `(\.0{1,4})?`
	}
	var alts []string
	for i := range len(f) {
		if f[i] > '0' {
			alts = append(alts, f[:i]+digitClass('0', f[i]-1)+"[0-9]{0,8}")
		}
		if i > 0 {
			alts = append(alts, f[:i])
		}
	}
	if !exclusive {
		alts = append(alts, f+"0{0,4}")
	}
	return `(\.(` + strings.Join(alts, "|") + "))?"
}

// between takes the fractions from fa to fb under one integer part. The ends
// are padded to one length, so that digits compare.
func between(fa string, exA bool, fb string, exB bool) string {
	n := max(len(fa), len(fb), 1)
	lo := fa + strings.Repeat("0", n-len(fa))
	hi := fb + strings.Repeat("0", n-len(fb))
	if lo == hi { // one value
		if strings.Trim(lo, "0") == "" {
			return `(\.0{1,4})?`
		}
		return `\.` + fa
	}
	var alts []string
	// Strictly between at n digits: any further digits are fine.
	a, _ := new(big.Int).SetString(lo, 10)
	b, _ := new(big.Int).SetString(hi, 10)
	one := big.NewInt(1)
	from, to := new(big.Int).Add(a, one), new(big.Int).Sub(b, one)
	pad := func(x *big.Int) string { s := x.String(); return strings.Repeat("0", n-len(s)) + s }
	if from.Cmp(to) <= 0 {
		alts = append(alts, sameLength(pad(from), pad(to))+"[0-9]{0,8}")
	}
	if exA {
		alts = append(alts, lo+"[0-9]{0,4}[1-9]")
	} else {
		alts = append(alts, lo+"[0-9]{0,8}")
	}
	if !exB {
		alts = append(alts, hi+"0{0,4}")
	}
	// Fewer digits stand for trailing zeros.
	for digits, unit := n-1, big.NewInt(10); digits > 0; digits, unit = digits-1, new(big.Int).Mul(unit, big.NewInt(10)) {
		first := new(big.Int).Div(a, unit)
		if exact := new(big.Int).Mul(first, unit).Cmp(a) == 0; !exact || exA {
			first.Add(first, one)
		}
		last := new(big.Int).Div(b, unit)
		if exact := new(big.Int).Mul(last, unit).Cmp(b) == 0; exact && exB {
			last.Sub(last, one)
		}
		if first.Cmp(last) <= 0 {
			alts = append(alts, sameLength(pad(first)[n-digits:], pad(last)[n-digits:]))
		}
	}
	frac := `\.(` + strings.Join(alts, "|") + ")"
	if fa == "" && !exA {
		return "(" + frac + ")?"
	}
	return frac
}
