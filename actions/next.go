package actions

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"holdfast/gpuguard/policy"
)

// timing are the waits of the state machine.
type timing struct {
	// ackWait is how long gateways may take before the missing ones are named.
	ackWait time.Duration
	// verifyAfter is the delay before the first judgement, verifyEvery between
	// judgements that do not confirm, verifyFor how long they are repeated.
	verifyAfter, verifyEvery, verifyFor time.Duration
	// settle is how long after enforcement the absence of an effect in the metrics does not count yet.
	settle time.Duration
}

// expiryMargin is the time before a lease ends in which nothing is judged any
// more: a gateway ends the lease by its own clock, and may be a little ahead.
const expiryMargin = 2 * time.Second

// warnAhead is the most a thread is warned before a lease ends; short leases take a quarter.
const warnAhead = 2 * time.Minute

// view is everything a transition is decided on beside the run itself.
type view struct {
	snap Snapshot
	// For an accepted run: whether its requester may still run it (role says
	// what is needed), and what it would do now.
	allowed bool
	role    string
	plan    Plan
	planErr error
	// verification is the judgement of an active run; nil when none was made.
	verification *Verification
}

// transition is one step, to be done in one transaction.
type transition struct {
	// run is the run afterwards; Revision and RevertRevision are set when the revision is known.
	run Run
	// insert adds the layers of the run, remove takes them away; cause is why
	// there is a new revision.
	// extend moves their end to the run's.
	insert, remove, extend bool
	cause                  string
	// openChange and closeChange keep the calendar in step.
	openChange, closeChange bool
	// kind is what is recorded; empty records nothing.
	kind         EventKind
	text, reason string
}

// next decides the next step of a run: pure, so that every table and every
// random walk can be checked. False means that there is nothing to do yet.
func next(run Run, v view, now time.Time, t timing) (transition, bool) {
	switch run.Status {
	case StatusAccepted:
		return nextAccepted(run, v, now), true
	case StatusExecuting:
		return nextExecuting(run, v, now, t)
	case StatusActive:
		return nextActive(run, v, now, t)
	case StatusReverting:
		return nextReverting(run, v, now, t)
	default:
		return transition{}, false
	}
}

func nextAccepted(run Run, v view, now time.Time) transition {
	switch {
	case !v.allowed:
		tr := fail(run, EndRefused, now, fmt.Sprintf("%s may not run %s: it needs the role %s", run.Requester.Name, run.Action, v.role))
		tr.kind = EventDenied
		return tr
	case now.Sub(run.AcceptedAt) > run.TTL:
		// A measure asked for long ago fits no longer; whoever still wants it asks again.
		return fail(run, EndExpired, now, fmt.Sprintf("it was accepted at %s and could not be done within its own lease of %s", clock(run.AcceptedAt), run.TTL))
	case v.planErr != nil:
		return fail(run, EndInvalid, now, v.planErr.Error())
	case len(v.plan.Leased) > 0:
		return fail(run, EndLeased, now, (&LeasedError{Lease: v.plan.Leased[0]}).Error())
	}
	run.Plan = v.plan
	run.Status, run.ExecutedAt, run.ExpiresAt = StatusExecuting, now, now.Add(run.TTL)
	run.Lineage, run.NextAt = v.snap.Lineage, now
	return transition{
		run: run, insert: true, cause: fmt.Sprintf("run %s executed: %s", run.ID, run.Plan.Summary), openChange: true,
		kind: EventExecuted, text: fmt.Sprintf("%s: the new policy is written, waiting for the gateways", run.Plan.Summary),
	}
}

func nextExecuting(run Run, v view, now time.Time, t timing) (transition, bool) {
	if run.Lineage != v.snap.Lineage {
		// The database was restored: its layers are in the new lineage's head.
		run.Lineage, run.Revision = v.snap.Lineage, v.snap.Revision
		return transition{run: run}, true
	}
	if g, ok := rejecting(v.snap, run); ok {
		tr := fail(run, EndRejected, now, fmt.Sprintf("gateway %s rejected revision %d: %s", g.Name, g.RejectedRevision, g.Error))
		tr.remove, tr.closeChange = true, true
		tr.cause = fmt.Sprintf("run %s taken back: gateway %s rejected it", run.ID, g.Name)
		return tr, true
	}
	if !now.Before(run.ExpiresAt) {
		return takeBack(run, EndExpired, systemName, now), true
	}
	if silent(v.snap.Gateways) && now.Before(run.ExecutedAt.Add(t.ackWait)) {
		return transition{}, false
	}
	missing := missingAt(v.snap, run.Revision)
	if len(missing) > 0 {
		return waiting(run, missing, v.snap.Gateways, now, run.ExecutedAt.Add(t.ackWait))
	}
	run.Status, run.EnforcedAt, run.Missing = StatusActive, now, nil
	text := fmt.Sprintf("%s: in force on %s until %s", run.Plan.Summary, gateways(liveCount(v.snap.Gateways)), clock(run.ExpiresAt))
	if liveCount(v.snap.Gateways) == 0 {
		run.Verification = Verification{Verdict: Inconclusive, Detail: "no live gateway", At: now}
		text = fmt.Sprintf("%s: no live gateway, so nothing enforces it yet; a gateway that connects takes it over", run.Plan.Summary)
	}
	run.NextAt = nextLook(run, t)
	return transition{run: run, kind: EventEnforced, text: text}, true
}

func nextActive(run Run, v view, now time.Time, t timing) (transition, bool) {
	if !now.Before(run.ExpiresAt) {
		return takeBack(run, EndExpired, systemName, now), true
	}
	if warnAt := warnTime(run); !run.Warned && !now.Before(warnAt) {
		run.Warned = true
		run.NextAt = nextLook(run, t)
		return transition{
			run: run, kind: EventWarned,
			text: fmt.Sprintf("%s: ends at %s, in %s, unless it is renewed", run.Plan.Summary, clock(run.ExpiresAt), roundUp(run.ExpiresAt.Sub(now))),
		}, true
	}
	if at, due := verifyTime(run, t); due && !now.Before(at) && v.verification != nil {
		return judged(run, *v.verification, now, t), true
	}
	if want := nextLook(run, t); !run.NextAt.Equal(want) && want.After(now) {
		run.NextAt = want
		return transition{run: run}, true
	}
	return transition{}, false
}

// judged takes a verification in; only another verdict is news.
func judged(run Run, found Verification, now time.Time, t timing) transition {
	before := run.Verification.Verdict
	found.At = now
	run.Verification = found
	run.NextAt = nextLook(run, t)
	tr := transition{run: run}
	if found.Verdict != before {
		tr.kind = EventVerified
		tr.text = fmt.Sprintf("%s: %s", run.Plan.Summary, verdictText(found))
	}
	return tr
}

func nextReverting(run Run, v view, now time.Time, t timing) (transition, bool) {
	if run.Lineage != v.snap.Lineage {
		run.Lineage, run.RevertRevision = v.snap.Lineage, v.snap.Revision
		return transition{run: run}, true
	}
	if silent(v.snap.Gateways) && now.Before(run.EndedAt.Add(t.ackWait)) {
		return transition{}, false
	}
	var missing []string
	for _, g := range v.snap.Gateways {
		if g.Live && !released(g, run, v.snap, now) {
			missing = append(missing, g.Name)
		}
	}
	slices.Sort(missing)
	if len(missing) > 0 {
		return waiting(run, missing, v.snap.Gateways, now, run.EndedAt.Add(t.ackWait))
	}
	run.Status, run.Missing, run.NextAt = StatusEnded, nil, time.Time{}
	text := fmt.Sprintf("%s: %s, %s back to the policy without it", run.Plan.Summary, endText(run), gateways(liveCount(v.snap.Gateways)))
	if liveCount(v.snap.Gateways) == 0 {
		text = fmt.Sprintf("%s: %s; no gateway is connected", run.Plan.Summary, endText(run))
	}
	return transition{run: run, closeChange: true, kind: EventEnded, text: text, reason: string(run.EndReason)}, true
}

// takeBack removes the layers; the run has ended when the gateways say so.
func takeBack(run Run, why EndReason, by string, now time.Time) transition {
	run.Status, run.EndReason, run.EndedBy, run.EndedAt = StatusReverting, why, by, now
	run.Missing, run.NextAt = nil, now
	tr := transition{
		run: run, remove: true, kind: EventReverting, reason: string(why),
		cause: fmt.Sprintf("run %s reverted by %s", run.ID, by),
		text:  fmt.Sprintf("%s: taken back by %s, waiting for the gateways", run.Plan.Summary, by),
	}
	if why == EndExpired {
		tr.cause = fmt.Sprintf("lease of run %s expired", run.ID)
		tr.text = fmt.Sprintf("%s: the lease has expired, waiting for the gateways", run.Plan.Summary)
	}
	return tr
}

// withdraw ends a run that was never in force.
func withdraw(run Run, by string, now time.Time) transition {
	run.Status, run.EndReason, run.EndedBy, run.EndedAt = StatusEnded, EndReverted, by, now
	run.NextAt = time.Time{}
	return transition{
		run: run, kind: EventEnded, reason: string(EndReverted),
		text: fmt.Sprintf("%s: taken back by %s before it was in force", run.Plan.Summary, by),
	}
}

func fail(run Run, why EndReason, now time.Time, detail string) transition {
	run.Status, run.EndReason, run.EndDetail = StatusFailed, why, clip(detail, 500)
	run.EndedBy, run.EndedAt, run.NextAt, run.Missing = systemName, now, time.Time{}, nil
	return transition{
		run: run, kind: EventFailed, reason: string(why),
		text: fmt.Sprintf("%s: not in force. %s", run.Plan.Summary, run.EndDetail),
	}
}

// waiting names the gateways that have not acknowledged once the limit has
// passed. It goes on waiting: a gateway that is gone leaves by its membership lease.
func waiting(run Run, missing []string, all []Gateway, now, limit time.Time) (transition, bool) {
	if now.Before(limit) || slices.Equal(run.Missing, missing) {
		return transition{}, false
	}
	news := len(run.Missing) == 0
	run.Missing = missing
	if !news {
		return transition{run: run}, true
	}
	return transition{
		run: run, kind: EventWaiting,
		text: fmt.Sprintf("%s: still waiting for %s", run.Plan.Summary, strings.Join(withErrors(missing, all), ", ")),
	}, true
}

func withErrors(names []string, all []Gateway) []string {
	out := slices.Clone(names)
	for i, name := range names {
		for _, g := range all {
			if g.Name == name && g.Error != "" {
				out[i] = fmt.Sprintf("%s (rejected revision %d: %s)", name, g.RejectedRevision, clip(g.Error, 200))
			}
		}
	}
	return out
}

// missingAt names the live gateways that do not hold the revision yet.
func missingAt(snap Snapshot, revision int64) []string {
	var names []string
	for _, g := range snap.Gateways {
		if g.Live && !g.holds(snap, revision) {
			names = append(names, g.Name)
		}
	}
	slices.Sort(names)
	return names
}

// holds says whether the gateway acknowledged the revision or a later one. One
// that is ahead of the newest revision holds another history: the database was
// restored from a backup, and the gateway refuses what is older than it has.
func (g Gateway) holds(snap Snapshot, revision int64) bool {
	return g.Lineage == snap.Lineage && g.Revision >= revision && g.Revision <= snap.Revision
}

// rejecting finds a live gateway that was given the run's layers and refused
// them. It may have skipped to a later revision; the layers are in that too.
func rejecting(snap Snapshot, run Run) (Gateway, bool) {
	for _, g := range snap.Gateways {
		ours := g.Lineage == "" || g.Lineage == run.Lineage && g.Revision < run.Revision
		if g.Live && ours && g.RejectedRevision >= run.Revision {
			return g, true
		}
	}
	return Gateway{}, false
}

// released says whether a gateway no longer enforces the run: it took the
// revision without it, or ended the lease by its own clock.
func released(g Gateway, run Run, snap Snapshot, now time.Time) bool {
	if g.holds(snap, run.RevertRevision) {
		return true
	}
	if now.Before(run.ExpiresAt) || g.StateAt.Before(run.ExpiresAt) {
		return false
	}
	return !slices.ContainsFunc(run.LayerIDs(), func(id string) bool { return slices.Contains(g.State.ActiveOverrides, id) })
}

// verifyTime is when an active run is judged next; false when no more.
func verifyTime(run Run, t timing) (time.Time, bool) {
	at := run.EnforcedAt.Add(t.verifyAfter)
	switch {
	case run.Verification.Verdict == Verified:
		return time.Time{}, false
	case !run.Verification.At.IsZero():
		at = run.Verification.At.Add(t.verifyEvery)
	}
	over := at.After(run.EnforcedAt.Add(t.verifyFor)) || !at.Before(run.ExpiresAt.Add(-expiryMargin))
	return at, !over
}

func warnTime(run Run) time.Time {
	return run.ExpiresAt.Add(-min(warnAhead, run.TTL/4))
}

// nextLook is when an active run has something to do next.
func nextLook(run Run, t timing) time.Time {
	at := run.ExpiresAt
	if warnAt := warnTime(run); !run.Warned && warnAt.Before(at) {
		at = warnAt
	}
	if verifyAt, due := verifyTime(run, t); due && verifyAt.Before(at) {
		at = verifyAt
	}
	return at
}

// renewed moves the end of the lease to extend from now, at most to the
// longest lease and never nearer. False when it reaches that far already: within
// a twentieth it is the same wish again, such as a click replayed after a crash.
func renewed(run Run, spec Spec, extend time.Duration, by string, now time.Time, t timing) (transition, bool) {
	extend = min(extend, spec.MaxTTL)
	until := now.Add(extend)
	if until.Sub(run.ExpiresAt) <= extend/20 {
		return transition{}, false
	}
	run.ExpiresAt, run.TTL, run.Warned = until, extend, false
	if run.Status == StatusActive {
		run.NextAt = nextLook(run, t)
	}
	return transition{
		run: run, kind: EventRenewed, extend: true, cause: fmt.Sprintf("lease of run %s renewed by %s", run.ID, by),
		text: fmt.Sprintf("%s: renewed by %s until %s", run.Plan.Summary, by, clock(until)),
	}, true
}

const systemName = "system"

func endText(run Run) string {
	if run.EndReason == EndExpired {
		return "expired"
	}
	return "taken back by " + run.EndedBy
}

func verdictText(v Verification) string {
	text := map[Verdict]string{Verified: "verified", NotVerified: "not verified", Inconclusive: "inconclusive"}[v.Verdict]
	if v.Detail != "" {
		text += ": " + v.Detail
	}
	return text
}

// silent says that gateways are known and none is heard: after a restart of the
// server they all look gone for a moment, so they get the usual time to answer.
func silent(all []Gateway) bool { return len(all) > 0 && liveCount(all) == 0 }

func liveCount(all []Gateway) int {
	n := 0
	for _, g := range all {
		if g.Live {
			n++
		}
	}
	return n
}

func gateways(n int) string {
	if n == 1 {
		return "1 gateway"
	}
	return fmt.Sprintf("%d gateways", n)
}

func clock(t time.Time) string { return t.UTC().Format("15:04:05 UTC") }

// roundUp shows a remaining time in whole seconds, never as none.
func roundUp(d time.Duration) time.Duration {
	return max(time.Second, d.Round(time.Second))
}

// outlived lists the overrides of a snapshot that outlived their lease by more than grace.
func outlived(overrides []policy.Override, now time.Time, grace time.Duration) []policy.Override {
	var over []policy.Override
	for _, o := range overrides {
		if !o.Expires.IsZero() && now.Sub(o.Expires) > grace {
			over = append(over, o)
		}
	}
	return over
}
