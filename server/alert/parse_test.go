package alert

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"holdfast/server/incident"
)

const oneAlert = `{"status":"firing","labels":{"alertname":"A","severity":"page"},"startsAt":"2026-02-03T10:00:00Z"}`

func webhook(alerts string) string {
	return `{"version":"4","groupKey":"{}:{alertname=\"A\"}","alerts":[` + alerts + `]}`
}

func TestParseAlertmanager(t *testing.T) {
	t.Parallel()
	body, err := os.ReadFile("testdata/c19.json")
	require.NoError(t, err)
	n, err := ParseAlertmanager(body, "alertmanager")
	require.NoError(t, err)
	require.Equal(t, "alertmanager", n.Source)
	require.Equal(t, `{}:{alertname="ServerStop", env="prod"}`, n.GroupKey)
	require.Equal(t, "ops", n.Receiver)
	require.Equal(t, "http://alertmanager.example:9093", n.ExternalURL)
	require.Equal(t, map[string]string{"alertname": "ServerStop", "env": "prod"}, n.GroupLabels)
	require.Len(t, n.Alerts, 2)
	require.Equal(t, StatusFiring, n.Alerts[0].Status)
	require.True(t, n.Alerts[0].EndsAt.IsZero(), "the zero endsAt means no end")
	require.Equal(t, time.Date(2017, 10, 21, 17, 50, 17, 160954000, time.UTC), n.Alerts[0].StartsAt)
	require.Equal(t, body, n.Raw)
}

func TestC19_ShortLifeIsNeitherZeroNorNegative(t *testing.T) {
	t.Parallel()
	body, err := os.ReadFile("testdata/c19.json")
	require.NoError(t, err)
	n, err := ParseAlertmanager(body, "alertmanager")
	require.NoError(t, err)
	short := n.Alerts[1]
	require.Equal(t, StatusResolved, short.Status)
	require.Equal(t, "resolved", short.Labels["status"])
	require.Equal(t, time.Microsecond, short.EndsAt.Sub(short.StartsAt), "104 ns are shown as the shortest life that can be stored")
}

func TestC19_LabelStatusDoesNotOverride(t *testing.T) {
	t.Parallel()
	n, err := ParseAlertmanager([]byte(webhook(`{"status":"firing","labels":{"status":"resolved"},"startsAt":"2026-02-03T10:00:00Z"}`)), "s")
	require.NoError(t, err)
	require.Equal(t, StatusFiring, n.Alerts[0].Status)
}

func TestC25_IdentityComesFromTheLabels(t *testing.T) {
	t.Parallel()
	item := func(pod, value string) string {
		return fmt.Sprintf(`{"status":"firing","labels":{"alertname":"A","pod":%q},"annotations":{"summary":"same","value":%q},"startsAt":"2026-02-03T10:00:00Z"}`, pod, value)
	}
	n, err := ParseAlertmanager([]byte(webhook(item("a", "5")+","+item("b", "5")+","+item("a", "6"))), "s")
	require.NoError(t, err)
	require.NotEqual(t, n.Alerts[0].Fingerprint, n.Alerts[1].Fingerprint)
	require.Equal(t, n.Alerts[0].Fingerprint, n.Alerts[2].Fingerprint)
}

func TestLabelFingerprintIsAlertmanagers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		labels := rapid.MapOf(rapid.String(), rapid.String()).Draw(t, "labels")
		theirs := model.LabelSet{}
		for k, v := range labels {
			theirs[model.LabelName(k)] = model.LabelValue(v)
		}
		if got, want := labelFingerprint(labels), theirs.Fingerprint().String(); got != want {
			t.Fatalf("got %s, Alertmanager computes %s", got, want)
		}
	})
}

func TestParseNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, body, want string }{
		{"empty", " ", "the body is empty"},
		{"not JSON", `{"version":`, "the body is not JSON at byte"},
		{"trailing", webhook(oneAlert) + "x", "is not JSON at byte"},
		{"an array", `[]`, "the body is a JSON array, want an object"},
		{"null", `null`, "the body is null"},
		{"deep", strings.Repeat("[", 100_000), "nested deeper than 32 levels"},
		{"no version", `{"alerts":[]}`, "version is missing"},
		{"version 3", `{"version":"3"}`, `version is "3", only webhook version "4"`},
		{"numeric version", `{"version":4}`, `version must be the string "4"`},
		{"a custom payload", `{"version":"my own","text":{}}`, `version is "my own"`},
		{"no group", `{"version":"4","alerts":[` + oneAlert + `]}`, "groupKey is missing"},
		{"group is a number", `{"version":"4","groupKey":5}`, "groupKey is a JSON number, want a string"},
		{"negative truncation", `{"version":"4","groupKey":"g","truncatedAlerts":-1}`, "truncatedAlerts is -1"},
		{"fractional truncation", `{"version":"4","groupKey":"g","truncatedAlerts":1.5}`, "truncatedAlerts is a JSON number 1.5"},
		{"no alerts", `{"version":"4","groupKey":"g"}`, "alerts holds no alert"},
		{"alerts is an object", `{"version":"4","groupKey":"g","alerts":{}}`, "alerts is a JSON object, want an array"},
		{"an alert is null", webhook(`null`), "alerts[0] is null"},
		{"an alert is text", webhook(oneAlert + `,"x"`), "alerts[1] is a JSON string, want an object"},
		{"unknown status", webhook(oneAlert + "," + strings.Replace(oneAlert, "firing", "FIRING", 1)), `alerts[1].status is "FIRING"`},
		{"no status", webhook(strings.Replace(oneAlert, `"status":"firing",`, "", 1)), `alerts[0].status is ""`},
		{"no labels", webhook(`{"status":"firing","startsAt":"2026-02-03T10:00:00Z"}`), "alerts[0].labels is empty"},
		{"label is a number", webhook(strings.Replace(oneAlert, `"page"`, `5`, 1)), "alerts[0].labels is a JSON number, want a string"},
		{"label without a name", webhook(strings.Replace(oneAlert, `"severity"`, `""`, 1)), "alerts[0].labels has a name of 0 bytes"},
		{"no start", webhook(strings.Replace(oneAlert, `"startsAt"`, `"begins"`, 1)), "alerts[0].startsAt is missing"},
		{"zero start", webhook(strings.Replace(oneAlert, "2026-02-03T10:00:00Z", "0001-01-01T00:00:00Z", 1)), "alerts[0].startsAt is zero"},
		{"start without a zone", webhook(strings.Replace(oneAlert, "10:00:00Z", "10:00:00", 1)), `alerts[0].startsAt is "2026-02-03T10:00:00", want RFC 3339`},
		{"start far off", webhook(strings.Replace(oneAlert, "2026", "9026", 1)), "alerts[0].startsAt is in the year 9026"},
		{"broken end", webhook(strings.Replace(oneAlert, `"startsAt"`, `"endsAt":"soon","startsAt"`, 1)), `alerts[0].endsAt is "soon"`},
		{"short fingerprint", webhook(strings.Replace(oneAlert, `"startsAt"`, `"fingerprint":"abc","startsAt"`, 1)), `alerts[0].fingerprint is "abc", want 16`},
		{"fingerprint of other letters", webhook(strings.Replace(oneAlert, `"startsAt"`, `"fingerprint":"zzzzzzzzzzzzzzzz","startsAt"`, 1)), "want 16 hexadecimal digits"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			n, err := ParseAlertmanager([]byte(tt.body), "s")
			require.ErrorIs(t, err, ErrInvalid)
			require.ErrorContains(t, err, tt.want)
			require.Empty(t, n.Alerts)
		})
	}
}

func TestParseToleratesAndBounds(t *testing.T) {
	t.Parallel()
	labels := map[string]string{"alertname": "A", "nul": "a\x00b", "long": strings.Repeat("é", 4000)}
	encoded, err := json.Marshal(labels)
	require.NoError(t, err)
	body := fmt.Sprintf(`{"version":"4","groupKey":%q,"notification_reason":{"x":[1]},"status":"odd","externalURL":"javascript:alert(1)","alerts":[
		{"status":"firing","labels":%s,"annotations":{"big":%q},"startsAt":"2026-02-03T10:00:00+02:00","endsAt":"2026-02-03T11:00:00Z","fingerprint":"00AA00AA00AA00AA","generatorURL":"file:///etc/passwd","extra":null}]}`,
		strings.Repeat("k", 5000), encoded, strings.Repeat("x", 20_000))
	n, err := ParseAlertmanager([]byte(body), "s")
	require.NoError(t, err)
	require.LessOrEqual(t, len(n.GroupKey), maxGroupKey)
	require.Empty(t, n.ExternalURL, "not an address people may follow")
	a := n.Alerts[0]
	require.Equal(t, "00aa00aa00aa00aa", a.Fingerprint)
	require.True(t, a.EndsAt.IsZero(), "what fires has no end")
	require.Equal(t, time.Date(2026, 2, 3, 8, 0, 0, 0, time.UTC), a.StartsAt)
	require.Equal(t, "a\uFFFDb", a.Labels["nul"], "PostgreSQL stores no NUL")
	require.LessOrEqual(t, len(a.Labels["long"]), maxLabelValue+len("…"))
	require.True(t, strings.HasSuffix(a.Labels["long"], "é…"))
	require.LessOrEqual(t, len(a.Annotations["big"]), maxAnnotation+len("…"))
	require.Empty(t, a.GeneratorURL)
	require.NotEqual(t, shortGroupKey(strings.Repeat("k", 5000)), shortGroupKey(strings.Repeat("k", 5001)))
}

func TestSeverity(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]incident.Severity{
		"page": incident.SeverityCritical, "Critical": incident.SeverityCritical, "error": incident.SeverityError,
		"warning": incident.SeverityWarning, "info": incident.SeverityInfo, "none": incident.SeverityInfo,
	} {
		got, note := severityOf(map[string]string{"severity": given})
		require.Equal(t, want, got, given)
		require.Empty(t, note)
	}
	got, note := severityOf(map[string]string{"severity": "purple"})
	require.Equal(t, incident.SeverityWarning, got)
	require.Contains(t, note, `"purple" is not known`)
	_, note = severityOf(nil)
	require.Contains(t, note, "No severity label")
}

func FuzzParseAlertmanager(f *testing.F) {
	body, err := os.ReadFile("testdata/c19.json")
	require.NoError(f, err)
	f.Add(body)
	f.Add([]byte(webhook(oneAlert)))
	f.Add([]byte(webhook(strings.Replace(oneAlert, `"A"`, `"\u0000\ud800"`, 1))))
	f.Add([]byte(`{"version":"4","groupKey":"g","truncatedAlerts":1e99,"alerts":[{"labels":{"a":"b"},"status":"resolved","startsAt":"2026-02-03T10:00:00Z","endsAt":"0001-01-01T00:00:00Z"}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		n, err := ParseAlertmanager(body, "s")
		if err != nil {
			require.ErrorIs(t, err, ErrInvalid)
			return
		}
		require.NotEmpty(t, n.GroupKey)
		for _, a := range n.Alerts {
			require.Len(t, a.Fingerprint, fingerprintLen)
			require.NotEmpty(t, a.Labels)
			require.False(t, a.StartsAt.IsZero())
			require.True(t, a.EndsAt.IsZero() || a.EndsAt.After(a.StartsAt))
			for k, v := range a.Labels {
				require.NotContains(t, k+v, "\x00")
			}
		}
	})
}
