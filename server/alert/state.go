package alert

import (
	"maps"
	"time"
)

// effect is what one incoming alert did to its occurrence.
type effect string

const (
	// effectNew: a new occurrence fires.
	effectNew effect = "new"
	// effectClosed: a new occurrence that was over before it was seen; it pages nobody.
	effectClosed effect = "closed"
	// effectUpdated: it goes on and what it says changed.
	effectUpdated effect = "updated"
	// effectResolved: it ended.
	effectResolved effect = "resolved"
	// effectDuplicate: nothing new.
	effectDuplicate effect = "duplicate"
	// effectStale: a firing of an episode known to be over; it reopens nothing (C23).
	effectStale effect = "stale"
)

// next is the state machine of one occurrence. known is the occurrence of the
// same fingerprint and start, latest the newest start of that fingerprint; both
// nil when there is none, and latest is not looked at when known is set. Only
// the newest start of a fingerprint can fire: a start after it is a new episode
// (see superseded), a start before its end or before it belongs to the past.
//
// Any order and repetition of the same deliveries ends in the same statuses.
func next(known, latest *Occurrence, in Incoming, now time.Time) (Occurrence, effect) {
	if known != nil {
		return again(*known, in, now)
	}
	o := first(in, now)
	switch {
	case in.Status == StatusResolved:
		return end(o, endOf(in, now)), effectClosed
	case latest == nil:
		return o, effectNew
	case in.StartsAt.Before(latest.StartsAt):
		return end(o, latest.StartsAt), effectStale
	case latest.Status == StatusResolved && !in.StartsAt.After(latest.EndsAt):
		return end(o, latest.EndsAt), effectStale
	default:
		return o, effectNew
	}
}

// first makes the occurrence of an alert seen for the first time.
func first(in Incoming, now time.Time) Occurrence {
	severity, _ := severityOf(in.Labels)
	return Occurrence{
		Fingerprint: in.Fingerprint, StartsAt: in.StartsAt, Status: StatusFiring, Severity: severity,
		Labels: in.Labels, Annotations: in.Annotations, GeneratorURL: in.GeneratorURL,
		FirstSeenAt: now, LastReceivedAt: now,
	}
}

// again takes a further delivery of a known occurrence. Each one counts and
// refreshes the time of last report, identical or not (C26).
func again(o Occurrence, in Incoming, now time.Time) (Occurrence, effect) {
	o.Repeats++
	if now.After(o.LastReceivedAt) {
		o.LastReceivedAt = now
	}
	switch {
	case o.Status == StatusResolved && in.Status == StatusFiring:
		return o, effectStale
	case o.Status == StatusResolved:
		// Sources differ in when they saw the end; the earliest counts, so that a
		// late one cannot swallow a new episode.
		if !in.EndsAt.IsZero() && in.EndsAt.Before(o.EndsAt) {
			o.EndsAt = in.EndsAt
		}
		return o, effectDuplicate
	}
	changed := !maps.Equal(o.Annotations, in.Annotations) || !maps.Equal(o.Labels, in.Labels) || o.GeneratorURL != in.GeneratorURL
	o.Labels, o.Annotations, o.GeneratorURL = in.Labels, in.Annotations, in.GeneratorURL
	o.Severity, _ = severityOf(in.Labels)
	if in.Status == StatusResolved {
		return end(o, endOf(in, now)), effectResolved
	}
	if changed {
		return o, effectUpdated
	}
	return o, effectDuplicate
}

// superseded ends the newest known occurrence of a fingerprint when a later
// start arrives: its own end was never delivered, but one alert has one episode
// at a time. False when there is nothing to end.
func superseded(latest *Occurrence, in Incoming) (Occurrence, bool) {
	if latest == nil || latest.Status == StatusResolved || !in.StartsAt.After(latest.StartsAt) {
		return Occurrence{}, false
	}
	return end(*latest, in.StartsAt), true
}

// endOf is when a resolved alert ended: now when its source does not say.
func endOf(in Incoming, now time.Time) time.Time {
	if in.EndsAt.IsZero() {
		return endAfter(in.StartsAt, now)
	}
	return in.EndsAt
}

func end(o Occurrence, at time.Time) Occurrence {
	o.Status = StatusResolved
	o.EndsAt = endAfter(o.StartsAt, at)
	return o
}

// Quiet says whether a firing occurrence was not reported for longer than after:
// its source may be gone, or its end lost.
func (o Occurrence) Quiet(now time.Time, after time.Duration) bool {
	return o.Status == StatusFiring && now.Sub(o.LastReceivedAt) > after
}
