package schema

import "fmt"

// maxRepeat is the largest bound that is counted; above it there is none, as
// no answer is that long.
const maxRepeat = 1 << 16

// list writes a bracketed list of lo to hi times item.
func (c *compiler) list(open, shut, item string, lo, hi int) (string, error) {
	if hi > maxRepeat {
		hi = -1
	}
	if hi == 0 {
		return quote(open + shut), nil
	}
	more, err := c.b.add(c.comma() + " " + item)
	if err != nil {
		return "", err
	}
	upper := hi
	if hi > 0 {
		upper = hi - 1
	}
	rest, err := c.b.repeat(more, max(lo-1, 0), upper)
	if err != nil {
		return "", err
	}
	if rest != "" {
		rest = " " + rest
	}
	if lo == 0 {
		return fmt.Sprintf(`%s%s ( %s%s%s )? %s`, quote(open), c.inner(), item, rest, c.inner(), quote(shut)), nil
	}
	return fmt.Sprintf(`%s%s %s%s%s %s`, quote(open), c.inner(), item, rest, c.inner(), quote(shut)), nil
}

func (c *compiler) array(f *flat) (string, error) {
	lo, hi := f.minItems, f.maxItems
	if hi >= 0 && lo > hi {
		return "", unsatisfiable(f.path)
	}
	if lo > maxRepeat {
		if err := c.relax(f.path, "minItems %d is too large", lo); err != nil {
			return "", err
		}
		lo = 0
	}
	item, err := c.item(f)
	if err != nil {
		return "", err
	}
	if len(f.prefix) > 0 {
		return c.tuple(f, item, lo, hi)
	}
	if item == "" {
		if lo > 0 {
			return "", unsatisfiable(f.path)
		}
		return `"[]"`, nil
	}
	return c.list("[", "]", item, lo, hi)
}

// item is the rule for elements after the prefix, "" if there can be none.
func (c *compiler) item(f *flat) (string, error) {
	if f.itemsShut || len(f.prefix) > 0 && c.opt.Closed && len(f.items) == 0 {
		return "", nil
	}
	if len(f.items) == 0 {
		return c.prim("value"), nil
	}
	name, err := c.rule(f.items)
	if isUnsatisfiable(err) {
		return "", nil
	}
	return name, err
}

// tuple writes the elements of prefixItems from the last to the first; those
// from minItems on may be missing, with all after them.
func (c *compiler) tuple(f *flat, item string, lo, hi int) (string, error) {
	n := len(f.prefix)
	if hi >= 0 && hi <= n {
		n, item = hi, ""
	}
	if n == 0 {
		return `"[]"`, nil
	}
	rest := ""
	if item != "" {
		more, err := c.b.add(c.comma() + " " + item)
		if err != nil {
			return "", err
		}
		upper := -1
		if hi >= 0 {
			upper = min(hi-n, maxRepeat)
		}
		tail, err := c.b.repeat(more, max(lo-n, 0), upper)
		if err != nil {
			return "", err
		}
		rest = " " + tail
	} else if lo > n {
		return "", unsatisfiable(f.path)
	}
	entry := ""
	for i := n - 1; i >= 0; i-- {
		value, err := c.rule(f.prefix[i])
		if isUnsatisfiable(err) && i >= lo {
			entry, rest = "", ""
			continue
		}
		if err != nil {
			return "", err
		}
		entry = value + rest
		if len(entry) > longBody {
			if entry, err = c.b.add(entry); err != nil {
				return "", err
			}
		}
		rest = fmt.Sprintf(" %s %s", c.comma(), entry)
		if i >= lo {
			rest = fmt.Sprintf(" (%s )?", rest)
		}
	}
	switch {
	case entry == "":
		return `"[]"`, nil
	case lo == 0:
		return fmt.Sprintf(`"["%s ( %s%s )? "]"`, c.inner(), entry, c.inner()), nil
	}
	return fmt.Sprintf(`"["%s %s%s "]"`, c.inner(), entry, c.inner()), nil
}
