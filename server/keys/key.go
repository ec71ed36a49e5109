package keys

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strings"
)

// Key is one entry of the keys file. A limit of 0 is none.
type Key struct {
	Name              string   `yaml:"name"`
	Hash              Hash     `yaml:"hash"`
	Models            []string `yaml:"models,omitempty,flow"` // none: all
	RequestsPerMinute int      `yaml:"requests-per-minute,omitempty"`
	TokensPerMinute   int      `yaml:"tokens-per-minute,omitempty"`
	Concurrency       int      `yaml:"concurrency,omitempty"` // requests at once
	Weight            float64  `yaml:"weight,omitempty"`      // share of a busy node beside other keys; 0 = 1
	Balance           *Balance `yaml:"balance,omitempty"`
}

// Balance is what a key may spend: all tokens ever granted to it, and the price
// of one token of each kind in them.
type Balance struct {
	Granted int64 `yaml:"granted"`
	Price   Price `yaml:"price"`
}

// Price weighs the tokens of a request, to a thousandth.
type Price struct {
	Input  float64 `yaml:"input"`
	Cached float64 `yaml:"cached"` // of the input, what the prefix cache held
	Output float64 `yaml:"output"`
}

// Usage counts the tokens of one request.
type Usage struct {
	Input  int
	Cached int // of Input
	Output int
}

// milli is a thousandth of a token, the unit of the ledger: sums of it are exact.
type milli int64

const perToken = 1000

// cost is the price of a usage.
func (p Price) cost(u Usage) milli {
	weigh := func(tokens int, weight float64) milli { return milli(tokens) * milli(math.Round(weight*perToken)) }
	return weigh(u.Input-u.Cached, p.Input) + weigh(u.Cached, p.Cached) + weigh(u.Output, p.Output)
}

// DefaultPrice is that of a token for a token.
var DefaultPrice = Price{Input: 1, Cached: 1, Output: 1}

// MaxGranted is the largest balance, in tokens.
const MaxGranted = 1 << 50

// Limits of what a file may say, so that no sum of the ledger overflows.
const (
	maxCount  = 1 << 31
	maxWeight = 1000
	minWeight = 0.001
)

// check says what is wrong with an entry.
func (k *Key) check() error {
	switch {
	case k.Name == "" || strings.ContainsFunc(k.Name, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' }):
		return fmt.Errorf("the name %q is not one: want printable ASCII without spaces and quotes", k.Name)
	case k.Hash == Hash{}:
		return fmt.Errorf("key %s has no hash", k.Name)
	}
	for _, c := range []struct {
		name  string
		value int
	}{{"requests-per-minute", k.RequestsPerMinute}, {"tokens-per-minute", k.TokensPerMinute}, {"concurrency", k.Concurrency}} {
		if c.value < 0 || c.value > maxCount {
			return fmt.Errorf("key %s: %s is %d, want 0 to %d", k.Name, c.name, c.value, maxCount)
		}
	}
	if !(k.Weight == 0 || k.Weight >= minWeight && k.Weight <= maxWeight) { // NaN is refused, too
		return fmt.Errorf("key %s: weight is %g, want %g to %d", k.Name, k.Weight, minWeight, maxWeight)
	}
	if b := k.Balance; b != nil {
		if b.Granted < 0 || b.Granted > MaxGranted {
			return fmt.Errorf("key %s: balance.granted is %d, want 0 to %d", k.Name, b.Granted, int64(MaxGranted))
		}
		for _, w := range []float64{b.Price.Input, b.Price.Cached, b.Price.Output} {
			if !(w >= 0 && w <= maxWeight) { // NaN is refused, too
				return fmt.Errorf("key %s: a price is %g, want 0 to %d", k.Name, w, maxWeight)
			}
		}
	}
	return nil
}

// Hash is the SHA-256 of a key. Keys are random and long, so that a slow hash
// would protect nothing more.
type Hash [sha256.Size]byte

// HashOf is the digest of a key.
func HashOf(key string) Hash { return sha256.Sum256([]byte(key)) }

const hashPrefix = "sha256:"

// MarshalText spells the hash as the file has it.
func (h Hash) MarshalText() ([]byte, error) {
	return []byte(hashPrefix + hex.EncodeToString(h[:])), nil
}

// UnmarshalText reads it.
func (h *Hash) UnmarshalText(text []byte) error {
	digits, ok := strings.CutPrefix(string(text), hashPrefix)
	raw, err := hex.DecodeString(digits)
	if !ok || err != nil || len(raw) != len(h) {
		return errors.New("want a hash as in sha256: and 64 hexadecimal digits; quern keys add makes one")
	}
	copy(h[:], raw)
	return nil
}

// Owner names the holder without giving the key away.
func (h Hash) Owner() string { return hex.EncodeToString(h[:8]) }

// Generate makes a new key of 256 random bits.
func Generate() string {
	var raw [32]byte
	_, _ = rand.Read(raw[:]) // never fails
	return "qk-" + base64.RawURLEncoding.EncodeToString(raw[:])
}
