//go:build e2e

package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const demoKey = "demo-key-acme"

// demo is a running `holdfast demo`.
type demo struct {
	*process
	state                        string
	url, slack                   string
	port, slackPort, gatewayPort string
	gateways                     []string
	// admins and engines are the scraped addresses, host:port.
	admins, engines []string
	took            time.Duration
	// admin is an API client of alice.
	admin api
}

func startDemo(t *testing.T, flags ...string) *demo {
	t.Helper()
	ports := freePorts(t, 8)
	d := &demo{
		state: t.TempDir(), port: ports[0], slackPort: ports[1], gatewayPort: ports[2],
		url: "http://127.0.0.1:" + ports[0], slack: "http://127.0.0.1:" + ports[1],
		gateways: []string{"http://127.0.0.1:" + ports[2], "http://127.0.0.1:" + ports[3]},
		admins:   []string{"127.0.0.1:" + ports[4], "127.0.0.1:" + ports[5]},
		engines:  []string{"127.0.0.1:" + ports[6], "127.0.0.1:" + ports[7]},
	}
	begun := time.Now()
	d.process = start(t, nil, program("holdfast"), append([]string{
		"demo", "--state", d.state, "--port", ports[0], "--slack-port", ports[1],
		"--gateway-ports", ports[2] + "," + ports[3], "--gateway-admin-ports", ports[4] + "," + ports[5], "--engine-ports", ports[6] + "," + ports[7],
	}, flags...)...)
	eventually(t, "the demo's banner", func() bool {
		require.True(t, d.running(), "it ended:\n%s", d.out)
		return strings.Contains(d.out.String(), "Ctrl-C stops everything")
	})
	ready(t, d.process, d.url+"/")
	d.took = time.Since(begun)
	d.admin = api{d.url, output(t, nil, program("holdfast"), "token", "create", "--kind", "api", "--name", "e2e", "--owner", "alice", "--database", d.state+"/holdfast.db")}
	return d
}

// loginLink is the one-time link that the banner printed for alice.
func (d *demo) loginLink() string {
	return regexp.MustCompile(`http://\S+/login\?code=\S+`).FindString(d.out.String())
}

// slackMessage is a message as Slack's API gives it.
type slackMessage struct {
	TS, Text string
	Blocks   []struct {
		BlockID  string `json:"block_id"`
		Elements []struct {
			Type     string          `json:"type"`
			ActionID string          `json:"action_id"`
			Text     json.RawMessage `json:"text"`
		}
	}
	raw string
}

// messages reads the channel as an app with the bot's token.
func (d *demo) messages(t *testing.T) []slackMessage {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, d.slack+"/api/conversations.history",
		strings.NewReader(url.Values{"channel": {"C0INCIDENTS"}, "limit": {"100"}}.Encode()))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Authorization", "Bearer xoxb-slacksim-token")
	resp, err := caller.Do(req)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode == http.StatusTooManyRequests {
		return nil // Slack's own rate: look again
	}
	var page struct {
		OK       bool
		Error    string
		Messages []json.RawMessage
	}
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&page))
	require.True(t, page.OK, page.Error)
	list := make([]slackMessage, len(page.Messages))
	for i, raw := range page.Messages {
		require.NoError(t, json.Unmarshal(raw, &list[i]))
		list[i].raw = string(raw)
	}
	return list
}

// page is what a person's browser shows of the channel.
func (d *demo) page(t *testing.T) string {
	t.Helper()
	resp, err := caller.Get(d.slack + "/?channel=C0INCIDENTS&as=U0000ALICE")
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return string(body)
}

// waitPage polls the page until it shows all the words.
func (d *demo) waitPage(t *testing.T, words ...string) {
	t.Helper()
	eventually(t, "the Slack page to show "+strings.Join(words, ", "), func() bool {
		page := d.page(t)
		for _, w := range words {
			if !strings.Contains(page, w) {
				return false
			}
		}
		return true
	})
}

// press finds a button by its label on the cards and clicks it through the
// page's own endpoint, as the browser does.
func (d *demo) press(t *testing.T, label string) {
	t.Helper()
	form := url.Values{"channel": {"C0INCIDENTS"}, "as": {"U0000ALICE"}}
	for _, m := range d.messages(t) {
		for _, b := range m.Blocks {
			for _, e := range b.Elements {
				if e.Type == "button" && strings.Contains(string(e.Text), label) {
					form.Set("ts", m.TS)
					form.Set("block", b.BlockID)
					form.Set("action", e.ActionID)
				}
			}
		}
	}
	require.NotEmpty(t, form.Get("action"), "no button %q", label)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, d.slack+"/sim/click", strings.NewReader(form.Encode()))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	resp, err := caller.Do(req)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	var verdict struct {
		OK      bool
		Message string
	}
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&verdict))
	require.True(t, verdict.OK, verdict.Message)
}

func TestDemoStory(t *testing.T) {
	d := startDemo(t)
	t.Logf("start → usable console %d ms", d.took.Milliseconds())

	// The printed link is a login: the page, and the session behind it.
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	console := &http.Client{Jar: jar}
	code := regexp.MustCompile(`code=(\S+)`).FindStringSubmatch(d.loginLink())
	require.NotNil(t, code, d.out)
	resp, err := console.Post(d.url+"/api/v1/session", "application/json", strings.NewReader(`{"code":"`+code[1]+`"}`))
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusOK, resp.StatusCode)
	resp, err = console.Get(d.url + "/api/v1/me")
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusOK, resp.StatusCode)

	require.Equal(t, 2, d.admin.breakers("closed"))
	for _, g := range d.gateways {
		degraded, status := chat(t, g, demoKey)
		require.Equal(t, http.StatusOK, status)
		require.Empty(t, degraded)
	}
	begun := time.Now()
	output(t, nil, program("holdfast"), "demo", "alert", "--state", d.state)
	d.waitPage(t, "LLMErrorRateHigh", "Trip breaker")
	t.Logf("alert → card %d ms (with the start of the command that posts it)", time.Since(begun).Milliseconds())

	clicked := time.Now()
	d.press(t, "Trip breaker")
	eventually(t, "both gateways to answer with the fallback", func() bool {
		for _, g := range d.gateways {
			if degraded, _ := chat(t, g, demoKey); degraded != "static" {
				return false
			}
		}
		return true
	})
	t.Logf("click → both gateways enforce %d ms", time.Since(clicked).Milliseconds())
	eventually(t, "both gateways to report it", func() bool { return d.admin.breakers("forced_open") == 2 })
	t.Logf("click → both gateways report it %d ms", time.Since(clicked).Milliseconds())
	d.waitPage(t, "verified: 2 gateways")
	t.Logf("click → card says verified %d ms", time.Since(clicked).Milliseconds())

	reverted := time.Now()
	d.press(t, "Revert")
	eventually(t, "both gateways to serve again", func() bool {
		for _, g := range d.gateways {
			if degraded, status := chat(t, g, demoKey); degraded != "" || status != http.StatusOK {
				return false
			}
		}
		return true
	})
	t.Logf("revert → both gateways serve %d ms", time.Since(reverted).Milliseconds())
	d.waitPage(t, "ended")
	require.Contains(t, output(t, nil, program("holdfast"), "audit", "verify", "--database", d.state+"/holdfast.db"), "whole")

	// What a second demo on one of these ports says.
	for flag, port := range map[string]string{"--port": d.port, "--slack-port": d.slackPort, "--gateway-ports": d.gatewayPort} {
		second := startSecond(t, flag, port)
		require.Equal(t, 2, second.wait(), second.out)
		require.Contains(t, second.out.String(), flag)
		require.Contains(t, second.out.String(), port)
	}

	stopping := time.Now()
	require.Equal(t, 0, d.interrupt(), d.out)
	t.Logf("Ctrl-C → ended %d ms", time.Since(stopping).Milliseconds())
	require.NotContains(t, d.out.String(), "panic")
	require.NotContains(t, d.out.String(), "DATA RACE")
}

// startSecond runs a demo whose ports are free but for one.
func startSecond(t *testing.T, flag, port string) *process {
	t.Helper()
	p := freePorts(t, 8)
	flags := map[string]string{
		"--port": p[0], "--slack-port": p[1], "--gateway-ports": p[2] + "," + p[3],
		"--gateway-admin-ports": p[4] + "," + p[5], "--engine-ports": p[6] + "," + p[7],
	}
	flags[flag] = port
	if flag == "--gateway-ports" {
		flags[flag] += "," + p[3]
	}
	args := []string{"demo", "--state", t.TempDir()}
	for name, value := range flags {
		args = append(args, name, value)
	}
	return start(t, nil, program("holdfast"), args...)
}
