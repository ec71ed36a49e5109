package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"quern/engine/llama"
	"quern/server/capacity"
	"quern/server/config"
)

// fastTune and fullTune are how long a self-tune may take beside the load.
const (
	fastTune = 3 * time.Second
	fullTune = 60 * time.Second
	// keptTunings bounds the file; the oldest go first.
	keptTunings = 64
)

// tuned is one outcome, as it is kept.
type tuned struct {
	When time.Time `json:"when"`
	llama.Tuning
}

// tune lets what nobody has set be measured, or takes what was measured before of
// the same model on the same machine.
func (n *node) tune(o *llama.Options) {
	t := llama.Tuner{AnyThreads: !n.cfg.IsSet("threads"), Budget: fastTune}
	if n.cfg.Tune == "full" {
		t.AnyUBatch, t.Budget = !n.cfg.IsSet("ubatch"), fullTune
	}
	if n.cfg.Tune == "off" || !t.AnyThreads && !t.AnyUBatch {
		return
	}
	path, err := tuneFile()
	if err != nil {
		n.logger.Warn("what is tuned will not be kept", "err", err)
	}
	key := tuneKey(n.cfg, *o)
	if known, ok := readTunings(path)[key]; ok {
		n.logger.Info("tuned before", "when", known.When, "threads", known.Threads, "threads_batch", known.ThreadsBatch,
			"ubatch", known.UBatch, "file", path)
		o.Threads, o.ThreadsBatch = cmp.Or(known.Threads, o.Threads), cmp.Or(known.ThreadsBatch, o.ThreadsBatch)
		o.UBatch = cmp.Or(known.UBatch, o.UBatch)
		return
	}
	t.Done = func(found llama.Tuning) {
		n.logger.Info("tuned", "threads", found.Threads, "threads_batch", found.ThreadsBatch, "ubatch", found.UBatch,
			"trials", found.Trials, "took", found.Took.Round(time.Millisecond))
		if len(found.Trials) == 0 {
			return // the machine was too busy to tell
		}
		if err := keepTuning(path, key, tuned{time.Now().UTC(), found}); err != nil {
			n.logger.Warn("what is tuned is not kept", "err", err)
		}
	}
	o.Tune = &t
}

// tuneKey tells models, machines, builds and settings apart.
func tuneKey(cfg *config.Config, o llama.Options) string {
	v := readProvenance()
	what := fmt.Sprintln(capacity.CPU(), v.Version, v.Commit, v.Engine, v.Llama, v.CPU, v.AMX, cfg.Tune, o.Threads,
		o.UBatch, o.KVType, o.FlashAttn, o.NoMMap, o.NoRepack, cfg.IsSet("threads"), cfg.IsSet("ubatch"))
	if path, err := filepath.Abs(cfg.Model); err == nil {
		what += path
	}
	if info, err := os.Stat(cfg.Model); err == nil {
		what += fmt.Sprintln("", info.Size(), info.ModTime().UnixNano())
	}
	sum := sha256.Sum256([]byte(what))
	return filepath.Base(cfg.Model) + " " + hex.EncodeToString(sum[:8])
}

func tuneFile() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("tune: %w", err)
	}
	return filepath.Join(dir, "quern", "tune.json"), nil
}

// readTunings reads what is kept: nothing where there is no file or it is torn.
func readTunings(path string) map[string]tuned {
	all := map[string]tuned{}
	b, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(b, &all) != nil || all == nil {
		return map[string]tuned{}
	}
	return all
}

// keepTuning adds an outcome to the file, which is replaced as a whole. Of two
// nodes that do so at once, one may have to tune again.
func keepTuning(path, key string, t tuned) error {
	if path == "" {
		return nil
	}
	all := readTunings(path)
	all[key] = t
	for len(all) > keptTunings {
		oldest := ""
		for k := range all {
			if oldest == "" || all[k].When.Before(all[oldest].When) {
				oldest = k
			}
		}
		delete(all, oldest)
	}
	b, err := json.MarshalIndent(all, "", " ")
	if err != nil {
		return fmt.Errorf("tune: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("tune: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), "tune-*.json")
	if err != nil {
		return fmt.Errorf("tune: %w", err)
	}
	_, err = f.Write(slices.Concat(b, []byte("\n")))
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("tune: %w", errors.Join(err, os.Remove(f.Name())))
	}
	return nil
}
