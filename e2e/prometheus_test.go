//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/testenv"
)

// evaluation is how often both engines evaluate the rules of the demo, and scrape.
const evaluation = time.Second

// peer is Debian's Prometheus beside the demo's embedded one, with Debian's
// Alertmanager behind it that delivers into the same hook.
type peer struct {
	demo *demo
	url  string
	stop chan struct{}
	done sync.WaitGroup

	mu sync.Mutex
	// ours and theirs say since when an alert has been active that fired.
	ours, theirs map[string]time.Time
	// delivered are the alerts that came through the Alertmanager.
	delivered map[string]bool
}

// startPrometheus runs both against the demo's targets with the shipped rules.
func (d *demo) startPrometheus(t *testing.T) *peer {
	t.Helper()
	p := &peer{demo: d, stop: make(chan struct{}), ours: map[string]time.Time{}, theirs: map[string]time.Time{}, delivered: map[string]bool{}}
	hook := httptest.NewServer(http.HandlerFunc(p.deliver))
	t.Cleanup(hook.Close)
	dir, ports := t.TempDir(), freePorts(t, 2)
	am := start(t, nil, testenv.Require(t, "alertmanager"), "--config.file", writeFile(t, filepath.Join(dir, "alertmanager.yml"), fmt.Sprintf(`
route: {receiver: holdfast, group_by: [service, environment], group_wait: 100ms, group_interval: 1s, repeat_interval: 1h}
receivers:
  - name: holdfast
    webhook_configs:
      - url: %s
        http_config: {authorization: {credentials: %s}}
`, hook.URL, d.hookToken(t))), "--storage.path", filepath.Join(dir, "am"), "--web.listen-address", "127.0.0.1:"+ports[0], "--cluster.listen-address=", "--log.level=warn")
	ready(t, am, "http://127.0.0.1:"+ports[0]+"/-/ready")
	rules, err := filepath.Abs("../deploy/prometheus/rules")
	require.NoError(t, err)
	config := writeFile(t, filepath.Join(dir, "prometheus.yml"), fmt.Sprintf(`
global: {scrape_interval: %[1]s, evaluation_interval: %[1]s}
rule_files: [%[2]s/*.yml]
alerting: {alertmanagers: [{static_configs: [{targets: ["127.0.0.1:%[3]s"]}]}]}
scrape_configs:
  - job_name: gateway
    static_configs: [{targets: ["%[4]s"], labels: {environment: prod}}]
  - job_name: engine
    static_configs:
      - {targets: ["%[5]s"], labels: {environment: prod, service: llm, pool: llm}}
      - {targets: ["%[6]s"], labels: {environment: prod, service: embeddings, pool: embeddings}}
  - job_name: holdfast
    static_configs: [{targets: ["127.0.0.1:%[7]s"], labels: {environment: prod}}]
`, evaluation, rules, ports[0], strings.Join(d.admins, `", "`), d.engines[0], d.engines[1], d.port))
	p.url = "http://127.0.0.1:" + ports[1]
	prometheus := start(t, nil, testenv.Require(t, "prometheus"), "--config.file", config, "--storage.tsdb.path", filepath.Join(dir, "tsdb"),
		"--web.listen-address", "127.0.0.1:"+ports[1], "--query.lookback-delta=30s", "--log.level=warn")
	ready(t, prometheus, p.url+"/-/ready")
	p.done.Go(p.watch)
	t.Cleanup(func() { close(p.stop); p.done.Wait() })
	return p
}

// hookToken is the token that the demo gave its alert source.
func (d *demo) hookToken(t *testing.T) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(d.state, "demo.json"))
	require.NoError(t, err)
	var facts struct {
		HookToken string `json:"hook_token"`
	}
	require.NoError(t, json.Unmarshal(raw, &facts))
	return facts.HookToken
}

// deliver notes what the Alertmanager sends and hands it to the real hook.
func (p *peer) deliver(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	req, err := http.NewRequestWithContext(r.Context(), http.MethodPost, p.demo.url+"/hooks/alertmanager", bytes.NewReader(body))
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	req.Header = r.Header.Clone()
	resp, err := caller.Do(req)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer func() { _ = resp.Body.Close() }()
	var n struct {
		Alerts []struct {
			Status string
			Labels map[string]string
		}
	}
	if json.Unmarshal(body, &n) == nil && resp.StatusCode == http.StatusOK {
		p.mu.Lock()
		for _, a := range n.Alerts {
			if a.Status == "firing" {
				p.delivered[alertKey(a.Labels)] = true
			}
		}
		p.mu.Unlock()
	}
	w.WriteHeader(resp.StatusCode)
}

// alertKey names an alert by its labels.
func alertKey(labels map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		fmt.Fprintf(&b, "%s=%q ", name, labels[name])
	}
	return b.String()
}

// watch notes which alerts fire in both engines.
func (p *peer) watch() {
	tick := time.NewTicker(evaluation / 2)
	defer tick.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-tick.C:
		}
		p.note(p.ours, p.firingHere())
		p.note(p.theirs, p.firingThere())
	}
}

func (p *peer) note(into map[string]time.Time, firing map[string]time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, since := range firing {
		if _, known := into[key]; !known {
			into[key] = since
		}
	}
}

func (p *peer) firingHere() map[string]time.Time {
	var page struct {
		Items []struct {
			Alerts []struct {
				Labels   map[string]string
				State    string
				ActiveAt time.Time `json:"active_at"`
			}
		}
	}
	firing := map[string]time.Time{}
	if _, err := p.demo.admin.try(http.MethodGet, "/api/v1/rules", nil, &page); err != nil {
		return firing
	}
	for _, rule := range page.Items {
		for _, a := range rule.Alerts {
			if a.State == "firing" {
				firing[alertKey(a.Labels)] = a.ActiveAt
			}
		}
	}
	return firing
}

func (p *peer) firingThere() map[string]time.Time {
	var answer struct {
		Data struct {
			Alerts []struct {
				Labels   map[string]string
				State    string
				ActiveAt time.Time
			}
		}
	}
	firing := map[string]time.Time{}
	if _, err := (api{url: p.url}).try(http.MethodGet, "/api/v1/alerts", nil, &answer); err != nil {
		return firing
	}
	for _, a := range answer.Data.Alerts {
		if a.State == "firing" {
			firing[alertKey(a.Labels)] = a.ActiveAt
		}
	}
	return firing
}

// agrees compares what fired: the same alerts, active since the same time. Two
// engines scrape at different moments, and evaluate at different moments: each
// may see a crossing one interval later than the other.
func (p *peer) agrees(t *testing.T) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	require.NotEmpty(t, p.ours)
	require.Equal(t, slices.Sorted(maps.Keys(p.ours)), slices.Sorted(maps.Keys(p.theirs)), "the same alerts fire in both")
	for key, since := range p.ours {
		apart := p.theirs[key].Sub(since)
		t.Logf("Debian's Prometheus sees it %+.2f s after the embedded one: %s", apart.Seconds(), key)
		require.LessOrEqual(t, apart.Abs(), 2*evaluation, "one scrape and one evaluation: %s", key)
		require.True(t, p.delivered[key], "it came through Debian's Alertmanager: %s", key)
	}
}
