package testmodel

import (
	"math"
	"regexp"
	"sort"
	"strings"
)

// forward gives the logits after the last token: the arithmetic of a one-layer
// llama with a feed-forward of zeros, positions left out as ropeBase does.
func (n *network) forward(tokens []int, seen map[int]keyValue) []float64 {
	rows := make([]keyValue, len(tokens))
	for i, t := range tokens {
		r, ok := seen[t]
		if !ok {
			x := rms(n.row(t))
			r = keyValue{mul(n.wk, x), mul(n.wv, x)}
			seen[t] = r
		}
		rows[i] = r
	}
	last := n.row(tokens[len(tokens)-1])
	q := mul(n.wq, rms(last))
	mixed := make([]float64, embd)
	for h := range heads {
		lo, hi := h*headDim, (h+1)*headDim
		scores := make([]float64, len(rows))
		top := math.Inf(-1)
		for i, r := range rows {
			for d := lo; d < hi; d++ {
				scores[i] += q[d] * r.key[d] / math.Sqrt(headDim)
			}
			top = max(top, scores[i])
		}
		sum := 0.0
		for i := range scores {
			scores[i] = math.Exp(scores[i] - top)
			sum += scores[i]
		}
		for i := range scores {
			for d := lo; d < hi; d++ {
				mixed[d] += scores[i] / sum * rows[i].value[d]
			}
		}
	}
	x := make([]float64, embd)
	for d, y := range mul(n.wo, mixed) {
		x[d] = last[d] + y
	}
	return mul(n.out, rms(x))
}

// keyValue of a token is the same at every position.
type keyValue struct{ key, value []float64 }

func (n *network) row(token int) []float64 {
	out := make([]float64, embd)
	for i, v := range n.embed[token*embd : (token+1)*embd] {
		out[i] = float64(v)
	}
	return out
}

func rms(x []float64) []float64 {
	sum := 0.0
	for _, v := range x {
		sum += v * v
	}
	f := 1 / math.Sqrt(sum/float64(len(x))+rmsEps)
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = v * f
	}
	return out
}

func mul(w []float32, x []float64) []float64 {
	out := make([]float64, len(w)/len(x))
	for o := range out {
		for i, v := range x {
			if v != 0 {
				out[o] += float64(w[o*len(x)+i]) * v
			}
		}
	}
	return out
}

// generate decodes greedily until the end token. allowed, where given, rules
// texts out as a grammar does. It returns the text and the smallest lead that
// a token had over the next best allowed one.
func (n *network) generate(prompt string, limit int, allowed func(soFar, next string) bool) (string, float64) {
	tokens, seen := n.v.tokenize(prompt), map[int]keyValue{}
	text, lead := "", math.Inf(1)
	for range limit {
		logits := n.forward(tokens, seen)
		order := make([]int, len(logits))
		for i := range order {
			order[i] = i
		}
		sort.SliceStable(order, func(a, b int) bool { return logits[order[a]] > logits[order[b]] })
		var picks []int
		for _, id := range order {
			if allowed == nil || allowed(text, n.v.texts[id]) {
				picks = append(picks, id)
			}
		}
		if len(picks) > 1 {
			lead = min(lead, logits[picks[0]]-logits[picks[1]])
		}
		if n.v.texts[picks[0]] == eos {
			return text, lead
		}
		text += n.v.texts[picks[0]]
		tokens = append(tokens, picks[0])
	}
	return text, lead
}

var pieces = regexp.MustCompile(`[^\r\n\pL\pN]?\pL+|\pN| ?[^\s\pL\pN]+[\r\n]*|\s*[\r\n]+|\s`)

// tokenize does as llama.cpp does with this vocabulary.
func (v vocab) tokenize(text string) []int {
	rank := map[string]int{}
	for i, m := range v.merges {
		rank[m] = i
	}
	var marked []string
	for i, t := range v.texts {
		if v.types[i] == typeControl || v.types[i] == typeUser {
			marked = append(marked, regexp.QuoteMeta(t))
		}
	}
	var out []int
	plainText := func(s string) {
		for _, word := range pieces.FindAllString(s, -1) {
			parts := strings.Split(encode(word), "")
			for {
				best, at := len(rank), -1
				for i := range len(parts) - 1 {
					if r, ok := rank[parts[i]+" "+parts[i+1]]; ok && r < best {
						best, at = r, i
					}
				}
				if at < 0 {
					break
				}
				parts = append(parts[:at], append([]string{parts[at] + parts[at+1]}, parts[at+2:]...)...)
			}
			for _, p := range parts {
				out = append(out, v.ids[p])
			}
		}
	}
	special := regexp.MustCompile(strings.Join(marked, "|"))
	for text != "" {
		loc := special.FindStringIndex(text)
		if loc == nil {
			plainText(text)
			break
		}
		plainText(text[:loc[0]])
		out = append(out, v.ids[text[loc[0]:loc[1]]])
		text = text[loc[1]:]
	}
	return out
}
