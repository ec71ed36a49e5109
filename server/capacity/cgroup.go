package capacity

import (
	"bufio"
	"bytes"
	"io/fs"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
)

// unlimited stands for no limit; version 1 writes a number near the largest.
const unlimited = math.MaxInt64

// groups are the folders that limit this process by one controller, in
// version 1 and version 2: its group and all groups above it, since a limit
// holds for everything below. In a container the group's path may name nothing,
// and the root of the mount is the group itself.
func groups(root fs.FS, controller string) (v1, v2 []string) {
	const mount = "sys/fs/cgroup"
	data, _ := fs.ReadFile(root, "proc/self/cgroup")
	for line := range strings.Lines(string(data)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 {
			continue
		}
		names := strings.Split(fields[1], ",")
		for dir := path.Join("/", fields[2]); ; dir = path.Dir(dir) {
			if fields[0] == "0" {
				v2 = append(v2, path.Join(mount, dir))
			} else if slices.Contains(names, controller) {
				v1 = append(v1, path.Join(mount, controller, dir), path.Join(mount, fields[1], dir))
			}
			if dir == "/" {
				break
			}
		}
	}
	return v1, v2
}

// cpuQuota is the processor time that the control groups grant, in cores; 0: no limit.
func cpuQuota(root fs.FS) float64 {
	least := math.Inf(1)
	note := func(quota, period int64) {
		if quota > 0 && quota < unlimited && period > 0 {
			least = min(least, float64(quota)/float64(period))
		}
	}
	v1, v2 := groups(root, "cpu")
	for _, dir := range v2 {
		data, _ := fs.ReadFile(root, path.Join(dir, "cpu.max"))
		if fields := bytes.Fields(data); len(fields) == 2 {
			note(number(fields[0]), number(fields[1]))
		}
	}
	for _, dir := range v1 {
		note(readNumber(root, path.Join(dir, "cpu.cfs_quota_us")), readNumber(root, path.Join(dir, "cpu.cfs_period_us")))
	}
	if math.IsInf(least, 1) {
		return 0
	}
	return least
}

// groupMemory is what the control groups leave of memory; unlimited if nothing limits it.
func groupMemory(root fs.FS) int64 {
	least := int64(unlimited)
	note := func(limit, usage, fileCache int64) {
		if limit > 0 && limit < 1<<60 {
			// Cached files count as usage, and go when memory is needed.
			least = min(least, max(0, limit-max(0, usage-fileCache)))
		}
	}
	v1, v2 := groups(root, "memory")
	for _, dir := range v2 {
		note(readNumber(root, path.Join(dir, "memory.max")), readNumber(root, path.Join(dir, "memory.current")),
			sumOf(root, path.Join(dir, "memory.stat"), "active_file", "inactive_file"))
	}
	for _, dir := range v1 {
		note(readNumber(root, path.Join(dir, "memory.limit_in_bytes")), readNumber(root, path.Join(dir, "memory.usage_in_bytes")),
			sumOf(root, path.Join(dir, "memory.stat"), "total_active_file", "total_inactive_file"))
	}
	return least
}

// groupSwap is what the control groups leave of swap; unlimited if nothing
// limits it, as version 1 limits it together with memory.
func groupSwap(root fs.FS) int64 {
	least := int64(unlimited)
	_, v2 := groups(root, "memory")
	for _, dir := range v2 {
		if text, err := fs.ReadFile(root, path.Join(dir, "memory.swap.max")); err == nil {
			limit := number(bytes.TrimSpace(text))
			least = min(least, max(0, limit-readNumber(root, path.Join(dir, "memory.swap.current"))))
		}
	}
	return least
}

// readNumber reads a file of one number; 0 if there is none to read.
func readNumber(root fs.FS, name string) int64 {
	data, err := fs.ReadFile(root, name)
	if err != nil {
		return 0
	}
	return number(bytes.TrimSpace(data))
}

// number is 0 for what is not a number, and unlimited for "max".
func number(text []byte) int64 {
	if string(text) == "max" {
		return unlimited
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// sumOf adds up the named lines of a file of "name number" or "name: number kB".
func sumOf(root fs.FS, name string, lines ...string) int64 {
	data, err := fs.ReadFile(root, name)
	if err != nil {
		return 0
	}
	var sum int64
	for scan := bufio.NewScanner(bytes.NewReader(data)); scan.Scan(); {
		fields := bytes.Fields(scan.Bytes())
		if len(fields) < 2 || !slices.Contains(lines, string(bytes.TrimSuffix(fields[0], []byte(":")))) {
			continue
		}
		n := number(fields[1])
		if len(fields) == 3 && string(fields[2]) == "kB" {
			n <<= 10
		}
		sum += n
	}
	return sum
}
