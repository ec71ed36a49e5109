package bench

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// What agents ask for most: most of the answer stands in the prompt.

// codeEdit asks for a file of about so many words with one name changed.
func codeEdit(rng *rand.Rand, size int) string {
	old := pickWord(rng) + "_" + pickWord(rng)
	var b strings.Builder
	fmt.Fprintf(&b, "import sys\n\n%s = %d\n", old, rng.IntN(100))
	for n := 0; n < size; n += 20 {
		name, arg := pickWord(rng)+"_"+pickWord(rng), pickWord(rng)
		fmt.Fprintf(&b, "\n\ndef %s(%s, limit=%d):\n    total = %s\n    for item in %s:\n        if item > limit:\n            total += item * %d\n    return total\n",
			name, arg, rng.IntN(90)+10, old, arg, rng.IntN(9)+2)
	}
	return fmt.Sprintf("Here is a Python file:\n```python\n%s```\nWrite this file once more, from the first line to the last, with all of its functions. The variable %s is to be called start_%s; nothing else changes.",
		b.String(), old, pickWord(rng))
}

// jsonEcho asks for a document of about so many words with one value changed.
func jsonEcho(rng *rand.Rand, size int) string {
	var b strings.Builder
	b.WriteString("[\n")
	for n := 0; n < size; n += 12 {
		if n > 0 {
			b.WriteString(",\n")
		}
		fmt.Fprintf(&b, `  {"id": %d, "name": "%s %s", "price": %d.%02d, "tags": ["%s", "%s"], "in_stock": true}`,
			n/12+1, pickWord(rng), pickWord(rng), rng.IntN(90)+10, rng.IntN(100), pickWord(rng), pickWord(rng))
	}
	b.WriteString("\n]\n")
	return "```json\n" + b.String() + "```\nSet in_stock of the first entry to false and change nothing else. Answer with the whole document in one code block, without explanations."
}

func pickWord(rng *rand.Rand) string { return words[rng.IntN(len(words))] }
