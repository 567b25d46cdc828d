//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/testenv"
	"holdfast/server/slacksim"
)

// TestAlertmanagerDelivers lets a real Alertmanager deliver a firing and a resolved alert.
func TestAlertmanagerDelivers(t *testing.T) {
	alertmanager := testenv.Require(t, "alertmanager")
	w := newWorld(t, filepath.Join(t.TempDir(), "holdfast.db"))
	am := w.startAlertmanager(alertmanager)
	labels := map[string]string{"alertname": "DecodeSlow", "severity": "critical", "service": "llm", "dependency": "llm", "environment": "prod"}
	begun := time.Now()
	require.Equal(t, http.StatusOK, am.call(t, http.MethodPost, "/api/v2/alerts", []map[string]any{{
		"labels": labels, "annotations": map[string]string{"summary": "decode takes 120 ms a token"},
		"startsAt": begun.UTC().Format(time.RFC3339Nano), "generatorURL": "http://127.0.0.1:9090/graph",
	}}, nil))
	card := w.card("the incident's card", func(m slacksim.Message) bool { return strings.Contains(m.Visible(), "DecodeSlow") })
	t.Logf("firing alert posted to Alertmanager → card %d ms (its group_wait is 100 ms)", time.Since(begun).Milliseconds())
	require.Contains(t, card.Visible(), "decode takes 120 ms a token")
	require.Equal(t, "open", w.incidentStatus())

	ended := time.Now()
	require.Equal(t, http.StatusOK, am.call(t, http.MethodPost, "/api/v2/alerts", []map[string]any{{
		"labels": labels, "annotations": map[string]string{"summary": "decode takes 120 ms a token"},
		"startsAt": begun.UTC().Format(time.RFC3339Nano), "endsAt": ended.UTC().Format(time.RFC3339Nano),
	}}, nil))
	w.card("the card resolved", func(m slacksim.Message) bool { return m.TS == card.TS && strings.Contains(m.Visible(), "✅") })
	t.Logf("resolved alert posted to Alertmanager → card %d ms (its group_interval is 1 s)", time.Since(ended).Milliseconds())
	require.Equal(t, "resolved", w.incidentStatus())
}

// startAlertmanager runs it with the hook as its receiver.
func (w *world) startAlertmanager(path string) api {
	w.t.Helper()
	dir, port := w.t.TempDir(), freePorts(w.t, 1)[0]
	config := writeFile(w.t, filepath.Join(dir, "alertmanager.yml"), fmt.Sprintf(`
route:
  receiver: holdfast
  group_by: [alertname]
  group_wait: 100ms
  group_interval: 1s
  repeat_interval: 1h
receivers:
  - name: holdfast
    webhook_configs:
      - url: %s/hooks/alertmanager
        send_resolved: true
        http_config:
          authorization: {credentials: %s}
`, w.url, w.hookToken))
	p := start(w.t, nil, path, "--config.file", config, "--storage.path", filepath.Join(dir, "data"),
		"--web.listen-address", "127.0.0.1:"+port, "--cluster.listen-address=", "--log.level=warn")
	url := "http://127.0.0.1:" + port
	ready(w.t, p, url+"/-/ready")
	return api{url: url}
}

// incidentStatus is the status of the one incident there is.
func (w *world) incidentStatus() string {
	w.t.Helper()
	var page struct{ Items []struct{ Status string } }
	w.alice.get(w.t, "/api/v1/incidents", &page)
	require.Len(w.t, page.Items, 1)
	return page.Items[0].Status
}
