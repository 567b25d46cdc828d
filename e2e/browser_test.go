//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/testenv"
)

// TestBrowserConsole runs the console's own browser suite against a demo with an
// open incident.
func TestBrowserConsole(t *testing.T) {
	chromium, npm := browser(t)
	d := startDemo(t)
	output(t, nil, program("holdfast"), "demo", "alert", "--state", d.state)
	d.waitPage(t, "LLMErrorRateHigh", "Trip breaker")
	begun := time.Now()
	suite := start(t, []string{
		"HOLDFAST_E2E_LOGIN_URL=" + d.loginLink(), "HOLDFAST_E2E_SCREENSHOTS=" + pictures(t), "HOLDFAST_E2E_CHROMIUM=" + chromium,
	}, npm, "--prefix", "../web", "run", "--silent", "e2e")
	require.Equal(t, 0, suite.waitFor(3*time.Minute), "the console's suite failed:\n%s", suite.out)
	t.Logf("the console's suite took %s", time.Since(begun).Round(time.Millisecond))
	require.Equal(t, 0, d.interrupt(), "%s", d.out)
}

// TestBrowserStory walks the slow-model runbook through in the console while the
// story plays.
func TestBrowserStory(t *testing.T) {
	chromium, npm := browser(t)
	d := startDemo(t, "--story", "slow-model", "--story-warmup", "30s", "--story-hold", "10s")
	begun := time.Now()
	suite := start(t, []string{
		"HOLDFAST_E2E_LOGIN_URL=" + d.loginLink(), "HOLDFAST_E2E_SCREENSHOTS=" + pictures(t), "HOLDFAST_E2E_CHROMIUM=" + chromium,
	}, npm, "--prefix", "../web", "run", "--silent", "e2e:story")
	require.Equal(t, 0, suite.waitFor(10*time.Minute), "the console's story failed:\n%s\n%s", suite.out, d.out)
	t.Logf("the runbook in the console took %s", time.Since(begun).Round(time.Second))
	events := d.events()
	require.Contains(t, events, "calm")
	require.Contains(t, events, "rollback")
	executed := d.admin.audited(t, "action.executed")
	require.Equal(t, 2, executed, "one run for each action step")
	require.Equal(t, 0, d.interrupt(), "%s", d.out)
}

// TestBrowserSlackPage presses the buttons of the simulated Slack's page.
func TestBrowserSlackPage(t *testing.T) {
	chromium, _ := browser(t)
	node := testenv.Require(t, "node")
	d := startDemo(t)
	output(t, nil, program("holdfast"), "demo", "alert", "--state", d.state)
	d.waitPage(t, "LLMErrorRateHigh", "Trip breaker")
	picture := filepath.Join(t.TempDir(), "slack.png")
	t.Log(output(t, nil, node, "testdata/slackpage.mjs", d.slack, "../web", chromium, picture))
	info, err := os.Stat(picture)
	require.NoError(t, err)
	require.Positive(t, info.Size())
}

// pictures is the folder for screenshots: the one that the environment names
// keeps them for those who want to look.
func pictures(t *testing.T) string {
	t.Helper()
	if folder := os.Getenv("HOLDFAST_E2E_SCREENSHOTS"); folder != "" {
		return folder
	}
	return t.TempDir()
}

// browser is Chromium and npm, with the console built into the programs.
func browser(t *testing.T) (chromium, npm string) {
	t.Helper()
	chromium = testenv.Require(t, "chromium")
	npm = filepath.Join(filepath.Dir(testenv.Require(t, "node")), "npm")
	for _, needed := range []string{"../web/dist/index.html", "../web/node_modules/playwright-core/package.json"} {
		_, err := os.Stat(needed)
		require.NoError(t, err, "the console is not built; run: make web")
	}
	return chromium, npm
}
