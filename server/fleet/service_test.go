package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"holdfast/actions/actionstest"
	"holdfast/gpuguard/policy"
	"holdfast/server/audit"
	"holdfast/server/identity"
	"holdfast/strict"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// clockwork is a clock moved by hand.
type clockwork struct{ t time.Time }

func (c *clockwork) now() time.Time { return c.t }

func fixture(t testing.TB) (*Service, *memory, *clockwork) {
	t.Helper()
	clock := &clockwork{start}
	m := newMemory(clock.now)
	s, err := New(Options{Store: m})
	require.NoError(t, err)
	_, err = s.Init(context.Background(), actionstest.Document())
	require.NoError(t, err)
	return s, m, clock
}

func ack(name string, lineage string, revision int64) policy.Ack {
	return policy.Ack{Gateway: name, Instance: "i1", Version: "1", Lineage: lineage, Revision: revision, Result: policy.AckApplied, ApplySeconds: .002}
}

func TestInitStartsOneLineage(t *testing.T) {
	t.Parallel()
	s, m, _ := fixture(t)
	head, err := s.Head(context.Background())
	require.NoError(t, err)
	require.Equal(t, int64(1), head.Revision)
	require.False(t, head.LineageConfirmed, "a wiped database must not take over gateways by itself")
	require.NotEmpty(t, head.Lineage)
	other := actionstest.Document()
	other.Limits.Global = &policy.Limit{RequestsPerSecond: 1}
	again, err := s.Init(context.Background(), other)
	require.NoError(t, err)
	require.Equal(t, head.Lineage, again.Lineage, "a database that has a policy keeps it")
	require.Equal(t, int64(1), again.Revision)
	require.Len(t, m.read().audit, 1)

	_, err = s.Init(context.Background(), policy.Document{})
	require.ErrorIs(t, err, ErrInvalid)
}

func TestFreshLineageWaitsForAnAdminWhenGatewaysHoldAnother(t *testing.T) {
	t.Parallel()
	clock := &clockwork{start}
	m := newMemory(clock.now)
	m.state.gateways["gw-1"] = Gateway{Name: "gw-1", Lineage: "old", LastHeardAt: start}
	s, err := New(Options{Store: m})
	require.NoError(t, err)
	head, err := s.Init(context.Background(), actionstest.Document())
	require.NoError(t, err)
	require.False(t, head.LineageConfirmed)
	require.ErrorIs(t, s.ConfirmLineage(as(identity.RoleApprover)), identity.ErrForbidden)
	require.NoError(t, s.ConfirmLineage(as(identity.RoleAdmin)))
	require.NoError(t, s.ConfirmLineage(as(identity.RoleAdmin)), "confirming again changes nothing")
	head, err = s.Head(context.Background())
	require.NoError(t, err)
	require.True(t, head.LineageConfirmed)
	var decisions []audit.Decision
	for _, e := range m.read().audit {
		if e.Verb == "policy.confirm_lineage" {
			decisions = append(decisions, e.Decision)
		}
	}
	require.Equal(t, []audit.Decision{audit.Denied, audit.Allowed}, decisions)
}

func TestRestoredDatabaseBeginsALineageWhenAnAdminConfirms(t *testing.T) {
	t.Parallel()
	s, m, _ := fixture(t)
	before := *m.read().head
	require.NoError(t, s.Ack(gatewayToken(context.Background()), ack("gw-1", before.Lineage, 40)))
	require.Equal(t, before.Lineage, m.read().head.Lineage, "no gateway can start a lineage by what it says")
	require.NoError(t, s.ConfirmLineage(as(identity.RoleAdmin)))
	after := *m.read().head
	require.NotEqual(t, before.Lineage, after.Lineage)
	require.True(t, after.LineageConfirmed)
	require.Equal(t, before.Base, after.Base)
	require.NoError(t, s.ConfirmLineage(as(identity.RoleAdmin)))
	require.Equal(t, after.Lineage, m.read().head.Lineage, "once")
}

func document(t testing.TB, change func(*policy.Document)) json.RawMessage {
	t.Helper()
	doc := actionstest.Document()
	if change != nil {
		change(&doc)
	}
	raw, err := policy.Encode(doc)
	require.NoError(t, err)
	return raw
}

func TestPutBase(t *testing.T) {
	t.Parallel()
	limit := func(d *policy.Document) { d.Limits.Global = &policy.Limit{RequestsPerSecond: 500} }
	withoutLLM := func(d *policy.Document) {
		delete(d.Dependencies, "llm")
		delete(d.Pools, "llm")
		delete(d.Routes, "chat")
	}
	lease := policy.Override{ID: "r1", Path: "dependencies.llm.breaker.forced", Value: json.RawMessage(`"open"`), Owner: "Alice", Reason: "r", Expires: start.Add(time.Hour)}
	tests := []struct {
		name     string
		role     identity.Role
		doc      json.RawMessage
		revision int64
		want     error
		text     string
		after    int64
	}{
		{"edit", identity.RoleAdmin, document(t, limit), 1, nil, "", 2},
		{"without a revision to compare", identity.RoleAdmin, document(t, limit), 0, nil, "", 2},
		{"the same document", identity.RoleAdmin, document(t, nil), 1, nil, "", 1},
		{"read too long ago", identity.RoleAdmin, document(t, limit), 7, ErrStale, "you read revision 7 and the newest is 1", 1},
		{"not an admin", identity.RoleApprover, document(t, limit), 1, identity.ErrForbidden, "", 1},
		{"unknown field", identity.RoleAdmin, json.RawMessage(`{"version":1,"limts":{}}`), 1, ErrInvalid, "limts", 1},
		{"bad value", identity.RoleAdmin, document(t, func(d *policy.Document) { d.Limits.Global = &policy.Limit{RequestsPerSecond: -1} }), 1, ErrInvalid, "limits.global.requests_per_second", 1},
		{"a live lease no longer fits", identity.RoleAdmin, document(t, withoutLLM), 1, ErrInvalid, "dependencies.llm.breaker.forced", 1},
		{"garbage", identity.RoleAdmin, json.RawMessage(`{`), 1, ErrInvalid, "", 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s, m, _ := fixture(t)
			m.state.head.Overrides = []policy.Override{lease}
			head, err := s.PutBase(as(tt.role), tt.doc, tt.revision)
			require.ErrorIs(t, err, tt.want)
			if tt.want == nil {
				require.Equal(t, tt.after, head.Revision)
				require.Len(t, head.Overrides, 1, "leases survive base edits")
			} else {
				require.ErrorContains(t, err, tt.text)
			}
			if errors.Is(err, ErrInvalid) {
				var fields strict.Errors
				require.ErrorAs(t, err, &fields)
			}
			require.Equal(t, tt.after, m.read().head.Revision, "no partial write")
			list, err := s.Revisions(context.Background(), 0, 10)
			require.NoError(t, err)
			require.Len(t, list, int(tt.after))
		})
	}
}

func TestEffectiveCarriesRemainingTimeByDatabaseClock(t *testing.T) {
	t.Parallel()
	s, m, clock := fixture(t)
	m.state.head.Overrides = []policy.Override{{ID: "r1", Path: "limits.global", Value: json.RawMessage(`{"requests_per_second":5}`), Owner: "a", Reason: "r", Expires: start.Add(time.Minute)}}
	clock.t = start.Add(20 * time.Second)
	e, err := s.Effective(context.Background())
	require.NoError(t, err)
	require.InDelta(t, 40, e.Overrides[0].RemainingSeconds, 1e-9)
	require.InDelta(t, 5, e.Document.Limits.Global.RequestsPerSecond, 0)
	clock.t = start.Add(time.Minute)
	e, err = s.Effective(context.Background())
	require.NoError(t, err)
	require.Empty(t, e.Overrides, "an ended lease is not sent although its row is still there")
	require.Nil(t, e.Document.Limits.Global)
}

func TestAckIsForGatewayTokens(t *testing.T) {
	t.Parallel()
	s, m, _ := fixture(t)
	bg := context.Background()
	require.ErrorIs(t, s.Ack(bg, ack("gw-1", "", 0)), identity.ErrUnauthenticated)
	require.ErrorIs(t, s.Ack(as(identity.RoleAdmin), ack("gw-1", "", 0)), identity.ErrForbidden)
	require.ErrorIs(t, s.Ack(gatewayToken(bg, "gateway:gw-2"), ack("gw-1", "", 0)), identity.ErrForbidden)
	require.Empty(t, m.read().gateways)
	require.NoError(t, s.Ack(gatewayToken(bg, "gateway:gw-1"), ack("gw-1", "", 0)))
	require.NoError(t, s.Ack(gatewayToken(bg), ack("gw-2", "", 0)))
	require.Len(t, m.read().gateways, 2)
	denied := 0
	for _, e := range m.read().audit {
		if e.Decision == audit.Denied {
			denied++
		}
	}
	require.Equal(t, 3, denied)
	_, err := s.Subscribe(gatewayToken(bg, "gateway:gw-2"), "gw-1")
	require.ErrorIs(t, err, identity.ErrForbidden)
}

func TestMalformedAckNamesTheField(t *testing.T) {
	t.Parallel()
	s, m, _ := fixture(t)
	for field, change := range map[string]func(*policy.Ack){
		"gateway":       func(a *policy.Ack) { a.Gateway = "GW 1" },
		"instance":      func(a *policy.Ack) { a.Instance = "" },
		"version":       func(a *policy.Ack) { a.Version = strings.Repeat("v", 200) },
		"error":         func(a *policy.Ack) { a.Error = "\xff" },
		"result":        func(a *policy.Ack) { a.Result = "ok" },
		"revision":      func(a *policy.Ack) { a.Revision = -1 },
		"apply_seconds": func(a *policy.Ack) { a.ApplySeconds = -1 },
		"state":         func(a *policy.Ack) { a.State.ActiveOverrides = make([]string, 5000) },
	} {
		a := ack("gw-1", "", 0)
		change(&a)
		err := s.Ack(gatewayToken(context.Background()), a)
		require.ErrorIs(t, err, ErrInvalid, field)
		require.ErrorContains(t, err, field+":")
	}
	require.Empty(t, m.read().gateways)
}

func TestStandingOfGateways(t *testing.T) {
	t.Parallel()
	head := Head{Lineage: "l", Revision: 5}
	for name, tt := range map[string]struct {
		g    Gateway
		want MemberState
	}{
		"holds the newest":             {Gateway{Lineage: "l", Revision: 5, LastHeardAt: start}, MemberLive},
		"older revision":               {Gateway{Lineage: "l", Revision: 4, LastHeardAt: start}, MemberBehind},
		"ahead of a restored database": {Gateway{Lineage: "l", Revision: 9, LastHeardAt: start}, MemberBehind},
		"another lineage":              {Gateway{Lineage: "x", Revision: 9, LastHeardAt: start}, MemberBehind},
		"refused the newest":           {Gateway{Lineage: "l", Revision: 4, RejectedRevision: 5, LastHeardAt: start}, MemberRejected},
		"refused one, took a next":     {Gateway{Lineage: "l", Revision: 5, RejectedRevision: 4, LastHeardAt: start}, MemberLive},
		"silent for 15 s":              {Gateway{Lineage: "l", Revision: 5, LastHeardAt: start.Add(-15 * time.Second)}, MemberStale},
		"silent for less":              {Gateway{Lineage: "l", Revision: 5, LastHeardAt: start.Add(-14 * time.Second)}, MemberLive},
	} {
		require.Equal(t, tt.want, standing(tt.g, head, start), name)
	}
}

func TestAckRecordsWhenARevisionWasFirstAcknowledged(t *testing.T) {
	t.Parallel()
	s, m, clock := fixture(t)
	lineage := m.read().head.Lineage
	ctx := gatewayToken(context.Background())
	require.NoError(t, s.Ack(ctx, ack("gw-1", lineage, 1)))
	clock.t = start.Add(5 * time.Second)
	require.NoError(t, s.Ack(ctx, ack("gw-1", lineage, 1)))
	require.Equal(t, start, m.read().gateways["gw-1"].AckedAt)
	require.Equal(t, clock.t, m.read().gateways["gw-1"].LastHeardAt)
	clock.t = start.Add(6 * time.Second)
	require.NoError(t, s.Ack(ctx, ack("gw-1", lineage, 2)))
	require.Equal(t, clock.t, m.read().gateways["gw-1"].AckedAt)
	clock.t = start.Add(7 * time.Second)
	require.NoError(t, s.Ack(ctx, ack("gw-1", lineage, 1)), "a message that was overtaken")
	require.Equal(t, int64(2), m.read().gateways["gw-1"].Revision)
	require.Equal(t, clock.t, m.read().gateways["gw-1"].LastHeardAt)
	restarted := ack("gw-1", lineage, 1)
	restarted.Instance = "i2"
	require.NoError(t, s.Ack(ctx, restarted))
	require.Equal(t, int64(1), m.read().gateways["gw-1"].Revision, "a new process holds what it says")
	foreign := ack("gw-1", "other", 99)
	require.NoError(t, s.Ack(ctx, foreign), "an unknown lineage is recorded, not refused")
	require.Equal(t, "other", m.read().gateways["gw-1"].Lineage)
	members, err := s.Gateways(context.Background())
	require.NoError(t, err)
	require.Equal(t, MemberBehind, members[0].Standing)
}

func TestRejectionIsAuditedOnce(t *testing.T) {
	t.Parallel()
	s, m, _ := fixture(t)
	lineage := m.read().head.Lineage
	a := ack("gw-1", lineage, 1)
	a.Result, a.RejectedRevision, a.Error = policy.AckRejected, 2, "routes.chat: no such pool"
	for range 3 {
		require.NoError(t, s.Ack(gatewayToken(context.Background()), a))
	}
	var rows []audit.Entry
	for _, e := range m.read().audit {
		if e.Verb == "policy.apply" {
			rows = append(rows, e)
		}
	}
	require.Len(t, rows, 1)
	require.Equal(t, "revision:2", rows[0].Subject)
	require.Equal(t, "routes.chat: no such pool", rows[0].Reason)
}

// TestPriorStateIsAboutAMinuteOld draws heartbeats at will.
func TestPriorStateIsAboutAMinuteOld(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		clock := &clockwork{start}
		m := newMemory(clock.now)
		s, err := New(Options{Store: m})
		require.NoError(t, err)
		var n int64
		since, instance := time.Time{}, "i1"
		remembers := start
		for range rapid.IntRange(1, 60).Draw(rt, "heartbeats") {
			clock.t = clock.t.Add(time.Duration(rapid.IntRange(1, 10).Draw(rt, "gap")) * time.Second)
			switch rapid.IntRange(0, 20).Draw(rt, "happens") {
			case 0: // the gateway restarts: its counters begin again
				instance, since, n = instance+"x", clock.t, 0
			case 1: // the server restarts and remembers nothing
				s, err = New(Options{Store: m})
				require.NoError(t, err)
				remembers = clock.t
			}
			if since.IsZero() {
				since = clock.t
			}
			n += 10
			a := ack("gw-1", "l", 1)
			a.Instance = instance[max(0, len(instance)-100):]
			a.State.Outcomes = map[string]map[policy.Outcome]int64{"llm": {policy.OutcomeOK: n}}
			require.NoError(t, s.Ack(gatewayToken(context.Background()), a))
			g := m.read().gateways["gw-1"]
			if g.PriorAt.IsZero() {
				require.Equal(t, since, clock.t, "only the first report of a process has none")
				continue
			}
			age := g.StateAt.Sub(g.PriorAt)
			require.Positive(t, age)
			require.LessOrEqual(t, age, 2*priorAge)
			require.False(t, g.PriorAt.Before(since), "of the same process")
			require.Less(t, g.Prior.Outcomes["llm"][policy.OutcomeOK], g.State.Outcomes["llm"][policy.OutcomeOK])
		}
		// A server that has just begun again knows only the two readings of the row.
		if clock.t.Sub(since) > 2*priorAge && clock.t.Sub(remembers) > 2*priorAge {
			g := m.read().gateways["gw-1"]
			require.Greater(t, g.StateAt.Sub(g.PriorAt), priorAge/4, "not two neighbouring heartbeats")
		}
	})
}

func TestSubscribeFollowsRevisionsAndMembers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(time.Now)
		s, err := New(Options{Store: m})
		require.NoError(t, err)
		_, err = s.Subscribe(gatewayToken(t.Context()), "gw-1")
		require.ErrorIs(t, err, ErrNotFound, "before the first policy")
		_, err = s.Init(t.Context(), actionstest.Document())
		require.NoError(t, err)
		s.Start(t.Context())
		s.Start(t.Context())
		defer s.Stop()
		ctx, cancel := context.WithCancel(gatewayToken(t.Context()))
		defer cancel()
		updates, err := s.Subscribe(ctx, "gw-1")
		require.NoError(t, err)
		u := <-updates
		require.Equal(t, int64(1), u.Revision)
		require.Equal(t, 1, u.LiveGateways)
		require.False(t, u.LineageConfirmed)
		pass(10 * time.Second)
		require.Empty(t, updates, "no news, no event")

		_, err = s.PutBase(as(identity.RoleAdmin), document(t, func(d *policy.Document) { d.Limits.Global = &policy.Limit{RequestsPerSecond: 9} }), 1)
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, int64(2), (<-updates).Revision, "woken by the commit")

		for _, name := range []string{"gw-1", "gw-2"} {
			require.NoError(t, s.Ack(gatewayToken(t.Context()), ack(name, u.Lineage, 2)))
		}
		pass(time.Second)
		require.Equal(t, 2, (<-updates).LiveGateways, "limits are divided by the members")
		pass(16 * time.Second)
		require.Equal(t, 1, (<-updates).LiveGateways, "a silent member leaves by its lease")

		for range 3 { // a slow reader gets the newest only
			_, err = s.PutBase(as(identity.RoleAdmin), document(t, func(d *policy.Document) {
				d.Limits.Global = &policy.Limit{RequestsPerSecond: float64(10 + m.read().head.Revision)}
			}), 0)
			require.NoError(t, err)
			synctest.Wait()
		}
		require.Equal(t, int64(5), (<-updates).Revision)
		cancel()
		synctest.Wait()
		_, open := <-updates
		require.False(t, open)
		other, err := s.Subscribe(gatewayToken(t.Context()), "gw-2")
		require.NoError(t, err)
		<-other
		s.Stop()
		_, open = <-other
		require.False(t, open, "closed by Stop")
	})
}

func TestGatewaysThatAreGoneAreForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(time.Now)
		s, err := New(Options{Store: m, PollEvery: time.Minute})
		require.NoError(t, err)
		_, err = s.Init(t.Context(), actionstest.Document())
		require.NoError(t, err)
		require.NoError(t, s.Ack(gatewayToken(t.Context()), ack("gw-1", "l", 1)))
		s.Start(t.Context())
		defer s.Stop()
		pass(23 * time.Hour)
		require.Len(t, m.read().gateways, 1)
		pass(2*time.Hour + time.Minute) // not at the very moment at which it looks
		require.Empty(t, m.read().gateways)
	})
}

// pass lets time go by inside a synctest bubble, which costs none.
func pass(d time.Duration) { <-time.After(d) }
