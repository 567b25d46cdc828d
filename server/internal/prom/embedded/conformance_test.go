package embedded_test

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"holdfast/gpuguard/signals"
	"holdfast/internal/testenv"
	"holdfast/server/internal/prom"
	"holdfast/server/internal/prom/embedded"
	"holdfast/server/observe"
)

// page has every kind of value, a histogram and two engines to join on.
const page = `# TYPE queue gauge
queue{pod="a"} 120
queue{pod="b"} 3
not_a_number NaN
infinite +Inf
greatest 1.7976931348623157e308
# TYPE tokens counter
tokens{pod="a"} 1000
tokens{pod="b"} 4000
# TYPE wait histogram
wait_bucket{le="0.1"} 10
wait_bucket{le="1"} 90
wait_bucket{le="+Inf"} 100
wait_sum 55
wait_count 100
vllm:gpu_cache_usage_perc 0.4
`

const conformanceRules = `groups:
  - name: recorded
    interval: 1s
    rules:
      - record: service:queue:requests
        expr: sum by (service, environment) (queue)
        labels: {source: scrape}
  - name: alerts
    interval: 1s
    rules:
      - alert: QueueGrowing
        expr: service:queue:requests > 100
        labels: {severity: critical}
        annotations: {summary: "{{ $labels.service }} queues {{ $value }}"}
      - alert: NeverYet
        expr: service:queue:requests > 100
        for: 1h
      - alert: Quiet
        expr: service:queue:requests < 0
      - record: broken
        expr: label_replace(queue, "pod", "x", "", "")
`

// queries are asked of both; all are about what does not change while the target
// answers the same page. Syntax that only the newer parser knows, such as a bare
// duration, is not among them; promtool keeps it out of the rule files.
var queries = []string{
	"1", "1 + 1.5", "0/0", "-1/0", "vector(2)", "time() * 0", `"text"`, "queue", `queue{pod="a"}`, "sum(queue)", "sort_desc(queue)",
	"topk(1, queue)", "bottomk(1, queue) by (pod)", `queue{pod="nobody"}`, "absent(nobody)", "absent(queue)", "not_a_number", "infinite",
	"greatest", "greatest * 10", "not_a_number > 0", "not_a_number != 1", "max(not_a_number)", "min(not_a_number or queue)", "queue / on(pod) tokens",
	"queue / ignoring(pod) tokens", "queue / on(pod) group_left sum by (pod)(tokens)", "histogram_quantile(0.95, wait_bucket)",
	"histogram_quantile(0.95, nobody)", "rate(tokens[2s])", "increase(tokens[2s]) > bool 0", `label_replace(queue, "x", "$1", "pod", "(.)")`,
	`label_replace(queue, "pod", "x", "", "")`, "count(up)", "up", "queue @ 0", "queue offset -1s", "queue[5s]", "queue[5s", "sum(", "",
	"nope(queue)", "queue{pod=~\"(\"}", "quantile(0.5, queue)", "stddev(queue)", "clamp_max(queue, 5)", "abs(-queue)", "queue > 100 and on() up",
	"count_values(\"v\", queue)", "scalar(queue{pod=\"a\"})", "scalar(queue)", "sum_over_time(queue[1s:100ms])*0", `{__name__=~"vllm:.*"}`,
	"ALERTS", `ALERTS{alertstate="firing"}`, "service:queue:requests", "group by (alertname) (ALERTS_FOR_STATE)", "a b", "{}", "queue{",
}

// TestBothSourcesAnswerAlike asks the engine and Debian's Prometheus the same,
// over the same target and the same rule file.
func TestBothSourcesAnswerAlike(t *testing.T) {
	t.Parallel()
	binary := testenv.Require(t, "prometheus")
	x := newExporter(t, page)
	down := embedded.Job{Name: "gateway", Addresses: []string{"127.0.0.1:1"}, Labels: map[string]string{"environment": "prod"}}
	remote := startPrometheus(t, binary, x, down)
	o := options(t.TempDir(), &inbox{}, conformanceRules, x.job(), down)
	o.ScrapeInterval, o.EvaluationInterval = time.Second, time.Second
	own := start(t, o)
	sources := []observe.Source{own, remote}
	for _, s := range sources {
		require.Eventually(t, func() bool {
			alerts, err := s.Query(t.Context(), `count(ALERTS) + count(up == 0) + count(count_over_time(tokens[3s]) >= 2)`, time.Time{})
			return err == nil && len(alerts) == 1 && alerts[0].Value == 5
		}, 2*patience, tick, s.Kind())
	}
	sorted := cmpopts.SortSlices(func(a, b signals.Sample) bool { return fmt.Sprint(a.Labels) < fmt.Sprint(b.Labels) })
	same := cmp.Options{cmpopts.EquateNaNs(), cmpopts.EquateApprox(1e-9, 0), cmpopts.EquateEmpty(), cmpopts.IgnoreFields(signals.Sample{}, "At")}

	for _, q := range queries {
		now := time.Now()
		a, errA := own.Query(t.Context(), q, now)
		b, errB := remote.Query(t.Context(), q, now)
		require.Equal(t, kind(errA), kind(errB), "%s\n%v\n%v", q, errA, errB)
		options := append(slices.Clone(same), sorted)
		if strings.HasPrefix(q, "sort") {
			options = same
		}
		require.Empty(t, cmp.Diff(a, b, options...), q)
		for i := range a {
			require.WithinDuration(t, now, a[i].At, time.Millisecond, q)
			require.WithinDuration(t, now, b[i].At, time.Millisecond, q)
		}
	}

	// The points of a range lie at the same times.
	end := time.Now().Truncate(time.Second)
	r := observe.Range{Start: end.Add(-time.Hour), End: end, Step: time.Minute}
	for _, q := range []string{"1", "queue", "not_a_number", `"text"`, "queue[1m]", "sum(", "time()"} {
		a, errA := own.QueryRange(t.Context(), q, r)
		b, errB := remote.QueryRange(t.Context(), q, r)
		require.Equal(t, kind(errA), kind(errB), "%s\n%v\n%v", q, errA, errB)
		if q == "1" || q == "time()" {
			require.Empty(t, cmp.Diff(a, b), q)
			require.Len(t, a[0].Points, 61)
		}
		require.Len(t, b, len(a), q)
	}
	compareStatus(t, own, remote)
}

// compareStatus compares rules and targets but for times and durations. The rules
// of a Prometheus elsewhere may stand in another order of files.
func compareStatus(t *testing.T, own, remote observe.Source) {
	t.Helper()
	ignored := cmp.Options{
		cmpopts.EquateEmpty(),
		cmpopts.IgnoreFields(observe.Rule{}, "EvaluatedAt", "LastError"), cmpopts.IgnoreFields(observe.ActiveAlert{}, "ActiveAt"),
		cmpopts.IgnoreFields(observe.Target{}, "ScrapedAt", "Took", "LastError"),
	}
	a, err := own.Rules(t.Context())
	require.NoError(t, err)
	b, err := remote.Rules(t.Context())
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(a, b, ignored...))
	require.Equal(t, observe.RuleFiring, a[0].Rules[0].State)
	require.Equal(t, "err", a[0].Rules[3].Health)
	for _, groups := range [][]observe.RuleGroup{a, b} {
		require.Contains(t, groups[0].Rules[3].LastError, "same labelset")
	}
	ta, err := own.Targets(t.Context())
	require.NoError(t, err)
	tb, err := remote.Targets(t.Context())
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(ta, tb, ignored...))
	require.Contains(t, ta[1].LastError, "refused")
	require.Contains(t, tb[1].LastError, "refused")
}

// kind is what an error says to a caller.
func kind(err error) string {
	for name, sentinel := range map[string]error{"bad query": observe.ErrBadQuery, "unavailable": observe.ErrUnavailable} {
		if errors.Is(err, sentinel) {
			return name
		}
	}
	return fmt.Sprint(err)
}

// startPrometheus runs Debian's Prometheus over the same targets.
func startPrometheus(t *testing.T, binary string, x *exporter, down embedded.Job) *prom.Remote {
	t.Helper()
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	config := write("prometheus.yml", fmt.Sprintf(`
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [%s]
scrape_configs:
  - job_name: engine
    static_configs: [{targets: [%q], labels: {service: llm, environment: prod}}]
  - job_name: gateway
    static_configs: [{targets: [%q], labels: {environment: prod}}]
`, write("rules.yml", conformanceRules), x.address(), down.Addresses[0]))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	require.NoError(t, l.Close())
	cmd := exec.Command(binary, "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+address, "--query.lookback-delta=30s", "--log.level=warn")
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(said.String())
		}
	})
	client := &http.Client{Timeout: time.Second}
	t.Cleanup(client.CloseIdleConnections)
	require.Eventually(t, func() bool {
		answer, err := client.Get("http://" + address + "/-/ready")
		if err != nil {
			return false
		}
		_ = answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	}, patience, 5*tick)
	r, err := prom.NewRemote(prom.RemoteOptions{URL: "http://" + address})
	require.NoError(t, err)
	t.Cleanup(r.Close)
	return r
}
