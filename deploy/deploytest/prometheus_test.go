package deploytest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/testenv"
)

func TestPrometheusConfigIsAccepted(t *testing.T) {
	t.Parallel()
	promtool := testenv.Require(t, "promtool")
	rules, err := filepath.Abs(root + "/deploy/prometheus/rules")
	require.NoError(t, err)
	// In the container the rules lie elsewhere; a pattern without match would pass unseen.
	text := read(t, composeDir+"/prometheus.yml")
	require.Contains(t, text, "/etc/prometheus/rules/*.yml")
	files, err := filepath.Glob(rules + "/*.yml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	config := filepath.Join(t.TempDir(), "prometheus.yml")
	require.NoError(t, os.WriteFile(config, []byte(strings.ReplaceAll(text, "/etc/prometheus/rules", rules)), 0o600))
	execute(t, promtool, "check", "config", config)
	execute(t, promtool, append([]string{"check", "rules"}, files...)...)
}

func TestPrometheusRulesFireWhenTheyShould(t *testing.T) {
	t.Parallel()
	promtool := testenv.Require(t, "promtool")
	files, err := filepath.Glob(root + "/deploy/prometheus/tests/*.test.yml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	execute(t, promtool, append([]string{"test", "rules"}, files...)...)
}

func TestAlertmanagerConfigIsAccepted(t *testing.T) {
	t.Parallel()
	testenv.Require(t, "alertmanager")
	amtool, err := exec.LookPath("amtool") // of the same Debian package
	require.NoError(t, err)
	execute(t, amtool, "check-config", composeDir+"/alertmanager.yml")
}

func TestAlertmanagerDeliversEverythingToTheHook(t *testing.T) {
	t.Parallel()
	var c struct {
		Route struct {
			Receiver       string   `yaml:"receiver"`
			GroupBy        []string `yaml:"group_by"`
			GroupWait      string   `yaml:"group_wait"`
			GroupInterval  string   `yaml:"group_interval"`
			RepeatInterval string   `yaml:"repeat_interval"`
		} `yaml:"route"`
		Receivers []struct {
			Name     string `yaml:"name"`
			Webhooks []struct {
				URL          string `yaml:"url"`
				SendResolved bool   `yaml:"send_resolved"`
				MaxAlerts    int    `yaml:"max_alerts"`
				HTTP         struct {
					Authorization struct {
						Type            string `yaml:"type"`
						CredentialsFile string `yaml:"credentials_file"`
					} `yaml:"authorization"`
				} `yaml:"http_config"`
			} `yaml:"webhook_configs"`
		} `yaml:"receivers"`
	}
	readYAML(t, composeDir+"/alertmanager.yml", &c)
	require.Len(t, c.Receivers, 1)
	require.Equal(t, c.Route.Receiver, c.Receivers[0].Name)
	hook := c.Receivers[0].Webhooks[0]
	require.Equal(t, "http://holdfast:8080/hooks/alertmanager", hook.URL)
	require.True(t, hook.SendResolved)
	require.Zero(t, hook.MaxAlerts)
	require.Equal(t, "Bearer", hook.HTTP.Authorization.Type)
	require.NotContains(t, c.Route.GroupBy, "...", "one incident for every alert would flood the channel")
}
