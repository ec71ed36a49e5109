package server

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var metricLine = regexp.MustCompile(`^[a-z0-9:_]+\{model_name="[^"]*"(,[a-z_]+="[^"]*")*\} -?[0-9.e+-]+$`)

func TestMetrics(t *testing.T) {
	n := newNode(t, "hello")
	n.create(`{"input":"hi there, this is a prompt of some length"}`)
	n.create(`{"input":"hi there, this is a prompt of some length"}`)
	n.create(`{"input":"hi","max_output_tokens":1}`)
	time.Sleep(2 * pageLife)
	_, page := n.do("GET", "/metrics", "")
	for line := range strings.Lines(page) {
		if !strings.HasPrefix(line, "#") {
			require.Regexp(t, metricLine, strings.TrimSuffix(strings.Replace(line, `le="+Inf"`, `le="1"`, 1), "\n"))
		}
	}
	for _, want := range []string{
		`vllm:num_requests_running{model_name="test-model"} 0`, `vllm:num_requests_waiting{model_name="test-model"} 0`,
		`vllm:kv_cache_usage_perc{model_name="test-model"} 0`, `vllm:gpu_cache_usage_perc{model_name="test-model"} 0`,
		`vllm:cache_config_info{model_name="test-model",block_size="16",num_gpu_blocks="256"} 1`,
		`vllm:lora_requests_info{model_name="test-model",max_lora="0",running_lora_adapters="",waiting_lora_adapters=""} 1`,
		`vllm:request_success_total{model_name="test-model",finished_reason="stop"} 2`,
		`vllm:request_success_total{model_name="test-model",finished_reason="length"} 1`,
		`vllm:generation_tokens_total{model_name="test-model"} 13`,
		`vllm:time_to_first_token_seconds_count{model_name="test-model"} 3`,
		`vllm:e2e_request_latency_seconds_count{model_name="test-model"} 3`,
		`vllm:inter_token_latency_seconds_bucket{model_name="test-model",le="+Inf"}`,
		`quern:prefix_tier_bytes{model_name="test-model",tier="ram"} 0`, `quern:prefix_tier_hit_tokens_total{model_name="test-model",tier="disk"} 0`,
		`quern:prefix_misses_total{model_name="test-model",kind="none"} 1`, `quern:prefix_misses_total{model_name="test-model",kind="evicted"} 0`,
		`vllm:gpu_prefix_cache_hits_total`, `vllm:gpu_prefix_cache_queries_total`, `vllm:prompt_tokens_total`,
		`vllm:request_queue_time_seconds_sum`, `vllm:request_prefill_time_seconds_sum`, `vllm:request_decode_time_seconds_sum`,
		"# TYPE vllm:num_requests_running gauge", "# TYPE vllm:prompt_tokens_total counter", "# TYPE vllm:e2e_request_latency_seconds histogram",
	} {
		require.Contains(t, page, want)
	}
	_, loads := n.do("GET", "/v1/loads", "")
	require.Contains(t, loads, `"num_running_reqs":0`)
}

func TestTheMetricsPageIsKeptForAMoment(t *testing.T) {
	m := newMetrics()
	a := m.render(nil, nil, nil)
	m.ttft.observe(time.Second)
	require.Equal(t, string(a), string(m.render(nil, nil, nil)))
	time.Sleep(2 * pageLife)
	require.NotEqual(t, string(a), string(m.render(nil, nil, nil)))
}

func TestHistogram(t *testing.T) {
	h := newHistogram(.1, 1)
	h.observe(50 * time.Millisecond)
	h.observe(100 * time.Millisecond)
	h.observeMany(2*time.Second, 2)
	require.Equal(t, `x_bucket{a="b",le="0.1"} 2
x_bucket{a="b",le="1"} 2
x_bucket{a="b",le="+Inf"} 4
x_sum{a="b"} 4.15
x_count{a="b"} 4
`, string(h.append(nil, "x", `a="b"`)))
	require.Equal(t, 1037500*time.Microsecond, h.mean())
}

func TestMetricsOfTheStore(t *testing.T) {
	n := storing(t, "hello")
	first := n.create(`{"input":"hi"}`)["id"].(string)
	n.create(`{"input":"hi","previous_response_id":"` + first + `"}`)
	n.fetched("GET", "/v1/responses/resp_none", 404)
	n.fetched("DELETE", "/v1/responses/"+first, 200)
	_, page := n.do("GET", "/metrics", "")
	for name, value := range map[string]string{
		`responses{`: "1", `writes_total{`: "2", `failures_total{`: "0", `max_bytes{`: "0",
		`lookups_total{model_name="test-model",result="hit"`: "1", `lookups_total{model_name="test-model",result="miss"`: "1",
		`evictions_total{model_name="test-model",reason="deleted"`: "1", `evictions_total{model_name="test-model",reason="expired"`: "0",
		`evictions_total{model_name="test-model",reason="displaced"`: "0",
	} {
		_, rest, found := strings.Cut(page, "\nquern:store_"+name)
		require.True(t, found, name)
		require.Regexp(t, `^[^\n]*} `+value+`\n`, rest, name)
	}
	require.Regexp(t, `quern:store_bytes{[^}]*} [1-9]`, page)
	_, page = newNode(t, "hi").do("GET", "/metrics", "")
	require.NotContains(t, page, "quern:store_")
}
