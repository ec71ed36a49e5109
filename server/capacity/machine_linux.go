package capacity

import (
	"io/fs"
	"os"
	"runtime"
	"strconv"
	"strings"
)

// Cores is how many threads a step may use to advantage: the physical cores
// that this process may run on, within its quota of processor time. A second
// thread on a core adds nothing to work that is bound by memory or by vector
// units, and a thread beyond the quota makes all others wait for it.
func Cores() int { return cores(os.DirFS("/"), runtime.NumCPU()) }

// CPU is what the system calls the processor; empty if it doesn't.
func CPU() string { return cpuName(os.DirFS("/")) }

func cpuName(root fs.FS) string {
	info, _ := fs.ReadFile(root, "proc/cpuinfo")
	for line := range strings.Lines(string(info)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// Memory is how many bytes this process can still take; 0 if it is not known.
func Memory() int64 { return memory(os.DirFS("/")) }

// Swap is how many bytes can be swapped out beside that.
func Swap() int64 { return swap(os.DirFS("/")) }

func swap(root fs.FS) int64 {
	return min(sumOf(root, "proc/meminfo", "SwapFree"), groupSwap(root))
}

func memory(root fs.FS) int64 {
	available := groupMemory(root)
	if system := sumOf(root, "proc/meminfo", "MemAvailable"); system > 0 {
		available = min(available, system)
	}
	if available == unlimited {
		return 0
	}
	return max(1, available) // 0 would say that it is not known
}

// cores counts on root; fallback is the count where root tells nothing.
func cores(root fs.FS, fallback int) int {
	n := physical(root)
	if n == 0 {
		n = fallback
	}
	if quota := cpuQuota(root); quota > 0 {
		n = min(n, int(quota))
	}
	return max(1, n)
}

// physical counts the cores behind the processors that this process may use.
func physical(root fs.FS) int {
	status, err := fs.ReadFile(root, "proc/self/status")
	if err != nil {
		return 0
	}
	var allowed []int
	for line := range strings.Lines(string(status)) {
		if list, ok := strings.CutPrefix(line, "Cpus_allowed_list:"); ok {
			allowed = parseList(strings.TrimSpace(list))
		}
	}
	seen := map[string]bool{}
	for _, cpu := range allowed {
		siblings, err := fs.ReadFile(root, "sys/devices/system/cpu/cpu"+strconv.Itoa(cpu)+"/topology/thread_siblings_list")
		if err != nil {
			siblings = []byte(strconv.Itoa(cpu))
		}
		seen[strings.TrimSpace(string(siblings))] = true
	}
	return len(seen)
}

// parseList reads the kernel's form of a set, as "0-3,8".
func parseList(text string) []int {
	var set []int
	for part := range strings.SplitSeq(text, ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		from, err1 := strconv.Atoi(first)
		to, err2 := strconv.Atoi(last)
		if err1 != nil || err2 != nil || to-from > 1<<16 {
			return nil
		}
		for cpu := from; cpu <= to; cpu++ {
			set = append(set, cpu)
		}
	}
	return set
}
