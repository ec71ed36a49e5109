package schema

import (
	"net/url"
	"strconv"
	"strings"
)

// resolve finds the target of a $ref inside the schema. A nil target means
// that the reference leads elsewhere and was relaxed to "anything".
func (c *compiler) resolve(ref node) (node, error) {
	if ref.v.kind != kindString {
		return node{}, errorAt(ref.path, "must be a string")
	}
	text, err := url.PathUnescape(ref.v.text)
	if err != nil {
		text = ref.v.text
	}
	switch {
	case text == "#":
		return node{c.root, "$"}, nil
	case strings.HasPrefix(text, "#/"):
		if v, path := c.pointer(text[2:]); v != nil {
			return node{v, path}, nil
		}
		return node{}, errorAt(ref.path, "%q is not in the schema", ref.v.text)
	}
	if c.anchors == nil {
		c.anchors = map[string]node{}
		c.collectAnchors(node{c.root, "$"})
	}
	if n, ok := c.anchors[text]; ok {
		return n, nil
	}
	if strings.HasPrefix(text, "#") {
		return node{}, errorAt(ref.path, "%q is not in the schema", ref.v.text)
	}
	return node{}, c.relax(ref.path, "%q lies outside the schema", ref.v.text)
}

// pointer follows a JSON pointer from the root.
func (c *compiler) pointer(p string) (*value, string) {
	v, path := c.root, "$"
	for part := range strings.SplitSeq(p, "/") {
		part = strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~")
		if v.kind == kindArray {
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(v.vals) {
				return nil, ""
			}
			v, path = v.vals[i], index(path, i)
			continue
		}
		next := v.get(part)
		if next == nil {
			return nil, ""
		}
		v, path = next, join(path, part)
	}
	return v, path
}

// collectAnchors notes $anchor and $id wherever they stand.
func (c *compiler) collectAnchors(n node) {
	for _, key := range [...]string{"$anchor", "$id", "id"} {
		name := n.v.get(key)
		if name == nil || name.kind != kindString {
			continue
		}
		text := name.text
		if key == "$anchor" {
			text = "#" + text
		}
		if _, taken := c.anchors[text]; !taken {
			c.anchors[text] = n
		}
	}
	for i, v := range n.v.vals {
		if n.v.kind == kindObject {
			c.collectAnchors(node{v, join(n.path, n.v.keys[i])})
		} else {
			c.collectAnchors(node{v, index(n.path, i)})
		}
	}
}
