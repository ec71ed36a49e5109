package capacity

import (
	"maps"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

func files(contents map[string]string) fstest.MapFS {
	m := fstest.MapFS{}
	for name, text := range contents {
		m[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return m
}

const topology = "sys/devices/system/cpu/cpu"

func TestCores(t *testing.T) {
	four := map[string]string{
		"proc/self/status":                           "Name:\tquern\nCpus_allowed_list:\t0-3\n",
		topology + "0/topology/thread_siblings_list": "0,2\n",
		topology + "1/topology/thread_siblings_list": "1,3\n",
		topology + "2/topology/thread_siblings_list": "0,2\n",
		topology + "3/topology/thread_siblings_list": "1,3\n",
	}
	with := func(more map[string]string) map[string]string {
		all := map[string]string{}
		maps.Copy(all, four)
		maps.Copy(all, more)
		return all
	}
	for _, tc := range []struct {
		name  string
		files map[string]string
		want  int
	}{
		{"hyperthreads count once", four, 2},
		{"affinity", with(map[string]string{"proc/self/status": "Cpus_allowed_list:\t1\n"}), 1},
		{"both threads of one core", with(map[string]string{"proc/self/status": "Cpus_allowed_list:\t0,2\n"}), 1},
		{"no topology", map[string]string{"proc/self/status": "Cpus_allowed_list:\t0-2,5\n"}, 4},
		{"nothing known", nil, 6},
		{"garbage", map[string]string{"proc/self/status": "Cpus_allowed_list:\tx-y\n"}, 6},
		{"quota, version 2", with(map[string]string{
			"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/cpu.max": "150000 100000\n"}), 1},
		{"quota of a group above", with(map[string]string{
			"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/cpu.max": "100000 100000\n", "sys/fs/cgroup/a/b/cpu.max": "max 100000\n"}), 1},
		{"quota below one core", with(map[string]string{
			"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "5000 100000\n"}), 1},
		{"quota above the cores", with(map[string]string{
			"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "800000 100000\n"}), 2},
		{"quota, version 1", with(map[string]string{
			"proc/self/cgroup": "4:cpu,cpuacct:/x\n0::/x\n",
			"sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_quota_us":  "100000\n",
			"sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_period_us": "100000\n"}), 1},
		{"quota, version 1, in a container", with(map[string]string{
			"proc/self/cgroup":                    "4:cpu:/docker/1\n",
			"sys/fs/cgroup/cpu/cpu.cfs_quota_us":  "100000\n",
			"sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n"}), 1},
		{"no quota, version 1", with(map[string]string{
			"proc/self/cgroup":                    "4:cpu:/\n",
			"sys/fs/cgroup/cpu/cpu.cfs_quota_us":  "-1\n",
			"sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n"}), 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			require.Equal(t, tc.want, cores(files(tc.files), 6))
		})
	}
}

func TestMemory(t *testing.T) {
	const meminfo = "MemTotal:       24684096 kB\nMemFree: 1 kB\nMemAvailable:   8388608 kB\n"
	for _, tc := range []struct {
		name  string
		files map[string]string
		want  int64
	}{
		{"nothing known", nil, 0},
		{"the system's", map[string]string{"proc/meminfo": meminfo}, 8 << 30},
		{"version 2, cached files can go", map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/q\n", "sys/fs/cgroup/q/memory.max": "4294967296\n",
			"sys/fs/cgroup/q/memory.current": "3221225472\n", "sys/fs/cgroup/q/memory.stat": "anon 1\nactive_file 1073741824\ninactive_file 1073741824\n"}, 3 << 30},
		{"version 2, no limit", map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/q\n", "sys/fs/cgroup/q/memory.max": "max\n"}, 8 << 30},
		{"version 2, limit above", map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/q/r\n", "sys/fs/cgroup/q/r/memory.max": "max\n", "sys/fs/cgroup/q/memory.max": "1073741824\n"}, 1 << 30},
		{"limit beyond the machine", map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "99999999999\n"}, 8 << 30},
		{"version 1", map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "4:memory:/p\n0::/\n", "sys/fs/cgroup/memory/p/memory.limit_in_bytes": "2147483648\n",
			"sys/fs/cgroup/memory/p/memory.usage_in_bytes": "1610612736\n", "sys/fs/cgroup/memory/p/memory.stat": "total_inactive_file 536870912\n"}, 1 << 30},
		{"version 1, no limit", map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "4:memory:/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 8 << 30},
		{"more used than allowed", map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "1000\n", "sys/fs/cgroup/memory.current": "2000\n"}, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			require.Equal(t, tc.want, memory(files(tc.files)))
		})
	}
}

func TestSwap(t *testing.T) {
	const meminfo = "MemAvailable:   8388608 kB\nSwapFree: 2097152 kB\n"
	require.Zero(t, swap(files(nil)))
	require.EqualValues(t, 2<<30, swap(files(map[string]string{"proc/meminfo": meminfo})))
	require.EqualValues(t, 1<<29, swap(files(map[string]string{
		"proc/meminfo": meminfo, "proc/self/cgroup": "0::/q/r\n", "sys/fs/cgroup/q/r/memory.swap.max": "max\n",
		"sys/fs/cgroup/q/memory.swap.max": "1073741824\n", "sys/fs/cgroup/q/memory.swap.current": "536870912\n"})))
}

func TestCPU(t *testing.T) {
	require.Empty(t, cpuName(files(nil)))
	require.Equal(t, "A B-1", cpuName(files(map[string]string{"proc/cpuinfo": "processor : 0\nmodel name\t: A B-1\nmodel name: C\n"})))
}

func TestThisMachine(t *testing.T) {
	require.Positive(t, Cores())
	require.Greater(t, Memory(), int64(64<<20))
}
