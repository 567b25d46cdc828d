package policy

import (
	"math"
	"time"
)

// maxLease bounds remaining times read from the wire, far below what a
// time.Duration can hold.
const maxLease = 365 * 24 * time.Hour

// LiveAt says whether the lease runs at now: it ends at Expires exactly. A zero
// Expires has no end.
func (o Override) LiveAt(now time.Time) bool {
	return o.Expires.IsZero() || o.Expires.After(now)
}

// Remaining is the lease time left at now, 0 when it has ended, and the
// longest lease when it has no end.
func (o Override) Remaining(now time.Time) time.Duration {
	if o.Expires.IsZero() {
		return maxLease
	}
	return min(maxLease, max(0, o.Expires.Sub(now)))
}

// Live returns the overrides that run at now, in their order.
func Live(overrides []Override, now time.Time) []Override {
	live := make([]Override, 0, len(overrides))
	for _, o := range overrides {
		if o.LiveAt(now) {
			live = append(live, o)
		}
	}
	return live
}

// NextExpiry is when the first of the overrides that run at now ends; false
// when none of them has an end.
func NextExpiry(overrides []Override, now time.Time) (time.Time, bool) {
	var next time.Time
	for _, o := range overrides {
		if !o.Expires.IsZero() && o.Expires.After(now) && (next.IsZero() || o.Expires.Before(next)) {
			next = o.Expires
		}
	}
	return next, !next.IsZero()
}

// StampRemaining returns a copy with RemainingSeconds set for a message written
// at now; ended overrides are left out.
func StampRemaining(overrides []Override, now time.Time) []Override {
	out := Live(overrides, now)
	for i := range out {
		out[i].RemainingSeconds = out[i].Remaining(now).Seconds()
	}
	return out
}

// ArmExpiry returns a copy with Expires set by the receiver's clock for a
// message received at now: a lease never outlives its remaining time, whatever
// the sender's clock said. A remaining time of 0 or less has ended.
func ArmExpiry(overrides []Override, now time.Time) []Override {
	out := make([]Override, len(overrides))
	copy(out, overrides)
	for i := range out {
		out[i].Expires = now.Add(seconds(out[i].RemainingSeconds))
	}
	return out
}

// seconds converts without overflow; anything that is not above 0 is 0.
func seconds(s float64) time.Duration {
	if !(s > 0) {
		return 0
	}
	return time.Duration(math.Min(s, maxLease.Seconds()) * float64(time.Second))
}
