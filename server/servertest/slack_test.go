package servertest_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/server"
	"holdfast/server/servertest"
	"holdfast/server/slacksim"
)

func TestC31_OneClickRunsOnceHoweverOftenItIsPressed(t *testing.T) {
	t.Parallel()
	servertest.Each(t, func(t *testing.T, database string) {
		s := servertest.New(t, servertest.Options{Database: database, Gateways: 1})
		s.PostAlert(servertest.Alert{})
		card, trip := s.WaitButton("Trip breaker")
		type posted struct {
			res slacksim.ClickResult
			err error
		}
		post := func(user string) posted {
			res, err := s.Sim.Click(t.Context(), slacksim.ClickRequest{Channel: card.Channel, TS: card.TS, ActionID: trip.ActionID, UserID: user})
			return posted{res, err}
		}
		// Two posts at the same moment, each with a signature of its own.
		first, second := make(chan posted, 1), make(chan posted, 1)
		begun := time.Now()
		go func() { first <- post(servertest.Alice) }()
		go func() { second <- post(servertest.Alice) }()
		both := []posted{<-first, <-second}
		require.Less(t, time.Since(begun), 3*time.Second)
		s.WaitWhisper(servertest.Alice, "Accepted")
		s.WaitCard("the button off the card", func(m slacksim.Message) bool {
			_, there := m.Button("Trip breaker")
			return m.TS == card.TS && !there
		})
		// The old card still stands on somebody's screen: press what is no longer there.
		forged := func(user, actionTS string) slacksim.ClickResult {
			return replayAs(t, s, both[0].res, user, actionTS)
		}
		both = append(both, posted{res: forged(servertest.Alice, "1700000002.000100")}, posted{res: forged(servertest.Bob, "1700000003.000100")})
		for _, p := range both {
			require.NoError(t, p.err)
			require.Equal(t, http.StatusOK, p.res.Status)
			require.Less(t, p.res.Took, 3*time.Second)
		}
		s.WaitWhisper(servertest.Alice, "Already", "Alice Andersson")
		s.WaitWhisper(servertest.Bob, "Already", "Alice Andersson")
		s.WaitCardSays("in force since")
		requireRuns(t, s, 1, "active")
		accepted := 0
		for _, e := range s.Audit() {
			if e.Verb == "chat.click" && e.Decision == "allowed" {
				accepted++
			}
		}
		require.Equal(t, 1, accepted, "one committed click")
	})
}

// replayAs signs an earlier click again as another delivery: another user, another time of the click.
func replayAs(t *testing.T, s *servertest.System, earlier slacksim.ClickResult, user, actionTS string) slacksim.ClickResult {
	t.Helper()
	form, err := url.ParseQuery(string(earlier.Request.Body))
	require.NoError(t, err)
	var payload map[string]any
	require.NoError(t, json.Unmarshal([]byte(form.Get("payload")), &payload))
	payload["user"].(map[string]any)["id"] = user
	payload["actions"].([]any)[0].(map[string]any)["action_ts"] = actionTS
	raw, err := json.Marshal(payload)
	require.NoError(t, err)
	body := []byte(url.Values{"payload": {string(raw)}}.Encode())
	begun := time.Now()
	a := slackPost(t, s, "/slack/interactions", body, signed(s, time.Now(), body))
	return slacksim.ClickResult{Status: a.Status, Response: []byte(a.Body), Took: time.Since(begun)}
}

// signed are the headers Slack would send.
func signed(s *servertest.System, at time.Time, body []byte) http.Header {
	return http.Header{
		"Content-Type":           {"application/x-www-form-urlencoded"},
		slacksim.HeaderTimestamp: {stamp(at)},
		slacksim.HeaderSignature: {slacksim.Sign(s.Sim.Options().SigningSecret, at, body)},
	}
}

func slackPost(t *testing.T, s *servertest.System, path string, body []byte, h http.Header) servertest.Answer {
	t.Helper()
	if h == nil {
		h = http.Header{}
	}
	if h.Get("Content-Type") == "" {
		h.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	return s.Do(servertest.Request{Method: http.MethodPost, Path: path, Body: bytes.NewReader(body), Header: h})
}

var slackRoutes = []string{"/slack/interactions", "/slack/commands", "/slack/events"}

func TestC38_EverySlackRouteTrustsSignedRequestsAlone(t *testing.T) {
	t.Parallel()
	s := servertest.New(t, servertest.Options{})
	s.PostAlert(servertest.Alert{})
	_, trip := s.WaitButton("Trip breaker")
	body := []byte(url.Values{"payload": {`{"type":"block_actions","team":{"id":"T0HOLDFAST"},"user":{"id":"U0000ALICE","team_id":"T0HOLDFAST"},` +
		`"api_app_id":"A0HOLDFAST","container":{"message_ts":"1","channel_id":"C0INCIDENTS"},` +
		`"actions":[{"action_id":"` + trip.ActionID + `","value":"` + trip.Value + `","type":"button"}]}`}}.Encode())
	now := time.Now()
	right := slacksim.Sign(s.Sim.Options().SigningSecret, now, body)
	cases := map[string]http.Header{
		"unsigned":               {},
		"v0=00":                  {slacksim.HeaderTimestamp: {stamp(now)}, slacksim.HeaderSignature: {"v0=00"}},
		"signature without time": {slacksim.HeaderSignature: {right}},
		"without v0=":            {slacksim.HeaderTimestamp: {stamp(now)}, slacksim.HeaderSignature: {strings.TrimPrefix(right, "v0=")}},
		"another secret":         {slacksim.HeaderTimestamp: {stamp(now)}, slacksim.HeaderSignature: {slacksim.Sign("guess", now, body)}},
		"another body":           {slacksim.HeaderTimestamp: {stamp(now)}, slacksim.HeaderSignature: {slacksim.Sign(s.Sim.Options().SigningSecret, now, append([]byte("x"), body...))}},
		"empty secret":           {slacksim.HeaderTimestamp: {stamp(now)}, slacksim.HeaderSignature: {slacksim.Sign("", now, body)}},
	}
	for _, route := range slackRoutes {
		for name, h := range cases {
			a := slackPost(t, s, route, body, h.Clone())
			require.Equal(t, http.StatusUnauthorized, a.Status, "%s, %s: %s", route, name, a.Body)
		}
	}
	require.Empty(t, s.Runs())
	require.NotRegexp(t, `v0=[0-9a-f]{64}`, s.Logs.String(), "a signature in the log")
}

func TestC38_AServerWithoutASigningSecretDoesNotStart(t *testing.T) {
	t.Parallel()
	_, err := server.New(server.Options{
		Addr: "127.0.0.1:0", DatabaseURL: "holdfast.db",
		Config: server.Config{Environments: map[string]server.EnvironmentConfig{"prod": {}}, Slack: server.SlackConfig{Channel: "C0INCIDENTS"}},
		Slack:  &server.SlackSecrets{BotToken: "xoxb-1"},
	})
	require.ErrorContains(t, err, "SLACK_SIGNING_SECRET is empty")
}

func TestR15_TheTimestampMayBeFiveMinutesOff(t *testing.T) {
	t.Parallel()
	s := servertest.New(t, servertest.Options{})
	s.PostAlert(servertest.Alert{})
	card, trip := s.WaitButton("Trip breaker")
	click := func(shift time.Duration) slacksim.ClickResult {
		res, err := s.Sim.Click(t.Context(), slacksim.ClickRequest{
			Channel: card.Channel, TS: card.TS, ActionID: trip.ActionID, UserID: servertest.Alice, Tamper: slacksim.Tamper{TimestampShift: shift},
		})
		require.NoError(t, err)
		return res
	}
	require.Equal(t, http.StatusUnauthorized, click(-302*time.Second).Status)
	require.Equal(t, http.StatusUnauthorized, click(302*time.Second).Status)
	require.Empty(t, s.Runs(), "no side effect")
	require.Equal(t, http.StatusOK, click(-298*time.Second).Status)
	s.Eventually("the run", func() bool { return len(s.Runs()) == 1 })
}

func TestR16_TheSameSignedRequestTwiceHasOneEffect(t *testing.T) {
	t.Parallel()
	s := servertest.New(t, servertest.Options{Gateways: 1})
	s.PostAlert(servertest.Alert{})
	card, ack := s.WaitButton("Acknowledge")
	first := s.Click(card, ack, servertest.Alice)
	again, err := s.Sim.Replay(t.Context(), first)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, again.Status)
	require.Contains(t, string(again.Response), "duplicate")
	s.WaitCardSays("acknowledged by Alice Andersson")
	effects := 0
	for _, e := range s.Audit() {
		if e.Verb == "chat.click" {
			effects++
		}
	}
	require.Equal(t, 1, effects)
}

func TestR18_APayloadInTheAddressIsNotRead(t *testing.T) {
	t.Parallel()
	s := servertest.New(t, servertest.Options{})
	s.PostAlert(servertest.Alert{})
	card, trip := s.WaitButton("Trip breaker")
	real, err := s.Sim.Click(t.Context(), slacksim.ClickRequest{
		Channel: card.Channel, TS: card.TS, ActionID: trip.ActionID, UserID: servertest.Mallory,
		// Caught on its way: what the server gets is broken, what is kept is the whole body.
		Tamper: slacksim.Tamper{Unsigned: true},
	})
	require.NoError(t, err)
	require.Equal(t, http.StatusUnauthorized, real.Status)
	form, err := url.ParseQuery(string(real.Request.Body))
	require.NoError(t, err)
	body := []byte("nothing=here")
	query := url.Values{"payload": {strings.ReplaceAll(form.Get("payload"), servertest.Mallory, servertest.Alice)}}
	a := slackPost(t, s, "/slack/interactions?"+query.Encode(), body, signed(s, time.Now(), body))
	require.Equal(t, http.StatusBadRequest, a.Status, a.Body)
	require.Empty(t, s.Runs())
	require.Empty(t, auditRows(s, "Alice Andersson", "allowed"))
}

func TestR19_OtherWorkspacesAppsAndGuestsAreRefused(t *testing.T) {
	t.Parallel()
	s := servertest.New(t, servertest.Options{Gateways: 1})
	s.PostAlert(servertest.Alert{})
	card, trip := s.WaitButton("Trip breaker")
	cases := []struct {
		name, user string
		tamper     slacksim.Tamper
		says       string
	}{
		{"another workspace", servertest.Alice, slacksim.Tamper{TeamID: "T0ELSEWHERE", UserTeamID: "T0ELSEWHERE"}, "workspace is not connected"},
		{"another app", servertest.Bob, slacksim.Tamper{AppID: "A0ELSEWHERE"}, "another Slack app"},
		{"a guest of another company", servertest.Eve, slacksim.Tamper{}, "guests of shared channels cannot act"},
	}
	for _, c := range cases {
		res, err := s.Sim.Click(t.Context(), slacksim.ClickRequest{
			Channel: card.Channel, TS: card.TS, ActionID: trip.ActionID, UserID: c.user, Tamper: c.tamper,
		})
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, res.Status, c.name)
		s.WaitWhisper(c.user, "Refused", c.says)
	}
	require.Len(t, auditRows(s, "unknown Slack user", "denied"), len(cases))
	require.Empty(t, s.Runs())
}

func TestASlackUserNobodyKnowsGetsAOneTimeLinkThatBindsThem(t *testing.T) {
	t.Parallel()
	s := servertest.New(t, servertest.Options{Server: func(o *server.Options) {
		for i := range o.Config.People {
			if o.Config.People[i].Handle == "carol" {
				o.Config.People[i].SlackTeam, o.Config.People[i].SlackUser = "", ""
			}
		}
	}})
	s.PostAlert(servertest.Alert{})
	s.Press("Acknowledge", servertest.Daniel)
	told := s.WaitWhisper(servertest.Daniel, "http")
	code := regexp.MustCompile(`code=([A-Za-z0-9]+)`).FindStringSubmatch(told.Text + string(told.RawBlocks))
	require.NotNil(t, code, told.Text)
	link := servertest.Request{Method: http.MethodPost, Path: "/api/v1/slack-link", Cookie: s.LoginCookie("carol"), Body: map[string]string{"code": code[1]}}
	a := s.Do(link)
	require.Equal(t, http.StatusNoContent, a.Status, a.Body)
	require.Equal(t, http.StatusGone, s.Do(link).Status, "the link works once")
	s.Press("Acknowledge", servertest.Daniel)
	s.WaitCardSays("acknowledged by Carol Chen")
}
