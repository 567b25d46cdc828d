package change

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"holdfast/server/incident"
)

// DecisionTTL is how long an answer may be relied on before asking again.
const DecisionTTL = 5 * time.Minute

// Input is everything a decision depends on.
type Input struct {
	Now time.Time
	// Request is normalised.
	Request   Request
	Catalogue Catalogue
	// Live are the changes that count (Tx.LiveChanges); more than needed does no harm.
	Live    []Change
	Freezes []Freeze
	// Incidents are the open critical ones.
	Incidents []incident.Incident
	// Own is the newest change of the same run, service and environment; nil when there is none.
	Own *Change
	// Horizon is until when Live and Freezes are complete; NextOpen is not given beyond it. Zero means no bound.
	Horizon time.Time
}

// Decide answers whether the change may go ahead. It is the one function behind
// every surface, and has no effect.
//
//	rollback, emergency action        allow
//	run was rejected                  deny
//	freeze, critical incident nearby  deny (a running change may finish)
//	run holds a claim                 allow
//	a change closer than the band     confirm
//	otherwise                         allow
func Decide(in Input) Decision {
	d := Decision{ExpiresAt: in.Now.Add(DecisionTTL)}
	if reason, verdict, ok := byKindOrRun(in); ok {
		d.Verdict, d.Reasons = verdict, []Reason{reason}
		return d
	}
	start, end := in.Request.Start, in.Request.Start.Add(in.Request.Duration)
	d.Freezes = in.freezesAt(start, end)
	for _, f := range d.Freezes {
		d.add(ReasonFreeze, freezeText(f))
	}
	for _, i := range in.incidentsNear() {
		d.add(ReasonIncident, incidentText(i))
	}
	denied := len(d.Reasons) > 0
	if !denied && in.ownClaim() {
		d.Verdict, d.Reasons = Allow, []Reason{ownReason(*in.Own)}
		return d
	}
	d.Blockers = in.blockersAt(start, end)
	for _, b := range d.Blockers {
		d.add(ReasonGuardBand, in.blockerText(b, start, end))
	}
	switch {
	case denied:
		d.Verdict = Deny
	case len(d.Blockers) > 0:
		d.Verdict = Confirm
	default:
		d.Verdict = Allow
		d.add(ReasonFree, fmt.Sprintf("no other change within %s of %s", in.band(), window(start, end)))
		return d
	}
	d.NextOpen = in.nextOpen()
	return d
}

func (d *Decision) add(code ReasonCode, text string) {
	d.Reasons = append(d.Reasons, Reason{Code: code, Text: text})
}

// byKindOrRun covers what does not depend on the calendar.
func byKindOrRun(in Input) (Reason, Verdict, bool) {
	r := in.Request
	switch {
	case alwaysFree(r.Kind):
		return Reason{ReasonAlwaysFree, fmt.Sprintf("a %s is never held back", r.Kind)}, Allow, true
	case in.Own == nil:
	case in.Own.Status == StatusRejected:
		text := fmt.Sprintf("%s rejected change %s of this run at %s; start a new run to ask again", in.Own.DecidedBy, in.Own.ID, stamp(in.Own.DecidedAt))
		return Reason{ReasonRejected, text}, Deny, true
	case in.Own.Status == StatusRunning:
		return ownReason(*in.Own), Allow, true
	}
	return Reason{}, "", false
}

// alwaysFree kinds stop the bleeding; nothing may hold them back.
func alwaysFree(k Kind) bool { return k == KindRollback || k == KindEmergency }

// ownClaim says whether the run holds a claim that is still good.
func (in Input) ownClaim() bool {
	return in.Own != nil && in.Own.Status == StatusClaimed && in.Now.Before(in.Own.ClaimedUntil)
}

func ownReason(own Change) Reason {
	if own.DecidedBy != "" {
		return Reason{ReasonConfirmed, fmt.Sprintf("%s confirmed change %s at %s", own.DecidedBy, own.ID, stamp(own.DecidedAt))}
	}
	return Reason{ReasonOwnClaim, fmt.Sprintf("this run holds change %s, %s", own.ID, window(own.Start, own.End))}
}

func (in Input) band() time.Duration { return in.Catalogue.band(in.Request.Environment) }

// blockersAt are the changes closer than the band to a window, in the order in
// which they were claimed.
func (in Input) blockersAt(start, end time.Time) []Change {
	near := in.Catalogue.area(in.Request.Service, in.Request.Environment)
	var out []Change
	for _, c := range in.Live {
		if in.counts(c) && near.has(c.Service) && distance(start, end, c.Start, in.endOf(c)) < in.band() {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b Change) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.FencingToken, b.FencingToken), cmp.Compare(a.ID, b.ID))
	})
	return out
}

// counts says whether another change can be in the way at all.
func (in Input) counts(c Change) bool {
	if in.Own != nil && c.ID == in.Own.ID {
		return false
	}
	// An emergency action without an environment may be anywhere.
	if c.Environment != in.Request.Environment && c.Environment != "" {
		return false
	}
	switch c.Status {
	case StatusClaimed:
		return c.ClaimedUntil.IsZero() || in.Now.Before(c.ClaimedUntil)
	case StatusRunning, StatusSucceeded, StatusFailed, StatusRolledBack, StatusOverrun:
		return true
	case StatusHeld, StatusCancelled, StatusRejected, StatusExpired:
		return false
	default:
		return false
	}
}

// endOf is where a change ends as far as is known: what still runs is not over.
func (in Input) endOf(c Change) time.Time {
	if c.Status == StatusRunning && c.End.Before(in.Now) {
		return in.Now
	}
	return c.End
}

// distance between two windows, end to start; negative when they overlap.
func distance(aStart, aEnd, bStart, bEnd time.Time) time.Duration {
	return max(bStart.Sub(aEnd), aStart.Sub(bEnd))
}

// freezesAt are the freezes that a window meets. AND across fields, OR inside one.
func (in Input) freezesAt(start, end time.Time) []Freeze {
	var out []Freeze
	for _, f := range in.Freezes {
		if f.matches(in.Request) && f.meets(start, end) {
			out = append(out, f)
		}
	}
	return out
}

func (f Freeze) matches(r Request) bool {
	return anyOf(f.Services, r.Service) && anyOf(f.Environments, r.Environment) && anyOf(f.Kinds, r.Kind)
}

func anyOf[T comparable](list []T, want T) bool {
	return len(list) == 0 || slices.Contains(list, want)
}

// meets is half-open overlap, where an instant is inside from Start on.
func (f Freeze) meets(start, end time.Time) bool {
	if !f.End.IsZero() && !start.Before(f.End) {
		return false
	}
	return f.Start.Before(end) || !f.Start.After(start)
}

// incidentsNear are the critical incidents in the neighbourhood. One that names
// only an environment freezes all of it; one that names neither freezes nothing.
func (in Input) incidentsNear() []incident.Incident {
	near := in.Catalogue.area(in.Request.Service, in.Request.Environment)
	var out []incident.Incident
	for _, i := range in.Incidents {
		if i.Status == incident.StatusResolved || i.Severity != incident.SeverityCritical {
			continue
		}
		if i.Environment != "" && i.Environment != in.Request.Environment {
			continue
		}
		if i.Service == "" && i.Environment != "" || i.Service != "" && near.has(i.Service) {
			out = append(out, i)
		}
	}
	return out
}

// maxSteps bounds the search for the next open slot; each step passes one obstacle.
const maxSteps = 1000

// nextOpen is the earliest start from which the request would be allowed, as
// far as is known; zero when that is open.
func (in Input) nextOpen() time.Time {
	if len(in.incidentsNear()) > 0 {
		return time.Time{}
	}
	start := in.Request.Start
	for range maxSteps {
		next, ok := in.past(start)
		if !ok || (!in.Horizon.IsZero() && next.After(in.Horizon)) {
			return time.Time{}
		}
		if next.Equal(start) {
			return start
		}
		start = next
	}
	return time.Time{}
}

// past moves a start behind everything that is in its way; false when there is
// no end to it.
func (in Input) past(start time.Time) (time.Time, bool) {
	end, next := start.Add(in.Request.Duration), start
	for _, f := range in.freezesAt(start, end) {
		if f.End.IsZero() {
			return next, false
		}
		next = later(next, f.End)
	}
	for _, b := range in.blockersAt(start, end) {
		next = later(next, in.endOf(b).Add(in.band()))
	}
	return next, true
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
