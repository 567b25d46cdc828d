package change_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/server/audit"
	"holdfast/server/change"
	"holdfast/server/identity"
	"holdfast/server/incident"
	"holdfast/server/internal/store/storetest"
	"holdfast/server/outbox"
)

var (
	dawn   = time.Date(2026, 2, 3, 6, 0, 0, 0, time.UTC)
	twoPM  = time.Date(2026, 2, 3, 14, 0, 0, 0, time.UTC)
	noHold = change.Holder{}
)

// world is a calendar over a real database, with people.
type world struct {
	*change.Calendar
	db *storetest.DB
}

// numbered is a catalogue of unlinked services svc-01 … and of web → api.
func numbered(scope change.Scope) change.Catalogue {
	cat := change.Catalogue{
		Services: map[string]change.Service{
			"web": {Name: "web", DependsOn: []string{"api"}}, "api": {Name: "api", Owner: "team-api"},
		},
		Environments: map[string]change.Environment{
			"prod":    {Name: "prod", GuardBand: 2 * time.Hour, Scope: scope},
			"staging": {Name: "staging", GuardBand: 30 * time.Minute, Scope: scope},
		},
	}
	for i := range 20 {
		name := svc(i)
		cat.Services[name] = change.Service{Name: name}
	}
	return cat
}

func svc(i int) string { return fmt.Sprintf("svc-%02d", i+1) }

func newWorld(t *testing.T, db *storetest.DB, scope change.Scope) *world {
	t.Helper()
	db.Freeze(t, dawn)
	return &world{
		db: db,
		Calendar: change.New(change.Options{
			Store: db.Changes(), Catalogue: numbered(scope),
			People: identity.New(identity.Options{Store: db.Identity()}),
		}),
	}
}

// each runs fn on both databases.
func each(t *testing.T, scope change.Scope, fn func(t *testing.T, w *world)) {
	t.Helper()
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) { fn(t, newWorld(t, db, scope)) })
}

func (w *world) person(t *testing.T, handle string, role identity.Role) identity.Person {
	t.Helper()
	p, err := identity.New(identity.Options{Store: w.db.Identity()}).SeedPerson(t.Context(), handle, handle, role)
	require.NoError(t, err)
	return p
}

func as(ctx context.Context, p identity.Person, channel identity.Channel) context.Context {
	return identity.WithPrincipal(ctx, identity.Of(p, channel))
}

// ci is a pipeline's token; scopes narrow it.
func ci(ctx context.Context, scopes ...string) context.Context {
	return identity.WithPrincipal(ctx, identity.Principal{
		Kind: identity.PrincipalToken, TokenKind: identity.TokenCI, TokenID: "pipeline", Name: "pipeline",
		Scopes: scopes, Channel: identity.ChannelAPI,
	})
}

func deploy(service string, start time.Time, length time.Duration) change.Request {
	return change.Request{Service: service, Environment: "prod", Start: start, Duration: length, RunID: "run-" + service, Summary: "release " + service}
}

func (w *world) claim(t *testing.T, r change.Request) (change.Decision, change.Change) {
	t.Helper()
	d, c, err := w.Claim(ci(t.Context()), r)
	require.NoError(t, err)
	return d, c
}

func (w *world) mustClaim(t *testing.T, r change.Request) change.Change {
	t.Helper()
	d, c := w.claim(t, r)
	require.Equal(t, change.Allow, d.Verdict, d.Reasons)
	return c
}

// parallel runs n functions at the same moment.
func parallel(n int, fn func(i int)) {
	var ready, done sync.WaitGroup
	gun := make(chan struct{})
	for i := range n {
		ready.Add(1)
		done.Go(func() {
			ready.Done()
			<-gun
			fn(i)
		})
	}
	ready.Wait()
	close(gun)
	done.Wait()
}

// race lets n pipelines claim at once and checks that one wins and is named.
func (w *world) race(t *testing.T, n int, request func(i int) change.Request) {
	t.Helper()
	decisions, changes, errs := make([]change.Decision, n), make([]change.Change, n), make([]error, n)
	ctx := ci(t.Context())
	parallel(n, func(i int) { decisions[i], changes[i], errs[i] = w.Claim(ctx, request(i)) })
	require.NoError(t, errors.Join(errs...))
	won := slices.IndexFunc(decisions, func(d change.Decision) bool { return d.Verdict == change.Allow })
	require.GreaterOrEqual(t, won, 0, "somebody must win")
	for i, d := range decisions {
		if i == won {
			require.Equal(t, change.StatusClaimed, changes[i].Status)
			require.Positive(t, changes[i].FencingToken)
			continue
		}
		require.Equal(t, change.Confirm, d.Verdict, "run %d: %v", i, d.Reasons)
		require.Equal(t, change.StatusHeld, changes[i].Status)
		require.Equal(t, []string{changes[won].ID}, changes[i].Blockers)
		require.Contains(t, d.Reasons[0].Text, changes[won].ID)
		require.Contains(t, d.Reasons[0].Text, changes[won].Service)
	}
}

func TestC16_TwentyParallelClaimsOfOneSlotGiveOneAllow(t *testing.T) {
	each(t, change.ScopeEnvironment, func(t *testing.T, w *world) {
		w.race(t, 20, func(i int) change.Request { return deploy(svc(i), twoPM, 0) })
	})
}

func TestC16_TwentyParallelClaimsWithinTheBandGiveOneAllow(t *testing.T) {
	each(t, change.ScopeEnvironment, func(t *testing.T, w *world) {
		w.race(t, 20, func(i int) change.Request {
			if i%2 == 0 {
				return deploy(svc(i), twoPM, 0)
			}
			return deploy(svc(i), twoPM.Add(time.Hour+59*time.Minute), 0)
		})
	})
}

func TestC16_ExactlyTwoHoursApartIsFreeFromBothSides(t *testing.T) {
	each(t, change.ScopeEnvironment, func(t *testing.T, w *world) {
		const length = 30 * time.Minute
		w.mustClaim(t, deploy(svc(0), twoPM, length))
		w.mustClaim(t, deploy(svc(1), twoPM.Add(length+2*time.Hour), 0))
		w.mustClaim(t, deploy(svc(2), twoPM.Add(-2*time.Hour-length), length))
		d, _ := w.claim(t, deploy(svc(3), twoPM.Add(-2*time.Hour-length), length+time.Microsecond))
		require.Equal(t, change.Confirm, d.Verdict)
	})
}

func TestC16_UnrelatedServicesOfANeighbourhoodAreAllAllowed(t *testing.T) {
	each(t, change.ScopeNeighbourhood, func(t *testing.T, w *world) {
		errs, verdicts := make([]error, 20), make([]change.Verdict, 20)
		ctx := ci(t.Context())
		parallel(20, func(i int) {
			var d change.Decision
			d, _, errs[i] = w.Claim(ctx, deploy(svc(i), twoPM, 0))
			verdicts[i] = d.Verdict
		})
		require.NoError(t, errors.Join(errs...))
		require.Equal(t, []change.Verdict{change.Allow}, slices.Compact(verdicts))
	})
}

func TestC16_OfTwoHeldChangesConfirmedAtOnceOneWins(t *testing.T) {
	each(t, change.ScopeEnvironment, func(t *testing.T, w *world) {
		bob := as(t.Context(), w.person(t, "bob", identity.RoleApprover), identity.ChannelSlack)
		w.mustClaim(t, deploy(svc(0), twoPM, 0))
		var held [2]change.Change
		for i := range held {
			d, c := w.claim(t, deploy(svc(i+1), twoPM, 0))
			require.Equal(t, change.Confirm, d.Verdict)
			held[i] = c
		}
		var errs [2]error
		parallel(2, func(i int) { _, errs[i] = w.Confirm(bob, held[i].ID, held[i].ParamsHash) })
		winner := slices.Index(errs[:], nil)
		require.GreaterOrEqual(t, winner, 0, "%v", errs)
		loser := 1 - winner
		require.ErrorIs(t, errs[loser], change.ErrOutdated)
		require.ErrorContains(t, errs[loser], held[winner].ID)
		require.ErrorContains(t, errs[loser], held[winner].Service)
		var refused *change.RefusedError
		require.ErrorAs(t, errs[loser], &refused)
		require.Len(t, refused.Decision.Blockers, 2)

		again, err := w.Get(bob, held[loser].ID)
		require.NoError(t, err)
		require.Equal(t, change.StatusHeld, again.Status)
		require.NotEqual(t, held[loser].ParamsHash, again.ParamsHash, "what was seen before is void")
		got, err := w.Confirm(bob, again.ID, again.ParamsHash)
		require.NoError(t, err, "a confirmation of what is in the way now is good")
		require.Equal(t, change.StatusClaimed, got.Status)
	})
}

func TestConfirmationFlow(t *testing.T) {
	each(t, change.ScopeNeighbourhood, func(t *testing.T, w *world) {
		alice, bob := w.person(t, "alice", identity.RoleAdmin), w.person(t, "bob", identity.RoleApprover)
		carol := w.person(t, "carol", identity.RoleResponder)
		w.mustClaim(t, deploy("api", twoPM, time.Hour))
		request := deploy("web", twoPM, time.Hour)
		request.Actor = "Alice"
		d, held := w.claim(t, request)
		require.Equal(t, change.Confirm, d.Verdict)
		require.Equal(t, alice.ID, held.RequesterID)
		require.Equal(t, twoPM.Add(3*time.Hour), d.NextOpen)
		require.Equal(t, []string{outbox.KindCard}, w.messages(t, held.ID))

		_, again := w.claim(t, request)
		require.Equal(t, held, again, "asking again changes nothing")

		_, err := w.Confirm(as(t.Context(), alice, identity.ChannelSlack), held.ID, held.ParamsHash)
		require.ErrorIs(t, err, change.ErrSelfConfirm, "from every channel, admins too")
		_, err = w.Confirm(as(t.Context(), carol, identity.ChannelConsole), held.ID, held.ParamsHash)
		require.ErrorIs(t, err, identity.ErrForbidden)
		_, err = w.Confirm(ci(t.Context()), held.ID, held.ParamsHash)
		require.ErrorIs(t, err, identity.ErrForbidden, "a pipeline does not confirm")
		_, err = w.Confirm(identity.WithPrincipal(t.Context(), identity.System()), held.ID, held.ParamsHash)
		require.ErrorIs(t, err, identity.ErrForbidden, "neither does holdfast itself")
		_, err = w.Confirm(as(t.Context(), bob, identity.ChannelConsole), held.ID, "another hash")
		require.ErrorIs(t, err, change.ErrOutdated)
		require.Equal(t, 5, w.audited(t, "change.confirm", audit.Denied))

		got, err := w.Confirm(as(t.Context(), bob, identity.ChannelSlack), held.ID, held.ParamsHash)
		require.NoError(t, err)
		require.Equal(t, change.StatusClaimed, got.Status)
		require.Equal(t, bob.ID, got.DecidedByID)
		_, err = w.Confirm(as(t.Context(), bob, identity.ChannelSlack), held.ID, held.ParamsHash)
		require.NoError(t, err, "a repeated click is no error")
		require.Equal(t, 1, w.audited(t, "change.confirm", audit.Allowed))

		d, mine := w.claim(t, request)
		require.Equal(t, change.Allow, d.Verdict)
		require.Equal(t, change.ReasonConfirmed, d.Reasons[0].Code)
		require.Equal(t, held.ID, mine.ID)
	})
}

func TestRejectedRunStaysDenied(t *testing.T) {
	each(t, change.ScopeNeighbourhood, func(t *testing.T, w *world) {
		bob := as(t.Context(), w.person(t, "bob", identity.RoleApprover), identity.ChannelConsole)
		w.mustClaim(t, deploy("api", twoPM, 0))
		_, held := w.claim(t, deploy("web", twoPM, 0))
		got, err := w.Reject(bob, held.ID)
		require.NoError(t, err)
		require.Equal(t, change.StatusRejected, got.Status)
		_, err = w.Confirm(bob, held.ID, held.ParamsHash)
		require.ErrorIs(t, err, change.ErrWrongState)

		d, _ := w.claim(t, deploy("web", twoPM, 0))
		require.Equal(t, change.Deny, d.Verdict)
		require.Equal(t, change.ReasonRejected, d.Reasons[0].Code)
		require.Contains(t, d.Reasons[0].Text, "bob")
		other := deploy("web", twoPM, 0)
		other.RunID = "another run"
		d, _ = w.claim(t, other)
		require.Equal(t, change.Confirm, d.Verdict, "another run may ask")
	})
}

func TestPersonIsTheirOwnRequester(t *testing.T) {
	each(t, change.ScopeNeighbourhood, func(t *testing.T, w *world) {
		alice := w.person(t, "alice", identity.RoleApprover)
		w.person(t, "bob", identity.RoleApprover)
		w.mustClaim(t, deploy("api", twoPM, 0))
		request := deploy("web", twoPM, 0)
		request.Actor = "bob"
		_, held, err := w.Claim(as(t.Context(), alice, identity.ChannelConsole), request)
		require.NoError(t, err)
		require.Equal(t, alice.ID, held.RequesterID, "what a person states about themselves does not count")
		_, err = w.Confirm(as(t.Context(), alice, identity.ChannelSlack), held.ID, held.ParamsHash)
		require.ErrorIs(t, err, change.ErrSelfConfirm)
		_, err = w.Reject(as(t.Context(), alice, identity.ChannelSlack), held.ID)
		require.ErrorIs(t, err, change.ErrSelfConfirm)
	})
}

func TestConfirmationMovesAWindowThatBeganInThePast(t *testing.T) {
	each(t, change.ScopeNeighbourhood, func(t *testing.T, w *world) {
		bob := as(t.Context(), w.person(t, "bob", identity.RoleApprover), identity.ChannelConsole)
		w.mustClaim(t, deploy("api", dawn, time.Hour))
		_, held := w.claim(t, deploy("web", time.Time{}, 20*time.Minute))
		w.db.Advance(t, 10*time.Minute)
		got, err := w.Confirm(bob, held.ID, held.ParamsHash)
		require.NoError(t, err)
		require.Equal(t, dawn.Add(10*time.Minute), got.Start.UTC())
		require.Equal(t, 20*time.Minute, got.End.Sub(got.Start))
	})
}

func TestHeldChangeIsLetThroughWhenItsWayIsFree(t *testing.T) {
	each(t, change.ScopeNeighbourhood, func(t *testing.T, w *world) {
		blocker := w.mustClaim(t, deploy("api", twoPM, 0))
		_, held := w.claim(t, deploy("web", twoPM, 0))
		_, err := w.Cancel(ci(t.Context()), blocker.ID, change.Holder{RunID: blocker.RunID})
		require.NoError(t, err)
		d, c := w.claim(t, deploy("web", twoPM, 0))
		require.Equal(t, change.Allow, d.Verdict)
		require.Equal(t, held.ID, c.ID)
		require.Equal(t, change.StatusClaimed, c.Status)
	})
}

func TestRunFromStartToFinish(t *testing.T) {
	each(t, change.ScopeNeighbourhood, func(t *testing.T, w *world) {
		ctx := ci(t.Context())
		c := w.mustClaim(t, deploy("api", dawn.Add(time.Minute), 4*time.Hour))
		holder := change.Holder{RunID: c.RunID, FencingToken: c.FencingToken}

		_, err := w.Start(ctx, c.ID, holder)
		require.ErrorIs(t, err, change.ErrWrongState)
		require.ErrorContains(t, err, "opens at 2026-02-03T06:01:00Z")
		w.db.Advance(t, time.Minute)
		_, err = w.Start(ctx, c.ID, change.Holder{RunID: "another"})
		require.ErrorIs(t, err, change.ErrRunMismatch)
		_, err = w.Start(ctx, c.ID, change.Holder{RunID: c.RunID, FencingToken: c.FencingToken + 1})
		require.ErrorIs(t, err, change.ErrRunMismatch)
		_, err = w.Start(ctx, c.ID, noHold)
		require.ErrorIs(t, err, change.ErrRunMismatch)
		_, err = w.Start(ci(t.Context(), "service:web"), c.ID, holder)
		require.ErrorIs(t, err, identity.ErrForbidden)
		started, err := w.Start(ctx, c.ID, holder)
		require.NoError(t, err)
		require.Equal(t, change.StatusRunning, started.Status)
		_, err = w.Start(ctx, c.ID, holder)
		require.NoError(t, err, "a repeated start is no error")
		_, err = w.Cancel(ctx, c.ID, holder)
		require.ErrorIs(t, err, change.ErrWrongState, "what runs has altered production")

		w.db.Advance(t, time.Hour)
		_, err = w.Finish(ctx, c.ID, holder, change.StatusHeld)
		require.ErrorIs(t, err, change.ErrInvalid)
		done, err := w.Finish(ctx, c.ID, holder, change.StatusSucceeded)
		require.NoError(t, err)
		require.Equal(t, change.StatusSucceeded, done.Status)
		ended := dawn.Add(time.Hour + time.Minute)
		require.Equal(t, ended, done.End.UTC(), "finish truncates the window")
		_, err = w.Finish(ctx, c.ID, holder, change.StatusSucceeded)
		require.NoError(t, err)
		_, err = w.Finish(ctx, c.ID, holder, change.StatusFailed)
		require.ErrorIs(t, err, change.ErrWrongState)

		w.db.Advance(t, 10*time.Minute)
		d, held := w.claim(t, deploy("web", time.Time{}, 0))
		require.Equal(t, change.Confirm, d.Verdict, "ten minutes later the guard still stands")
		require.Equal(t, ended.Add(2*time.Hour), d.NextOpen.UTC())
		require.Equal(t, []string{c.ID}, held.Blockers)
		w.mustClaim(t, change.Request{Service: "web", Environment: "prod", Start: ended.Add(2 * time.Hour), RunID: "later"})
	})
}

func TestLateFinishIsAnOverrunAndStaysVisible(t *testing.T) {
	each(t, change.ScopeNeighbourhood, func(t *testing.T, w *world) {
		ctx := ci(t.Context())
		c := w.mustClaim(t, deploy("api", dawn, time.Hour))
		// Right behind the guard of the planned end; the overrun will run into it.
		next := w.mustClaim(t, change.Request{Service: "web", Environment: "prod", Start: dawn.Add(3 * time.Hour), RunID: "next"})
		_, err := w.Start(ctx, c.ID, change.Holder{RunID: c.RunID})
		require.NoError(t, err)
		w.db.Advance(t, 2*time.Hour)

		d, err := w.Check(ctx, deploy(svc(0), time.Time{}, 0))
		require.NoError(t, err)
		require.Equal(t, change.Allow, d.Verdict)
		d, err = w.Check(ctx, change.Request{Service: "api", Environment: "prod", Start: dawn.Add(3*time.Hour + 30*time.Minute), RunID: "x"})
		require.NoError(t, err)
		require.Equal(t, change.Confirm, d.Verdict, "what still runs counts until now")
		require.Len(t, d.Blockers, 2)

		done, err := w.Finish(ctx, c.ID, change.Holder{RunID: c.RunID}, change.StatusSucceeded)
		require.NoError(t, err, "an overrun is a fact and cannot be refused")
		require.Equal(t, change.StatusOverrun, done.Status)
		require.Equal(t, dawn.Add(2*time.Hour), done.End.UTC())
		w.db.Advance(t, time.Hour)
		_, err = w.Start(ctx, next.ID, change.Holder{RunID: "next"})
		require.NoError(t, err)
	})
}

func TestExtend(t *testing.T) {
	each(t, change.ScopeNeighbourhood, func(t *testing.T, w *world) {
		ctx := ci(t.Context())
		c := w.mustClaim(t, deploy("api", dawn, time.Hour))
		other := w.mustClaim(t, change.Request{Service: "web", Environment: "prod", Start: dawn.Add(4 * time.Hour), RunID: "other"})
		holder := change.Holder{RunID: c.RunID}
		got, err := w.Extend(ctx, c.ID, holder, 2*time.Hour)
		require.NoError(t, err, "up to exactly the band")
		require.Equal(t, dawn.Add(2*time.Hour), got.End.UTC())
		got, err = w.Extend(ctx, c.ID, holder, 2*time.Hour)
		require.NoError(t, err)
		require.Equal(t, dawn.Add(2*time.Hour), got.End.UTC(), "time is counted from now, so that asking again does no harm")
		got, err = w.Extend(ctx, c.ID, holder, time.Minute)
		require.NoError(t, err)
		require.Equal(t, dawn.Add(2*time.Hour), got.End.UTC(), "the end never comes nearer")
		_, err = w.Extend(ctx, c.ID, holder, 2*time.Hour+time.Microsecond)
		require.ErrorIs(t, err, change.ErrConflict)
		require.ErrorContains(t, err, other.ID)
		after, err := w.Get(ctx, c.ID)
		require.NoError(t, err)
		require.Equal(t, got.End, after.End, "a refused extension leaves the window")
		_, err = w.Extend(ctx, c.ID, holder, 24*time.Hour+time.Microsecond)
		require.ErrorIs(t, err, change.ErrInvalid)
		_, err = w.Extend(ctx, c.ID, holder, -time.Hour)
		require.ErrorIs(t, err, change.ErrInvalid)
	})
}

// A run that is late gets time from now on, not from an end that is long over.
func TestExtendingAnOverrunReachesIntoTheFuture(t *testing.T) {
	each(t, change.ScopeNeighbourhood, func(t *testing.T, w *world) {
		ctx := ci(t.Context())
		c := w.mustClaim(t, deploy("api", dawn, time.Minute))
		holder := change.Holder{RunID: c.RunID}
		_, err := w.Start(ctx, c.ID, holder)
		require.NoError(t, err)
		w.db.Advance(t, time.Hour)
		got, err := w.Extend(ctx, c.ID, holder, 20*time.Minute)
		require.NoError(t, err)
		require.Equal(t, dawn.Add(80*time.Minute), got.End.UTC())
	})
}

func TestPipelinesReadFreezes(t *testing.T) {
	each(t, change.ScopeNeighbourhood, func(t *testing.T, w *world) {
		_, err := w.Freezes(ci(t.Context()), dawn, time.Time{})
		require.NoError(t, err)
		_, err = w.Freezes(t.Context(), dawn, time.Time{})
		require.ErrorIs(t, err, identity.ErrUnauthenticated)
	})
}

func TestCancelFreesAtOnce(t *testing.T) {
	each(t, change.ScopeNeighbourhood, func(t *testing.T, w *world) {
		bob := as(t.Context(), w.person(t, "bob", identity.RoleApprover), identity.ChannelConsole)
		c := w.mustClaim(t, deploy("api", twoPM, 0))
		_, err := w.Cancel(bob, c.ID, noHold)
		require.NoError(t, err, "an approver ends what was left behind")
		_, err = w.Cancel(bob, c.ID, noHold)
		require.NoError(t, err)
		w.mustClaim(t, deploy("web", twoPM, 0))
	})
}

func TestExpireLapsed(t *testing.T) {
	each(t, change.ScopeNeighbourhood, func(t *testing.T, w *world) {
		claimed := w.mustClaim(t, deploy("api", dawn, 0))
		_, held := w.claim(t, deploy("web", dawn, 0))
		n, err := w.ExpireLapsed(t.Context())
		require.NoError(t, err)
		require.Zero(t, n)

		w.db.Advance(t, change.DefaultClaimLease)
		d, err := w.Check(ci(t.Context()), deploy(svc(0), time.Time{}, 0))
		require.NoError(t, err)
		require.Equal(t, change.Allow, d.Verdict)
		_, err = w.Start(ci(t.Context()), claimed.ID, change.Holder{RunID: claimed.RunID})
		require.ErrorIs(t, err, change.ErrWrongState, "a lapsed claim does not start, expired or not")
		n, err = w.ExpireLapsed(t.Context())
		require.NoError(t, err)
		require.Equal(t, 1, n)
		w.db.Advance(t, change.DefaultConfirmTTL)
		n, err = w.ExpireLapsed(t.Context())
		require.NoError(t, err)
		require.Equal(t, 1, n)
		for _, id := range []string{claimed.ID, held.ID} {
			c, err := w.Get(ci(t.Context()), id)
			require.NoError(t, err)
			require.Equal(t, change.StatusExpired, c.Status)
		}
		w.mustClaim(t, deploy("api", time.Time{}, 0))
	})
}

func TestFreezeStopsClaimsAndStarts(t *testing.T) {
	each(t, change.ScopeNeighbourhood, func(t *testing.T, w *world) {
		bob := as(t.Context(), w.person(t, "bob", identity.RoleApprover), identity.ChannelConsole)
		ctx := ci(t.Context())
		claimed := w.mustClaim(t, deploy("api", dawn, time.Hour))
		running := w.mustClaim(t, deploy(svc(0), dawn, time.Hour))
		_, err := w.Start(ctx, running.ID, change.Holder{RunID: running.RunID})
		require.NoError(t, err)

		for _, tt := range []struct {
			freeze change.Freeze
			want   string
		}{
			{change.Freeze{}, "reason must have"},
			{change.Freeze{Reason: "x", Services: []string{"apii"}}, `did you mean "api"?`},
			{change.Freeze{Reason: "x", Environments: []string{"qa"}}, "unknown environment"},
			{change.Freeze{Reason: "x", Kinds: []change.Kind{change.KindRollback}}, "cannot be frozen"},
			{change.Freeze{Reason: "x", End: dawn}, "is not after start"},
		} {
			_, err := w.CreateFreeze(bob, tt.freeze)
			require.ErrorIs(t, err, change.ErrInvalid)
			require.ErrorContains(t, err, tt.want)
		}
		_, err = w.CreateFreeze(ctx, change.Freeze{Reason: "x"})
		require.ErrorIs(t, err, identity.ErrForbidden)
		freeze, err := w.CreateFreeze(bob, change.Freeze{Reason: "peak", Environments: []string{"prod"}})
		require.NoError(t, err)

		d, _ := w.claim(t, deploy("web", twoPM, 0))
		require.Equal(t, change.Deny, d.Verdict)
		require.Equal(t, freeze.ID, d.Freezes[0].ID)
		_, err = w.Start(ctx, claimed.ID, change.Holder{RunID: claimed.RunID})
		require.ErrorIs(t, err, change.ErrDenied, "the gate is asked again before the start")
		require.ErrorContains(t, err, "peak")
		rollback := deploy("web", time.Time{}, 0)
		rollback.Kind, rollback.RunID = change.KindRollback, "rollback"
		d, _ = w.claim(t, rollback)
		require.Equal(t, change.Allow, d.Verdict)
		_, err = w.Finish(ctx, running.ID, change.Holder{RunID: running.RunID}, change.StatusSucceeded)
		require.NoError(t, err, "what runs may finish")

		list, err := w.Freezes(bob, time.Time{}, time.Time{})
		require.NoError(t, err)
		require.Len(t, list, 1)
		require.NoError(t, w.DeleteFreeze(bob, freeze.ID))
		require.ErrorIs(t, w.DeleteFreeze(bob, freeze.ID), change.ErrNotFound)
		_, err = w.Start(ctx, claimed.ID, change.Holder{RunID: claimed.RunID})
		require.NoError(t, err)
	})
}

func TestCriticalIncidentDeniesForwardChanges(t *testing.T) {
	each(t, change.ScopeNeighbourhood, func(t *testing.T, w *world) {
		require.NoError(t, w.db.Incidents().InTx(t.Context(), func(tx incident.Tx) error {
			_, err := incident.Open(tx, incident.Incident{
				Title: "API down", Severity: incident.SeverityCritical, GroupKey: "g", Service: "api", Environment: "prod",
			}, "opened")
			return err
		}))
		d, _ := w.claim(t, deploy("web", time.Time{}, 0))
		require.Equal(t, change.Deny, d.Verdict)
		require.Equal(t, change.ReasonIncident, d.Reasons[0].Code)
		require.Contains(t, d.Reasons[0].Text, "API down")
		w.mustClaim(t, deploy(svc(0), time.Time{}, 0))
	})
}

func TestWhoMayAsk(t *testing.T) {
	each(t, change.ScopeNeighbourhood, func(t *testing.T, w *world) {
		r := deploy("api", twoPM, 0)
		_, err := w.Check(t.Context(), r)
		require.ErrorIs(t, err, identity.ErrUnauthenticated)
		_, _, err = w.Claim(ci(t.Context(), "service:web"), r)
		require.ErrorIs(t, err, identity.ErrForbidden)
		_, _, err = w.Claim(ci(t.Context(), "environment:staging"), r)
		require.ErrorIs(t, err, identity.ErrForbidden)
		_, _, err = w.Claim(as(t.Context(), w.person(t, "vic", identity.RoleViewer), identity.ChannelConsole), r)
		require.ErrorIs(t, err, identity.ErrForbidden)
		require.Equal(t, 3, w.audited(t, "change.claim", audit.Denied))
		noRun := r
		noRun.RunID = ""
		_, _, err = w.Claim(ci(t.Context()), noRun)
		require.ErrorIs(t, err, change.ErrInvalid)
		_, err = w.Check(ci(t.Context(), "service:api", "environment:prod"), noRun)
		require.NoError(t, err)
		d, err := w.Check(ci(t.Context()), r)
		require.NoError(t, err)
		require.Equal(t, change.Allow, d.Verdict)
		list, err := w.List(ci(t.Context()), change.Filter{})
		require.NoError(t, err)
		require.Empty(t, list, "a check reserves nothing")
		_, err = w.List(t.Context(), change.Filter{})
		require.ErrorIs(t, err, identity.ErrUnauthenticated)
		_, err = w.Get(ci(t.Context()), "nothing")
		require.ErrorIs(t, err, change.ErrNotFound)
	})
}

func TestNarrowedBandAsksAPersonInsteadOfFailing(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		w := newWorld(t, db, change.ScopeNeighbourhood)
		cat := numbered(change.ScopeNeighbourhood)
		cat.Environments["prod"] = change.Environment{Name: "prod", GuardBand: 4 * time.Hour}
		wide := change.New(change.Options{Store: db.Changes(), Catalogue: cat})
		_, _, err := wide.Claim(ci(t.Context()), deploy("api", twoPM, 0))
		require.NoError(t, err)
		d, c := w.claim(t, deploy("web", twoPM.Add(2*time.Hour+30*time.Minute), 0))
		require.Equal(t, change.Confirm, d.Verdict, "the older, wider hold still stands in the database")
		require.Len(t, c.Blockers, 1)
	})
}

func TestConfirmationDoesNotPassAFreeze(t *testing.T) {
	each(t, change.ScopeNeighbourhood, func(t *testing.T, w *world) {
		bob := as(t.Context(), w.person(t, "bob", identity.RoleApprover), identity.ChannelConsole)
		running := w.mustClaim(t, deploy("api", dawn, time.Hour))
		_, held := w.claim(t, deploy("web", dawn, time.Hour))
		freeze, err := w.CreateFreeze(bob, change.Freeze{Reason: "peak", Start: dawn.Add(30 * time.Minute)})
		require.NoError(t, err)
		_, err = w.Confirm(bob, held.ID, held.ParamsHash)
		require.ErrorIs(t, err, change.ErrDenied)
		require.ErrorContains(t, err, "peak")
		_, err = w.Extend(ci(t.Context()), running.ID, change.Holder{RunID: running.RunID}, time.Hour+time.Minute)
		require.ErrorIs(t, err, change.ErrDenied, "neither does an extension")
		require.NoError(t, w.DeleteFreeze(bob, freeze.ID))
		_, err = w.Confirm(bob, held.ID, held.ParamsHash)
		require.NoError(t, err)
	})
}

func TestNewBlockerVoidsTheConfirmationAskedFor(t *testing.T) {
	each(t, change.ScopeEnvironment, func(t *testing.T, w *world) {
		bob := as(t.Context(), w.person(t, "bob", identity.RoleApprover), identity.ChannelConsole)
		w.mustClaim(t, deploy(svc(0), twoPM, 0))
		_, first := w.claim(t, deploy(svc(1), twoPM, 0))
		_, other := w.claim(t, deploy(svc(2), twoPM, 0))
		_, err := w.Confirm(bob, other.ID, other.ParamsHash)
		require.NoError(t, err)
		d, again := w.claim(t, deploy(svc(1), twoPM, 0))
		require.Equal(t, change.Confirm, d.Verdict)
		require.Equal(t, first.ID, again.ID, "it is the same change")
		require.Len(t, again.Blockers, 2)
		_, err = w.Confirm(bob, first.ID, first.ParamsHash)
		require.ErrorIs(t, err, change.ErrOutdated)
		_, err = w.Confirm(bob, again.ID, again.ParamsHash)
		require.NoError(t, err)
	})
}

func TestHeldChangeExpiresUnconfirmed(t *testing.T) {
	each(t, change.ScopeNeighbourhood, func(t *testing.T, w *world) {
		bob := as(t.Context(), w.person(t, "bob", identity.RoleApprover), identity.ChannelConsole)
		w.mustClaim(t, deploy("api", twoPM, 0))
		_, held := w.claim(t, deploy("web", twoPM, 0))
		w.db.Advance(t, change.DefaultConfirmTTL)
		_, err := w.Confirm(bob, held.ID, held.ParamsHash)
		require.ErrorIs(t, err, change.ErrWrongState)
		_, fresh := w.claim(t, deploy("web", twoPM, 0))
		require.NotEqual(t, held.ID, fresh.ID, "asking again asks people again")
	})
}

// messages are the kinds of undelivered messages about a change.
func (w *world) messages(t *testing.T, id string) []string {
	t.Helper()
	var kinds []string
	list, err := w.db.Outbox().Claim(t.Context(), outbox.TopicChat, 100, time.Minute)
	require.NoError(t, err)
	for _, m := range list {
		if m.Subject == change.Subject(id) {
			kinds = append(kinds, m.Kind)
		}
	}
	return kinds
}

// audited counts the audit rows of a verb.
func (w *world) audited(t *testing.T, verb string, decision audit.Decision) int {
	t.Helper()
	_, err := w.db.ChainPending(t.Context(), 1000)
	require.NoError(t, err)
	rows, err := w.db.AuditEntries(t.Context(), 0, 200)
	require.NoError(t, err)
	n := 0
	for _, r := range rows {
		if r.Verb == verb && r.Decision == decision {
			n++
		}
	}
	return n
}
