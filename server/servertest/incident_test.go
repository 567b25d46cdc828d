package servertest_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/server/audit"
	"holdfast/server/servertest"
	"holdfast/server/slacksim"
)

func TestOneIncidentEndToEnd(t *testing.T) {
	t.Parallel()
	servertest.Each(t, func(t *testing.T, database string) {
		s := servertest.New(t, servertest.Options{Database: database, Gateways: 2})
		requireNormal(t, s)

		begun := time.Now()
		receipt := s.PostAlert(servertest.Alert{})
		require.Equal(t, 1, receipt.New)
		card, trip := s.WaitButton("Trip breaker")
		t.Logf("%s: alert → card %d ms", database, time.Since(begun).Milliseconds())
		require.Contains(t, card.Visible(), "LLMErrorRateHigh")
		requireButtons(t, card, "Acknowledge", "Trip breaker", "More…")

		clicked := time.Now()
		res := s.Click(card, trip, servertest.Alice)
		t.Logf("%s: click answered in %d ms", database, res.Took.Milliseconds())
		s.WaitWhisper(servertest.Alice, "Accepted")
		requireSeen(t, s, "Alice Andersson asked for")
		s.Eventually("both gateways hold the breaker open", func() bool { return breakers(s, "forced_open") == 2 })
		t.Logf("%s: click → both gateways report it %d ms", database, time.Since(clicked).Milliseconds())
		for i := range 2 {
			a := s.Chat(i)
			require.Equal(t, http.StatusOK, a.Status, a.Body)
			require.Equal(t, "static", a.Header.Get("X-Degraded"))
			require.Contains(t, a.Body, "try again later")
		}
		card = s.WaitCardSays("in force since", "enforced", "verified: 2 gateways report the breaker of llm as forced_open")
		_, still := card.Button("Trip breaker")
		require.False(t, still, "what runs is not offered again")

		s.Press("Revert", servertest.Alice)
		s.WaitCardSays("ended", "reverted", "by Alice Andersson")
		s.Eventually("both breakers closed", func() bool { return breakers(s, "closed") == 2 })
		requireNormal(t, s)

		resolved := s.PostAlert(servertest.Alert{Resolved: true})
		require.Equal(t, 1, resolved.Resolved)
		s.WaitCardSays("✅", "resolved at")
		requireRuns(t, s, 1, "ended")
		requireChainWhole(t, s)
	})
}

func TestAnUnrenewedLeaseEndsByItself(t *testing.T) {
	t.Parallel()
	servertest.Each(t, func(t *testing.T, database string) {
		s := servertest.New(t, servertest.Options{Database: database, Gateways: 2})
		receipt := s.PostAlert(servertest.Alert{})
		a := s.Do(servertest.Request{
			Method: http.MethodPost, Path: "/api/v1/actions/trip_breaker/run", Token: s.APIToken("alice"),
			Header: http.Header{"Idempotency-Key": {"lease-runs-out"}},
			Body: map[string]any{
				"params": map[string]any{"dependency": "llm"}, "ttl": "6s", "reason": "errors at 23 %", "incident": receipt.Incident,
			},
		})
		require.Equal(t, http.StatusAccepted, a.Status, a.Body)
		s.Eventually("both gateways hold the breaker open", func() bool { return breakers(s, "forced_open") == 2 })
		require.Equal(t, "static", s.Chat(0).Header.Get("X-Degraded"))
		s.WaitCardSays("ended", "expired")
		s.Eventually("both breakers closed", func() bool { return breakers(s, "closed") == 2 })
		requireNormal(t, s)
		requireSeen(t, s, "unless it is renewed")
		requireRuns(t, s, 1, "ended")
		require.Equal(t, "expired", s.Runs()[0].EndReason)
		requireChainWhole(t, s)
	})
}

func TestAClickWithoutTheRoleIsRecordedAndDoesNothing(t *testing.T) {
	t.Parallel()
	servertest.Each(t, func(t *testing.T, database string) {
		s := servertest.New(t, servertest.Options{Database: database, Gateways: 1})
		s.PostAlert(servertest.Alert{})
		s.Press("Trip breaker", servertest.Mallory)
		s.WaitWhisper(servertest.Mallory, "Refused", "Nothing was done")
		denied := auditRows(s, "Mallory Moss", "denied")
		require.Len(t, denied, 1)
		require.Equal(t, "slack", denied[0].Channel)
		require.Empty(t, s.Runs())
		requireNormal(t, s)
		// The button stands for those who may.
		s.Press("Trip breaker", servertest.Alice)
		s.WaitCardSays("in force since")
		requireChainWhole(t, s)
	})
}

func TestR25_AFlappingAlertIsOneIncident(t *testing.T) {
	t.Parallel()
	servertest.Each(t, func(t *testing.T, database string) {
		s := servertest.New(t, servertest.Options{Database: database})
		at := time.Now().UTC().Truncate(time.Hour)
		first := s.PostAlert(servertest.Alert{StartsAt: at})
		require.Equal(t, 1, first.New)
		s.WaitCardSays("1 firing, 0 resolved")
		require.Equal(t, 1, s.PostAlert(servertest.Alert{StartsAt: at, Resolved: true}).Resolved)
		s.WaitCardSays("✅", "resolved at")
		require.Equal(t, 1, s.PostAlert(servertest.Alert{StartsAt: at}).Stale, "a firing of an episode that is over arrived late")
		require.Equal(t, 1, s.PostAlert(servertest.Alert{StartsAt: at, Resolved: true}).Duplicate)

		var page struct{ Items []struct{ ID, Status string } }
		s.Get("/api/v1/incidents", &page)
		require.Len(t, page.Items, 1)
		require.Equal(t, first.Incident, page.Items[0].ID)
		require.Equal(t, "resolved", page.Items[0].Status)
		opened, closed := 0, 0
		for _, e := range timeline(s, first.Incident) {
			switch e.Kind {
			case "opened", "reopened":
				opened++
			case "resolved":
				closed++
			}
		}
		require.Equal(t, []int{1, 1}, []int{opened, closed}, "one open and one close in the timeline")
		var cards int
		for _, m := range s.Sim.Messages(servertest.Channel) {
			if m.ThreadTS == "" || m.ThreadTS == m.TS {
				cards++
			}
		}
		require.Equal(t, 1, cards, "one card")
	})
}

type timelineEntry struct{ Kind, Actor, Text string }

func timeline(s *servertest.System, incident string) []timelineEntry {
	var page struct{ Items []timelineEntry }
	s.Get("/api/v1/incidents/"+incident+"/timeline?limit=200", &page)
	return page.Items
}

// breakers counts the gateways that report the breaker of llm in a state.
func breakers(s *servertest.System, state string) int {
	n := 0
	for _, g := range s.ListGateways() {
		if g.Breakers["llm"].State == state {
			n++
		}
	}
	return n
}

// requireNormal asks every gateway and wants the engine's own answer.
func requireNormal(t *testing.T, s *servertest.System) {
	t.Helper()
	for i := range s.Gateways {
		a := s.Chat(i)
		require.Equal(t, http.StatusOK, a.Status, a.Body)
		require.Empty(t, a.Header.Get("X-Degraded"))
		require.NotContains(t, a.Body, "try again later")
	}
}

func requireButtons(t *testing.T, m slacksim.Message, labels ...string) {
	t.Helper()
	for _, l := range labels {
		_, ok := m.Button(l)
		require.True(t, ok, "no button %q on:\n%s", l, m.Visible())
	}
}

// requireSeen wants a message, of a thread or not, that says this.
func requireSeen(t *testing.T, s *servertest.System, words string) {
	t.Helper()
	s.Eventually("a message that says "+words, func() bool {
		for _, m := range s.Sim.Messages(servertest.Channel) {
			if containsFold(m.Visible(), words) {
				return true
			}
		}
		return false
	})
}

func requireRuns(t *testing.T, s *servertest.System, n int, status string) {
	t.Helper()
	runs := s.Runs()
	require.Len(t, runs, n)
	for _, r := range runs {
		require.Equal(t, status, r.Status)
	}
}

func auditRows(s *servertest.System, actor, decision string) []servertest.AuditEntry {
	var found []servertest.AuditEntry
	for _, e := range s.Audit() {
		if e.Actor == actor && e.Decision == decision {
			found = append(found, e)
		}
	}
	return found
}

// requireChainWhole waits until every row is linked and verifies the chain
// against its head.
func requireChainWhole(t *testing.T, s *servertest.System) {
	t.Helper()
	s.Eventually("every audit row linked", func() bool {
		var page struct{ Items []struct{ Seq int64 } }
		s.Get("/api/v1/audit?limit=5", &page)
		return len(page.Items) > 0 && page.Items[0].Seq > 0
	})
	head, err := s.Operator().AuditHead(t.Context())
	require.NoError(t, err)
	end, err := audit.Verify(s.Operator().AuditChain(t.Context()), &head)
	require.NoError(t, err)
	require.Positive(t, end.Seq)
}
