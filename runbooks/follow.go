package runbooks

import (
	"cmp"
	"fmt"
	"strings"

	"holdfast/actions"
)

// progress is how far an action run is, as a step sees it.
type progress int

const (
	// notInForce: accepted, or waiting for gateways.
	notInForce progress = iota
	// unjudged: in force, and there is no data yet to verify it with.
	unjudged
	// contradicted: in force, and the data says that it has no effect.
	contradicted
	// verified: in force and verified.
	verified
	// gone: failed, taken back or expired.
	gone
)

// progressOf reads the progress of an action run and says it in a few words.
func progressOf(run actions.Run) (progress, string) {
	switch run.Status {
	case actions.StatusAccepted:
		return notInForce, "accepted"
	case actions.StatusExecuting:
		if len(run.Missing) > 0 {
			return notInForce, "waiting for " + strings.Join(run.Missing, ", ")
		}
		return notInForce, "written, waiting for the gateways"
	case actions.StatusActive:
		switch v := run.Verification; v.Verdict {
		case actions.Verified:
			return verified, cmp.Or(v.Detail, "verified")
		case actions.NotVerified:
			return contradicted, cmp.Or(v.Detail, "not verified")
		case actions.Inconclusive:
			return unjudged, cmp.Or(v.Detail, "no data")
		default:
			return unjudged, cmp.Or(v.Detail, "in force, not judged yet")
		}
	case actions.StatusFailed:
		return gone, cmp.Or(run.EndDetail, string(run.EndReason))
	default:
		if run.EndReason == actions.EndExpired {
			return gone, "its lease expired at " + clock(run.EndedAt)
		}
		return gone, fmt.Sprintf("it was taken back by %s at %s", run.EndedBy, clock(run.EndedAt))
	}
}

// nextAction follows the action run of the current step.
func (m *mover) nextAction(v view, waits waits) (transition, bool) {
	state := m.state()
	switch {
	case v.refused != nil:
		m.fail(StepFailed, clip(v.refused.Error(), maxReason))
		return m.transition, true
	case v.action == nil:
		m.fail(StepFailed, fmt.Sprintf("it was asked for at %s and could not be started within its own lease: too late now", clock(askedAt(*state))))
		return m.transition, true
	case state.ActionRun != v.action.ID || state.Deadline.IsZero():
		state.ActionRun, state.Deadline = v.action.ID, m.now.Add(m.step().Timeout)
		m.await(v, waits)
		return m.transition, true
	default:
		return m.watch(v, waits)
	}
}

// await shows how far the action run is. The store wakes the run when that
// moves; looking again is for what it misses.
func (m *mover) await(v view, waits waits) {
	found, detail := progressOf(*v.action)
	m.state().Detail = detail
	m.run.NextAt = m.now
	if found < verified {
		m.run.NextAt = earlier(m.now.Add(waits.checkEvery), m.state().Deadline)
	}
}

// watch waits until the action run is in force and verified, and the criterion
// holds. A run that does not move stays due: looking again writes nothing.
func (m *mover) watch(v view, waits waits) (transition, bool) {
	found, detail := progressOf(*v.action)
	over := !m.now.Before(m.state().Deadline)
	switch {
	case found == gone:
		m.fail(StepFailed, detail)
	case found == verified && m.step().Criterion == nil:
		m.pass(detail)
	case found == verified && v.judged != nil:
		m.judge(*v.judged, waits)
	case found == verified:
		return transition{}, false
	case over && found == notInForce:
		m.fail(StepFailed, fmt.Sprintf("not in force after %s: %s", m.step().Timeout, detail))
	case over && found == contradicted:
		m.fail(StepFailed, fmt.Sprintf("in force, but not verified after %s: %s", m.step().Timeout, detail))
	case over:
		m.fail(StepInconclusive, fmt.Sprintf("in force, but not verified after %s: %s", m.step().Timeout, detail))
	case m.state().Detail == detail:
		return transition{}, false
	default:
		m.await(v, waits)
	}
	return m.transition, true
}
