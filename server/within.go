package server

import "cmp"

// Limits bound what one request may hold. Zero values take the defaults, which
// are far above what agents send: a first request of theirs has 40 KB, a long
// session some hundred items.
type Limits struct {
	Depth  int   // of nested arrays and objects in the body
	Items  int   // of input, or messages; those of a continued response count
	Tools  int   // that the model may call; those of namespaces count
	Text   int64 // bytes of instructions, items and tools together
	Images int64 // bytes of all images together, once decoded
}

func (l Limits) withDefaults() Limits {
	return Limits{
		Depth: cmp.Or(l.Depth, maxDepth), Items: cmp.Or(l.Items, maxItems), Tools: cmp.Or(l.Tools, maxTools),
		Text: cmp.Or(l.Text, defaultMaxText), Images: cmp.Or(l.Images, defaultMaxImages),
	}
}

// check refuses a task that is larger than the node takes. Each refusal says
// what there is, what the limit is and which flag sets it.
func (l Limits) check(t *task) *requestError {
	if n := len(t.items); n > l.Items {
		return invalid("input", codeTooLarge, "input has %d items, the limit of this node is %d (--max-items)", n, l.Items)
	}
	if n := len(t.tools.list); n > l.Tools {
		return invalid("tools", codeTooLarge, "there are %d tools, those of namespaces counted; the limit of this node is %d (--max-tools)", n, l.Tools)
	}
	text := int64(len(t.instructions))
	if text > l.Text {
		return l.tooMuchText("instructions", text)
	}
	for i := range t.tools.list {
		tool := &t.tools.list[i]
		text += int64(len(tool.Name) + len(tool.Description) + len(tool.Parameters))
		if text > l.Text {
			return l.tooMuchText(tool.path, text)
		}
	}
	for i := range t.items {
		text += int64(len(t.items[i].text) + len(t.items[i].arguments))
		if text > l.Text {
			return l.tooMuchText(t.items[i].path, text)
		}
	}
	return nil
}

func (l Limits) tooMuchText(path string, text int64) *requestError {
	return invalid(path, codeTooLarge, "up to %s the request holds %d bytes of text, the limit of this node is %d (--max-text)", path, text, l.Text)
}
