package change

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"holdfast/server/incident"
)

var noon = time.Date(2026, 2, 3, 12, 0, 0, 0, time.UTC)

// shop is web → api → db, with search alone, in prod (2 h) and staging (30 min).
func shop(scope Scope) Catalogue {
	return Catalogue{
		Services: map[string]Service{
			"web":    {Name: "web", DependsOn: []string{"api"}, Owner: "team-web"},
			"api":    {Name: "api", DependsOn: []string{"db"}, Owner: "team-api"},
			"db":     {Name: "db"},
			"search": {Name: "search"},
		},
		Environments: map[string]Environment{
			"prod":    {Name: "prod", GuardBand: 2 * time.Hour, Scope: scope},
			"staging": {Name: "staging", GuardBand: 30 * time.Minute, Scope: scope},
		},
	}
}

func ask(service string, start time.Time, length time.Duration) Request {
	return Request{Service: service, Environment: "prod", Kind: KindDeploy, Start: start, Duration: length, RunID: "run-ask"}
}

func claimedChange(id, service string, start time.Time, length time.Duration) Change {
	return Change{
		ID: id, Service: service, Environment: "prod", Kind: KindDeploy, Status: StatusClaimed,
		Start: start, End: start.Add(length), RunID: "run-" + id, RequesterName: "alice",
		CreatedAt: noon.Add(-time.Hour), ClaimedUntil: start.Add(time.Hour),
	}
}

func decideOne(r Request, live ...Change) Decision {
	return Decide(Input{Now: noon, Request: r, Catalogue: shop(ScopeNeighbourhood), Live: live})
}

func TestDistanceIsEndToStartAndHalfOpen(t *testing.T) {
	t.Parallel()
	const band, length = 2 * time.Hour, 30 * time.Minute
	other := claimedChange("x", "api", noon.Add(5*time.Hour), length)
	tests := []struct {
		name  string
		start time.Time
		want  Verdict
	}{
		{"ends exactly the band before", other.Start.Add(-band - length), Allow},
		{"ends one microsecond closer", other.Start.Add(-band - length + time.Microsecond), Confirm},
		{"begins with it", other.Start, Confirm},
		{"begins when it ends", other.End, Confirm},
		{"begins one microsecond short of the band after", other.End.Add(band - time.Microsecond), Confirm},
		{"begins exactly the band after", other.End.Add(band), Allow},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := decideOne(ask("api", tt.start, length), other)
			require.Equal(t, tt.want, got.Verdict, got.Reasons)
			if tt.want == Confirm {
				require.Equal(t, []string{"x"}, idsOf(got.Blockers))
				require.Contains(t, got.Reasons[0].Text, "alice")
				require.Contains(t, got.Reasons[0].Text, "team-api")
				require.Contains(t, got.Reasons[0].Text, "2026-02-03T17:00:00Z")
			}
		})
	}
}

func TestNeighbourhoodIsOneHopInBothDirections(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		asks, claimed string
		scope         Scope
		want          Verdict
	}{
		{"api", "api", ScopeNeighbourhood, Confirm},
		{"web", "api", ScopeNeighbourhood, Confirm},
		{"api", "web", ScopeNeighbourhood, Confirm},
		{"db", "api", ScopeNeighbourhood, Confirm},
		{"db", "web", ScopeNeighbourhood, Allow}, // they share the neighbour api
		{"web", "db", ScopeNeighbourhood, Allow},
		{"search", "api", ScopeNeighbourhood, Allow},
		{"search", "api", ScopeEnvironment, Confirm},
		{"db", "web", ScopeEnvironment, Confirm},
	} {
		t.Run(fmt.Sprintf("%s near %s, %s", tt.asks, tt.claimed, tt.scope), func(t *testing.T) {
			t.Parallel()
			d := Decide(Input{
				Now: noon, Request: ask(tt.asks, noon, 0), Catalogue: shop(tt.scope),
				Live: []Change{claimedChange("x", tt.claimed, noon, 0)},
			})
			require.Equal(t, tt.want, d.Verdict, d.Reasons)
		})
	}
}

func TestWhatCountsAsABlocker(t *testing.T) {
	t.Parallel()
	for status, want := range map[Status]Verdict{
		StatusHeld: Allow, StatusCancelled: Allow, StatusRejected: Allow, StatusExpired: Allow,
		StatusClaimed: Confirm, StatusRunning: Confirm, StatusSucceeded: Confirm,
		StatusFailed: Confirm, StatusRolledBack: Confirm, StatusOverrun: Confirm,
	} {
		c := claimedChange("x", "api", noon, time.Minute)
		c.Status = status
		require.Equal(t, want, decideOne(ask("api", noon, 0), c).Verdict, status)
	}

	lapsed := claimedChange("x", "api", noon.Add(-time.Hour), 0)
	lapsed.ClaimedUntil = noon
	require.Equal(t, Allow, decideOne(ask("api", noon, 0), lapsed).Verdict, "a claim whose lease is over holds nothing")

	elsewhere := claimedChange("x", "api", noon, 0)
	elsewhere.Environment = "staging"
	require.Equal(t, Allow, decideOne(ask("api", noon, 0), elsewhere).Verdict)

	emergency := claimedChange("x", "api", noon, 0)
	emergency.Kind, emergency.Status, emergency.Environment = KindEmergency, StatusRunning, ""
	require.Equal(t, Confirm, decideOne(ask("api", noon, 0), emergency).Verdict, "everybody sees an emergency action")

	overrun := claimedChange("x", "api", noon.Add(-9*time.Hour), time.Hour)
	overrun.Status = StatusRunning
	require.Equal(t, Confirm, decideOne(ask("api", noon, 0), overrun).Verdict, "what still runs is not over")
}

func TestRollbackIsNeverHeldBack(t *testing.T) {
	t.Parallel()
	r := ask("api", noon, 0)
	r.Kind = KindRollback
	d := Decide(Input{
		Now: noon, Request: r, Catalogue: shop(ScopeEnvironment),
		Live:      []Change{claimedChange("x", "api", noon, 0)},
		Freezes:   []Freeze{{ID: "f", Start: noon.Add(-time.Hour)}},
		Incidents: []incident.Incident{{Severity: incident.SeverityCritical, Service: "api"}},
	})
	require.Equal(t, Allow, d.Verdict)
	require.Equal(t, ReasonAlwaysFree, d.Reasons[0].Code)
}

func TestC17_FreezeFieldsAreAndListsAreOr(t *testing.T) {
	t.Parallel()
	freeze := Freeze{
		ID: "f", Reason: "peak season", CreatedBy: "carol", Services: []string{"api"}, Environments: []string{"prod"},
		Start: noon.Add(-time.Hour), End: noon.Add(time.Hour),
	}
	for _, tt := range []struct {
		service, environment string
		want                 Verdict
	}{{"api", "staging", Allow}, {"web", "prod", Allow}, {"api", "prod", Deny}} {
		r := ask(tt.service, noon, 0)
		r.Environment = tt.environment
		d := Decide(Input{Now: noon, Request: r, Catalogue: shop(ScopeNeighbourhood), Freezes: []Freeze{freeze}})
		require.Equal(t, tt.want, d.Verdict, "%s/%s", tt.service, tt.environment)
		if tt.want == Deny {
			require.Equal(t, ReasonFreeze, d.Reasons[0].Code)
			require.Contains(t, d.Reasons[0].Text, "carol")
			require.Contains(t, d.Reasons[0].Text, "2026-02-03T13:00:00Z")
			require.Equal(t, freeze.End, d.NextOpen)
		}
	}
	freeze.Services = []string{"web", "api"}
	freeze.Kinds = []Kind{KindFlag}
	require.Equal(t, Allow, Decide(Input{Now: noon, Request: ask("api", noon, 0), Catalogue: shop(""), Freezes: []Freeze{freeze}}).Verdict)
	flag := ask("api", noon, 0)
	flag.Kind = KindFlag
	require.Equal(t, Deny, Decide(Input{Now: noon, Request: flag, Catalogue: shop(""), Freezes: []Freeze{freeze}}).Verdict)
}

func TestFreezeIsHalfOpen(t *testing.T) {
	t.Parallel()
	freeze := Freeze{ID: "f", Start: noon, End: noon.Add(time.Hour)}
	for _, tt := range []struct {
		start  time.Time
		length time.Duration
		want   Verdict
	}{
		{noon.Add(-time.Hour), time.Hour, Allow},
		{noon.Add(-time.Hour), time.Hour + time.Microsecond, Deny},
		{noon.Add(-time.Microsecond), 0, Allow},
		{noon, 0, Deny},
		{noon.Add(time.Hour - time.Microsecond), 0, Deny},
		{noon.Add(time.Hour), 0, Allow},
	} {
		d := Decide(Input{Now: noon, Request: ask("api", tt.start, tt.length), Catalogue: shop(""), Freezes: []Freeze{freeze}})
		require.Equal(t, tt.want, d.Verdict, "%s for %s", tt.start, tt.length)
	}
}

func TestCriticalIncidentFreezesItsNeighbourhood(t *testing.T) {
	t.Parallel()
	critical := func(service, environment string) incident.Incident {
		return incident.Incident{Number: 7, Title: "LLM slow", Severity: incident.SeverityCritical, Status: incident.StatusOpen, Service: service, Environment: environment, OpenedAt: noon}
	}
	for _, tt := range []struct {
		name string
		in   incident.Incident
		want Verdict
	}{
		{"own service", critical("api", "prod"), Deny},
		{"neighbour", critical("web", "prod"), Deny},
		{"neighbour, environment unknown", critical("db", ""), Deny},
		{"elsewhere", critical("api", "staging"), Allow},
		{"unrelated", critical("search", "prod"), Allow},
		{"whole environment", critical("", "prod"), Deny},
		{"names nothing", critical("", ""), Allow},
		{"not critical", incident.Incident{Severity: incident.SeverityError, Service: "api"}, Allow},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := Decide(Input{Now: noon, Request: ask("api", noon, 0), Catalogue: shop(""), Incidents: []incident.Incident{tt.in}})
			require.Equal(t, tt.want, d.Verdict, d.Reasons)
			if tt.want == Deny {
				require.Equal(t, ReasonIncident, d.Reasons[0].Code)
				require.True(t, d.NextOpen.IsZero(), "nobody knows when it ends")
			}
		})
	}
}

func TestOwnRun(t *testing.T) {
	t.Parallel()
	own := claimedChange("mine", "api", noon, time.Hour)
	decide := func(own Change, freezes ...Freeze) Decision {
		return Decide(Input{Now: noon, Request: ask("api", noon, time.Hour), Catalogue: shop(""), Live: []Change{own}, Own: &own, Freezes: freezes})
	}
	d := decide(own)
	require.Equal(t, Allow, d.Verdict)
	require.Equal(t, ReasonOwnClaim, d.Reasons[0].Code)

	require.Equal(t, Deny, decide(own, Freeze{Start: noon}).Verdict, "a freeze stops a claim that has not started")
	running := own
	running.Status = StatusRunning
	require.Equal(t, Allow, decide(running, Freeze{Start: noon}).Verdict, "what runs may finish")

	confirmed := own
	confirmed.DecidedBy, confirmed.DecidedByID = "bob", "p-bob"
	require.Equal(t, ReasonConfirmed, decide(confirmed).Reasons[0].Code)

	rejected := confirmed
	rejected.Status = StatusRejected
	d = decide(rejected)
	require.Equal(t, Deny, d.Verdict)
	require.Equal(t, ReasonRejected, d.Reasons[0].Code)
}

func TestNextOpenPassesEveryObstacle(t *testing.T) {
	t.Parallel()
	r := ask("api", noon, time.Hour)
	in := Input{
		Now: noon, Request: r, Catalogue: shop(""),
		Live: []Change{
			claimedChange("a", "api", noon, time.Hour),                  // until 13:00, open from 15:00
			claimedChange("b", "web", noon.Add(5*time.Hour), time.Hour), // 17:00–18:00, open from 20:00
		},
		Freezes: []Freeze{{ID: "f", Start: noon.Add(8 * time.Hour), End: noon.Add(10 * time.Hour)}},
	}
	require.Equal(t, noon.Add(10*time.Hour), Decide(in).NextOpen)
	in.Horizon = noon.Add(9 * time.Hour)
	require.True(t, Decide(in).NextOpen.IsZero(), "beyond what is known")
	in.Horizon = time.Time{}
	in.Freezes[0].End = time.Time{}
	require.True(t, Decide(in).NextOpen.IsZero(), "an open freeze has no end")
}

// genWindow draws a window on a coarse grid, so that edges meet often.
func genWindow(t *rapid.T, label string) (time.Time, time.Duration) {
	const grid = 15 * time.Minute
	start := noon.Add(time.Duration(rapid.IntRange(0, 40).Draw(t, label+" start")) * grid)
	return start, time.Duration(rapid.IntRange(0, 6).Draw(t, label+" length")) * grid
}

var services = []string{"web", "api", "db", "search"}

func TestPropertyConflictIsSymmetricAndTheHoldsAgree(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		cat := shop(rapid.SampledFrom([]Scope{ScopeNeighbourhood, ScopeEnvironment}).Draw(t, "scope"))
		sa, sb := rapid.SampledFrom(services).Draw(t, "a"), rapid.SampledFrom(services).Draw(t, "b")
		aStart, aLen := genWindow(t, "a")
		bStart, bLen := genWindow(t, "b")
		blocks := func(service string, start time.Time, length time.Duration, other Change) bool {
			d := Decide(Input{Now: noon, Request: ask(service, start, length), Catalogue: cat, Live: []Change{other}})
			return d.Verdict == Confirm
		}
		a, b := claimedChange("a", sa, aStart, aLen), claimedChange("b", sb, bStart, bLen)
		ab, ba := blocks(sa, aStart, aLen, b), blocks(sb, bStart, bLen, a)
		if ab != ba {
			t.Fatalf("a sees b: %v, b sees a: %v", ab, ba)
		}
		calendar := &Calendar{cat: cat}
		if held := overlap(calendar.holdOf(a), calendar.holdOf(b)); held != ab {
			t.Fatalf("the rule says conflict=%v, the holds say %v", ab, held)
		}
	})
}

// overlap is what the database enforces.
func overlap(a, b Hold) bool {
	if !a.Start.Before(b.End) || !b.Start.Before(a.End) {
		return false
	}
	for _, x := range a.Resources {
		for _, y := range b.Resources {
			if x.Key == y.Key && (!x.Shared || !y.Shared) {
				return true
			}
		}
	}
	return false
}

func TestPropertyNoTwoAllowedClaimsAreCloserThanTheBand(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		cat := shop(rapid.SampledFrom([]Scope{ScopeNeighbourhood, ScopeEnvironment}).Draw(t, "scope"))
		var ledger []Change
		for i := range rapid.IntRange(2, 20).Draw(t, "claims") {
			service := rapid.SampledFrom(services).Draw(t, "service")
			start, length := genWindow(t, "window")
			in := Input{Now: noon, Request: ask(service, start, length), Catalogue: cat, Live: ledger}
			d := Decide(in)
			if d.Verdict != Allow && !d.NextOpen.IsZero() {
				in.Request.Start = d.NextOpen
				if again := Decide(in); again.Verdict != Allow {
					t.Fatalf("next open %s is not open: %v", d.NextOpen, again.Reasons)
				}
			}
			if d.Verdict == Allow {
				ledger = append(ledger, claimedChange(fmt.Sprint(i), service, start, length))
			}
		}
		for i, a := range ledger {
			near := cat.area(a.Service, "prod")
			for _, b := range ledger[i+1:] {
				gap := max(b.Start.Sub(a.End), a.Start.Sub(b.End))
				if near.has(b.Service) && gap < cat.band("prod") {
					t.Fatalf("%s of %s and %s of %s are %s apart", a.ID, a.Service, b.ID, b.Service, gap)
				}
			}
		}
	})
}

func TestNormaliseNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	good := Request{Service: "api", Environment: "prod", Duration: time.Hour}
	for _, tt := range []struct {
		name string
		edit func(*Request)
		want string
	}{
		{"unknown service", func(r *Request) { r.Service = "apj" }, `did you mean "api"? known: api, db, search, web`},
		{"far off service", func(r *Request) { r.Service = "checkout" }, `unknown service "checkout"; known: api`},
		{"no service", func(r *Request) { r.Service = "" }, "service is missing"},
		{"unknown environment", func(r *Request) { r.Environment = "Prod" }, `did you mean "prod"?`},
		{"unknown kind", func(r *Request) { r.Kind = "reboot" }, `kind "reboot" is not one of deploy, scale`},
		{"emergency by hand", func(r *Request) { r.Kind = KindEmergency }, "is not one of"},
		{"negative", func(r *Request) { r.Duration = -time.Second }, "duration -1s"},
		{"too long", func(r *Request) { r.Duration = MaxDuration + time.Second }, "is not between 0 and 168h"},
		{"over", func(r *Request) { r.Start = noon.Add(-2 * time.Hour) }, "is over"},
		{"too far", func(r *Request) { r.Start = noon.Add(MaxAhead + time.Hour) }, "more than 90 days ahead"},
		{"script url", func(r *Request) { r.URL = "javascript:alert(1)" }, "url must begin with https://"},
		{"line break", func(r *Request) { r.Summary = "a\nb" }, "summary holds control characters"},
		{"broken text", func(r *Request) { r.Actor = "\xff" }, "actor holds control characters"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := good
			tt.edit(&r)
			_, err := r.Normalise(shop(""), noon)
			require.ErrorIs(t, err, ErrInvalid)
			require.ErrorContains(t, err, tt.want)
		})
	}
	got, err := good.Normalise(shop(""), noon)
	require.NoError(t, err)
	require.Equal(t, KindDeploy, got.Kind)
	require.Equal(t, noon, got.Start)
}

func FuzzNormalise(f *testing.F) {
	f.Add("api", "prod", "deploy", "run", int64(0))
	f.Add("\x00", "\xff\xfe", "", "", int64(-1))
	f.Fuzz(func(t *testing.T, service, environment, kind, run string, length int64) {
		r := Request{Service: service, Environment: environment, Kind: Kind(kind), RunID: run, Duration: time.Duration(length)}
		got, err := r.Normalise(shop(""), noon)
		if err == nil {
			require.Equal(t, Allow, decideOne(got).Verdict)
		} else {
			require.ErrorIs(t, err, ErrInvalid)
		}
	})
}
