package deploytest

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

// manifest is the part of Slack's app manifest that holdfast uses; unknown
// keys are refused because Slack refuses them too.
type manifest struct {
	Metadata struct {
		Major int `yaml:"major_version"`
		Minor int `yaml:"minor_version"`
	} `yaml:"_metadata"`
	Display struct {
		Name            string `yaml:"name"`
		Description     string `yaml:"description"`
		LongDescription string `yaml:"long_description"`
		BackgroundColor string `yaml:"background_color"`
	} `yaml:"display_information"`
	Features struct {
		AppHome struct {
			Home     bool `yaml:"home_tab_enabled"`
			Messages bool `yaml:"messages_tab_enabled"`
			ReadOnly bool `yaml:"messages_tab_read_only_enabled"`
		} `yaml:"app_home"`
		BotUser struct {
			DisplayName  string `yaml:"display_name"`
			AlwaysOnline bool   `yaml:"always_online"`
		} `yaml:"bot_user"`
		SlashCommands []struct {
			Command      string `yaml:"command"`
			URL          string `yaml:"url"`
			Description  string `yaml:"description"`
			UsageHint    string `yaml:"usage_hint"`
			ShouldEscape bool   `yaml:"should_escape"`
		} `yaml:"slash_commands"`
	} `yaml:"features"`
	OAuth struct {
		Scopes struct {
			Bot []string `yaml:"bot"`
		} `yaml:"scopes"`
	} `yaml:"oauth_config"`
	Settings struct {
		Interactivity struct {
			Enabled    bool   `yaml:"is_enabled"`
			RequestURL string `yaml:"request_url"`
		} `yaml:"interactivity"`
		Events struct {
			RequestURL string   `yaml:"request_url"`
			BotEvents  []string `yaml:"bot_events"`
		} `yaml:"event_subscriptions"`
		OrgDeploy     bool `yaml:"org_deploy_enabled"`
		SocketMode    bool `yaml:"socket_mode_enabled"`
		TokenRotation bool `yaml:"token_rotation_enabled"`
	} `yaml:"settings"`
}

func TestSlackManifest(t *testing.T) {
	t.Parallel()
	var m manifest
	readYAML(t, root+"/deploy/slack/manifest.yaml", &m)

	require.Len(t, m.Features.SlashCommands, 1)
	command := m.Features.SlashCommands[0]
	require.Equal(t, "/holdfast", command.Command)
	require.True(t, command.ShouldEscape)
	hosts := map[string]bool{}
	for path, raw := range map[string]string{
		"/slack/interactions": m.Settings.Interactivity.RequestURL,
		"/slack/commands":     command.URL,
		"/slack/events":       m.Settings.Events.RequestURL,
	} {
		u, err := url.Parse(raw)
		require.NoError(t, err)
		require.Equal(t, "https", u.Scheme, raw)
		require.Equal(t, path, u.Path)
		hosts[u.Host] = true
	}
	require.Len(t, hosts, 1, "all URLs are of one server")

	require.True(t, m.Settings.Interactivity.Enabled)
	require.False(t, m.Settings.SocketMode)
	// Everything the app may do; a wider scope needs a reason here.
	require.ElementsMatch(t, []string{"chat:write", "commands", "channels:history", "groups:history", "im:write"}, m.OAuth.Scopes.Bot)

	// Slack's own limits.
	require.LessOrEqual(t, len(m.Display.Name), 35)
	require.LessOrEqual(t, len(m.Display.Description), 140)
	require.GreaterOrEqual(t, len(m.Display.LongDescription), 175)
	require.LessOrEqual(t, len(m.Display.LongDescription), 4000)
	require.Regexp(t, `^#[0-9a-f]{6}$`, m.Display.BackgroundColor)
	require.NotEmpty(t, m.Features.BotUser.DisplayName)
}
