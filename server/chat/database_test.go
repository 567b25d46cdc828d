package chat_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/actions"
	"holdfast/actions/actionstest"
	"holdfast/actions/builtin"
	"holdfast/gpuguard/policy"
	"holdfast/runbooks"
	"holdfast/server/alert"
	"holdfast/server/change"
	"holdfast/server/chat"
	"holdfast/server/fleet"
	"holdfast/server/identity"
	"holdfast/server/incident"
	"holdfast/server/internal/store/storetest"
)

// server is one holdfast process on a database: fleet, engine and chat.
type server struct {
	t      *testing.T
	db     *storetest.DB
	fleet  *fleet.Service
	engine *actions.Engine
	chat   *chat.Service
}

type noRunbooks struct{}

func (noRunbooks) Suggest(_, _ map[string]string) []runbooks.Suggestion { return nil }

func newServer(t *testing.T, db *storetest.DB) *server {
	t.Helper()
	s := &server{t: t, db: db}
	var err error
	s.fleet, err = fleet.New(fleet.Options{Store: db.Fleet()})
	require.NoError(t, err)
	registry, err := actions.NewRegistry(builtin.All()...)
	require.NoError(t, err)
	s.engine, err = actions.NewEngine(actions.Options{Store: db.Actions(), Registry: registry})
	require.NoError(t, err)
	calendar := change.New(change.Options{Store: db.Changes(), Catalogue: change.Catalogue{}, People: identity.New(identity.Options{Store: db.Identity()})})
	s.chat, err = chat.New(chat.Options{
		Store: db.Chat(), Runner: s.engine, Runbooks: noRunbooks{}, Changes: calendar, Incidents: incident.New(incident.Options{Store: db.Incidents()}), PublicURL: "https://holdfast.example",
	})
	require.NoError(t, err)
	return s
}

// populate enters a policy, five responders and one incident about llm.
func (s *server) populate() (incidentID string) {
	s.t.Helper()
	ctx := s.t.Context()
	_, err := s.fleet.Init(ctx, actionstest.Document())
	require.NoError(s.t, err)
	require.NoError(s.t, s.db.Identity().InTx(ctx, func(tx identity.Tx) error {
		for i := range 5 {
			p := identity.Person{
				ID: fmt.Sprintf("p%d", i), Handle: fmt.Sprintf("person%d", i), Name: fmt.Sprintf("Person %d", i),
				Role: identity.RoleResponder, SlackTeam: "T1", SlackUser: fmt.Sprintf("U%d", i), CreatedAt: tx.Now(),
			}
			if err := tx.SavePerson(p); err != nil {
				return err
			}
		}
		return nil
	}))
	require.NoError(s.t, s.db.Alerts().InTx(ctx, func(tx alert.Tx) error {
		in, err := incident.Open(tx, incident.Incident{Title: "Model slow", Severity: incident.SeverityCritical, GroupKey: "g1"}, "opened")
		if err != nil {
			return err
		}
		incidentID = in.ID
		return tx.SaveOccurrence(&alert.Occurrence{
			Fingerprint: "f1", StartsAt: tx.Now(), Status: alert.StatusFiring, Severity: incident.SeverityCritical, GroupKey: "g1", IncidentID: in.ID,
			Labels: map[string]string{"alertname": "ModelSlow", "dependency": "llm"}, Source: "test", FirstSeenAt: tx.Now(), LastReceivedAt: tx.Now(),
		})
	}))
	s.ack()
	return incidentID
}

// ack lets gateway gw-1 take the newest policy and report it.
func (s *server) ack() {
	s.t.Helper()
	e, err := s.fleet.Effective(s.t.Context())
	require.NoError(s.t, err)
	state := policy.State{Breakers: map[string]policy.BreakerState{}}
	for name, d := range e.Document.Dependencies {
		word := "closed"
		if d.Breaker.Forced == policy.ForcedOpen {
			word = "forced_open"
		}
		state.Breakers[name] = policy.BreakerState{State: word}
	}
	for _, o := range e.Overrides {
		state.ActiveOverrides = append(state.ActiveOverrides, o.ID)
	}
	ctx := identity.WithPrincipal(s.t.Context(), identity.Principal{
		Kind: identity.PrincipalToken, TokenKind: identity.TokenGateway, TokenID: "t1", Name: "gateways", Channel: identity.ChannelGateway,
	})
	require.NoError(s.t, s.fleet.Ack(ctx, policy.Ack{
		Gateway: "gw-1", Instance: "i1", Lineage: e.Lineage, Revision: e.Revision, Result: policy.AckApplied, State: state,
	}))
}

func (s *server) button(incidentID string, kind chat.ButtonKind) chat.Button {
	s.t.Helper()
	card, err := s.chat.IncidentCard(s.t.Context(), incidentID)
	require.NoError(s.t, err)
	for _, b := range append(card.Buttons, card.RunButtons...) {
		if b.Kind == kind {
			return b
		}
	}
	s.t.Fatalf("no %s button", kind)
	return chat.Button{}
}

func (s *server) press(user, button string) chat.Answer {
	a, err := s.chat.Accept(s.t.Context(), chat.Press{ButtonID: button, Team: "T1", User: user, Channel: "C1", MessageTS: "1.2"})
	if err != nil {
		s.t.Error(err)
	}
	return a
}

func (s *server) tick() {
	s.t.Helper()
	_, err := s.engine.Tick(s.t.Context())
	require.NoError(s.t, err)
}

func (s *server) only() actions.Run {
	s.t.Helper()
	runs, err := s.engine.List(s.t.Context(), time.Time{}, 10)
	require.NoError(s.t, err)
	require.Len(s.t, runs, 1)
	return runs[0]
}

// TestR20_OnBothDatabasesAndTwoServers presses one button twenty times on two
// servers at once, works it off on both, and takes the run back again.
func TestR20_OnBothDatabasesAndTwoServers(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		first := newServer(t, db)
		second := newServer(t, db.Second(t))
		id := first.populate()
		trip := first.button(id, chat.ButtonAction)
		require.Equal(t, trip.ID, second.button(id, chat.ButtonAction).ID, "both servers draw the same buttons")

		answers := make([]chat.Answer, 20)
		var wg sync.WaitGroup
		for i := range answers {
			wg.Go(func() { answers[i] = []*server{first, second}[i%2].press(fmt.Sprintf("U%d", i%5), trip.ID) })
		}
		wg.Wait()
		accepted, told := 0, 0
		for _, a := range answers {
			if a.Accepted {
				accepted++
			}
			if a.Duplicate {
				require.Contains(t, a.Text, "asked by Person")
				told++
			}
		}
		require.Equal(t, []int{1, 19}, []int{accepted, told})

		for _, s := range []*server{first, second} {
			wg.Go(func() {
				for range 3 {
					if _, err := s.chat.Process(context.Background()); err != nil {
						t.Error(err)
					}
					if _, err := s.engine.Tick(context.Background()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		run := first.only()
		require.Equal(t, actions.StatusExecuting, run.Status)
		require.Equal(t, int64(2), run.Revision)
		first.ack()
		second.tick()
		require.Equal(t, actions.StatusActive, first.only().Status)
		db.Advance(t, 3*time.Second)
		first.tick()
		require.Equal(t, actions.Verified, first.only().Verification.Verdict, first.only().Verification.Detail)

		require.True(t, second.press("U1", second.button(id, chat.ButtonRevert).ID).Accepted)
		_, err := second.chat.Process(t.Context())
		require.NoError(t, err)
		first.ack()
		first.tick()
		run = second.only()
		require.Equal(t, actions.StatusEnded, run.Status)
		require.Equal(t, "Person 1", run.EndedBy)
		head, err := first.fleet.Head(t.Context())
		require.NoError(t, err)
		require.Empty(t, head.Overrides)
		require.Equal(t, int64(3), head.Revision, "one revision in, one out")
	})
}

// TestLeaseEndsOnBothDatabases lets a lease run out, with its warning, and
// checks what is left of it.
func TestLeaseEndsOnBothDatabases(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		s := newServer(t, db)
		id := s.populate()
		require.True(t, s.press("U0", s.button(id, chat.ButtonAction).ID).Accepted)
		_, err := s.chat.Process(t.Context())
		require.NoError(t, err)
		s.tick()
		s.ack()
		s.tick()
		require.Equal(t, actions.StatusActive, s.only().Status)
		renew := s.button(id, chat.ButtonRenew)
		db.Advance(t, 5*time.Minute)
		s.ack()
		require.True(t, s.press("U0", renew.ID).Accepted)
		_, err = s.chat.Process(t.Context())
		require.NoError(t, err)
		require.InDelta(t, (15 * time.Minute).Seconds(), time.Until(s.only().ExpiresAt).Seconds()-300, 30)
		db.Advance(t, 14*time.Minute)
		s.ack()
		s.tick()
		require.True(t, s.only().Warned)
		db.Advance(t, 2*time.Minute)
		s.tick()
		s.ack()
		s.tick()
		run := s.only()
		require.Equal(t, actions.StatusEnded, run.Status)
		require.Equal(t, actions.EndExpired, run.EndReason)
		e, err := s.fleet.Effective(t.Context())
		require.NoError(t, err)
		require.Empty(t, e.Overrides)
		require.Equal(t, policy.ForcedNone, e.Document.Dependencies["llm"].Breaker.Forced)
	})
}
