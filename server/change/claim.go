package change

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"holdfast/server/audit"
	"holdfast/server/identity"
)

const (
	verbCheck = "change.check"
	verbClaim = "change.claim"
)

// Check answers without any effect (a ci token or a viewer). An allow is no
// promise: only Claim reserves.
func (s *Calendar) Check(ctx context.Context, r Request) (Decision, error) {
	if _, err := s.asker(ctx, identity.RoleViewer, verbCheck, r); err != nil {
		return Decision{}, err
	}
	var d Decision
	err := s.store.View(ctx, func(tx Tx) error {
		now := tx.Now()
		r, err := r.Normalise(s.cat, now)
		if err != nil {
			return err
		}
		own, err := ownChange(tx, r)
		if err != nil {
			return err
		}
		d, err = s.decide(tx, r, own.Change, s.cat)
		return err
	})
	if err != nil {
		return Decision{}, fmt.Errorf("check change: %w", err)
	}
	return d, nil
}

// Claim decides and, in the same transaction, reserves: on allow the change is
// claimed, with a guarded hold, a fencing token and a lease until its start; on
// confirm it is held for a person to confirm or reject; on deny it is only
// audited. The same run asking again gets the change it has (a ci token or a
// responder). ErrInvalid for a request that makes no sense.
func (s *Calendar) Claim(ctx context.Context, r Request) (Decision, Change, error) {
	p, err := s.asker(ctx, identity.RoleResponder, verbClaim, r)
	if err != nil {
		return Decision{}, Change{}, err
	}
	if r.RunID == "" {
		return Decision{}, Change{}, fmt.Errorf("claim change: %w: run_id is missing; it names the run that owns the claim", ErrInvalid)
	}
	draft := Change{RunID: r.RunID}
	if draft.RequesterID, draft.RequesterName, err = s.requester(ctx, p, r.Actor); err != nil {
		return Decision{}, Change{}, err
	}
	d, c, err := s.claim(ctx, p, r, draft, s.cat)
	if errors.Is(err, ErrConflict) {
		// The database refused what the rule allows: a hold was made under a wider
		// band that has been narrowed since. A person decides.
		d, c, err = s.claim(ctx, p, r, draft, s.cat.widened(r.Environment))
	}
	if err != nil {
		return Decision{}, Change{}, fmt.Errorf("claim change: %w", err)
	}
	// Known by now: the request was checked against the catalogue.
	s.decisions.WithLabelValues(r.Environment, string(d.Verdict)).Inc()
	return d, c, nil
}

func (s *Calendar) claim(ctx context.Context, p identity.Principal, r Request, draft Change, cat Catalogue) (d Decision, c Change, err error) {
	err = s.store.InTx(ctx, func(tx Tx) error {
		d, c = Decision{}, Change{}
		if _, err := r.Normalise(s.cat, tx.Now()); err != nil {
			return err
		}
		if err := tx.Lock(LockKey(r.Environment)); err != nil {
			return err
		}
		// Waiting for the lock took time: "now" begins here.
		r, err := r.Normalise(s.cat, tx.Now())
		if err != nil {
			return err
		}
		own, err := currentChange(tx, r)
		if err != nil {
			return err
		}
		if d, err = s.decide(tx, r, own.Change, cat); err != nil {
			return err
		}
		c, err = s.apply(tx, p, r, d, own.Change, draft)
		return err
	})
	return d, c, err
}

// widened doubles the guard band of an environment.
func (c Catalogue) widened(environment string) Catalogue {
	out := Catalogue{Services: c.Services, Environments: map[string]Environment{}}
	for name, e := range c.Environments {
		if name == environment {
			e.GuardBand *= 2
		}
		out.Environments[name] = e
	}
	return out
}

// apply writes what a decision means.
func (s *Calendar) apply(tx Tx, p identity.Principal, r Request, d Decision, own *Change, draft Change) (Change, error) {
	switch d.Verdict {
	case Allow:
		if own != nil && own.Status != StatusHeld {
			return *own, nil
		}
		return s.reserve(tx, p, r, d, own, draft)
	case Confirm:
		return s.hold(tx, p, r, d, own, draft)
	case Deny:
		c := draft
		fill(&c, r)
		if own != nil {
			c = *own
		}
		return c, tx.Audit(decisionEntry(p, c, d))
	default:
		return Change{}, fmt.Errorf("%w: no verdict %q", ErrInvalid, d.Verdict)
	}
}

// reserve claims the window, for a held change whose way became free too.
func (s *Calendar) reserve(tx Tx, p identity.Principal, r Request, d Decision, own *Change, draft Change) (Change, error) {
	c := draft
	if own != nil {
		c = *own
		c.Blockers = nil
	}
	fill(&c, r)
	if err := s.claimed(tx, &c); err != nil {
		return c, err
	}
	if err := s.write(tx, &c, own != nil); err != nil {
		return c, err
	}
	if err := tx.PutHold(s.holdOf(c)); err != nil {
		return c, err
	}
	return c, tx.Audit(decisionEntry(p, c, d))
}

// claimed makes a change a claim: fencing token and lease until its start.
func (s *Calendar) claimed(tx Tx, c *Change) (err error) {
	c.Status = StatusClaimed
	c.ClaimedUntil = later(tx.Now(), c.Start).Add(s.claimLease)
	if c.FencingToken, err = tx.NextFencingToken(); err != nil {
		return fmt.Errorf("fencing token: %w", err)
	}
	return nil
}

// hold keeps a change for a person. Asking again changes nothing unless
// something else came in the way, which voids the confirmation asked for before.
func (s *Calendar) hold(tx Tx, p identity.Principal, r Request, d Decision, own *Change, draft Change) (Change, error) {
	blockers := idsOf(d.Blockers)
	if own != nil {
		if subset(blockers, own.Blockers) {
			return *own, nil
		}
		c := *own
		s.askConfirmation(&c, r, blockers, tx.Now())
		if err := saved(tx, &c); err != nil {
			return c, err
		}
		return c, tx.Audit(decisionEntry(p, c, d))
	}
	c := draft
	fill(&c, r)
	c.Status = StatusHeld
	c.ID = newID()
	c.CreatedAt = tx.Now()
	s.askConfirmation(&c, r, blockers, tx.Now())
	if err := tx.InsertChange(&c); err != nil {
		return c, fmt.Errorf("hold change: %w", err)
	}
	if err := announce(tx, c); err != nil {
		return c, err
	}
	return c, tx.Audit(decisionEntry(p, c, d))
}

func (s *Calendar) askConfirmation(c *Change, r Request, blockers []string, now time.Time) {
	fill(c, r)
	c.Blockers = blockers
	c.ConfirmBy = now.Add(s.confirmTTL)
	c.ParamsHash = paramsHash(*c)
}

func (s *Calendar) write(tx Tx, c *Change, exists bool) error {
	if exists {
		return saved(tx, c)
	}
	c.ID = newID()
	c.CreatedAt = tx.Now()
	if err := tx.InsertChange(c); err != nil {
		return fmt.Errorf("enter change: %w", err)
	}
	return announce(tx, *c)
}

// fill copies the request into a change.
func fill(c *Change, r Request) {
	c.Service, c.Environment, c.Kind = r.Service, r.Environment, r.Kind
	c.Start, c.End = r.Start, r.Start.Add(r.Duration)
	c.RunID, c.Summary, c.URL = r.RunID, r.Summary, r.URL
}

// holdOf is the reservation of a change: its window padded by half the band.
// What a person let through, and what nothing may stop, is visible to others but
// conflicts with nobody.
func (s *Calendar) holdOf(c Change) Hold {
	start, end := guarded(c.Start, c.End, s.cat.band(c.Environment))
	return Hold{
		ChangeID: c.ID, Resources: s.cat.resources(c.Service, c.Environment),
		Start: start, End: end, Exempt: alwaysFree(c.Kind) || c.DecidedByID != "",
	}
}

// decide gathers what the decision depends on; the wide look ahead is paid for
// only when the answer is not allow.
func (s *Calendar) decide(tx Tx, r Request, own *Change, cat Catalogue) (Decision, error) {
	in, err := s.input(tx, r, own, cat)
	if err != nil {
		return Decision{}, err
	}
	in.Horizon = r.Start
	d := Decide(in)
	if d.Verdict == Allow {
		return d, nil
	}
	in.Horizon = r.Start.Add(DefaultHorizon)
	// The answer stands without the look ahead, which a crowded calendar can refuse.
	if err := in.load(tx, in.Horizon.Add(r.Duration)); err != nil {
		s.log.Warn("cannot look for the next open slot", "environment", r.Environment, "error", err)
	} else {
		d = Decide(in)
	}
	return d, nil
}

func (s *Calendar) input(tx Tx, r Request, own *Change, cat Catalogue) (Input, error) {
	in := Input{Now: tx.Now(), Request: r, Catalogue: cat, Own: own}
	var err error
	if in.Incidents, err = tx.OpenCriticalIncidents(); err != nil {
		return in, err
	}
	return in, in.load(tx, r.Start.Add(r.Duration))
}

// load reads what can be in the way of windows between the start and until.
func (in *Input) load(tx Tx, until time.Time) (err error) {
	start, pad := in.Request.Start, in.band()+resolution
	if in.Live, err = tx.LiveChanges(in.Request.Environment, start.Add(-pad), until.Add(pad)); err != nil {
		return fmt.Errorf("read calendar: %w", err)
	}
	if in.Freezes, err = tx.Freezes(start, until.Add(resolution)); err != nil {
		return fmt.Errorf("read freezes: %w", err)
	}
	return nil
}

// ownChange is the change of the run that still says something: a live one, or
// one that was rejected. Empty when there is none.
func ownChange(tx Tx, r Request) (own optional, err error) {
	if r.RunID == "" {
		return own, nil
	}
	c, err := tx.ChangeByRun(r.RunID, r.Service, r.Environment)
	if errors.Is(err, ErrNotFound) {
		return rejectedChange(tx, r)
	}
	return optional{&c}, err
}

// optional is a change or none.
type optional struct{ *Change }

// rejectedFor is how long after its window a rejection holds for the run. No
// pipeline polls longer, and the look back stays short.
const rejectedFor = 24 * time.Hour

// rejectedChange is the newest change of the run when it was rejected.
func rejectedChange(tx Tx, r Request) (own optional, err error) {
	recent, err := tx.Changes(Filter{
		Environment: r.Environment, Service: r.Service, From: tx.Now().Add(-rejectedFor), Limit: maxList,
	})
	if err != nil {
		return own, err
	}
	i := slices.IndexFunc(recent, func(c Change) bool { return c.RunID == r.RunID })
	if i >= 0 && recent[i].Status == StatusRejected {
		own.Change = &recent[i]
	}
	return own, nil
}

// currentChange is ownChange with what lapsed in the meantime put away.
func currentChange(tx Tx, r Request) (optional, error) {
	own, err := ownChange(tx, r)
	if err != nil || own.Change == nil || !own.lapsed(tx.Now()) {
		return own, err
	}
	return optional{}, expire(tx, own.Change)
}

func newID() string { return strings.ToLower(rand.Text()) }

func idsOf(list []Change) []string {
	ids := make([]string, len(list))
	for i, c := range list {
		ids[i] = c.ID
	}
	return ids
}

func subset(part, whole []string) bool {
	return !slices.ContainsFunc(part, func(id string) bool { return !slices.Contains(whole, id) })
}

// decisionEntry is the audit row of a decision: only an allow is allowed.
func decisionEntry(p identity.Principal, c Change, d Decision) audit.Entry {
	outcome := audit.Denied
	if d.Verdict == Allow {
		outcome = audit.Allowed
	}
	texts := make([]string, 0, maxReasonsAudited)
	for _, r := range d.Reasons[:min(len(d.Reasons), maxReasonsAudited)] {
		texts = append(texts, r.Text)
	}
	e := entry(p, verbClaim, c, outcome, strings.Join(texts, "; "))
	e.Details["verdict"] = string(d.Verdict)
	return e
}

const maxReasonsAudited = 5
