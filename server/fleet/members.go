package fleet

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"holdfast/gpuguard/policy"
	"holdfast/server/audit"
	"holdfast/server/identity"
	"holdfast/strict"
)

// MemberState says in one word how a gateway stands.
type MemberState string

// Member states.
const (
	// MemberLive: heard, and holds the newest revision.
	MemberLive MemberState = "live"
	// MemberBehind: heard, and holds an older revision, another lineage, or a
	// revision this database does not know (it was restored from a backup).
	MemberBehind MemberState = "behind"
	// MemberRejected: heard, and refused the revision it was given.
	MemberRejected MemberState = "rejected"
	// MemberStale: not heard within the membership lease; it goes on with what it has.
	MemberStale MemberState = "stale"
)

// Member is a gateway with its standing.
type Member struct {
	Gateway
	Standing MemberState
	// HeardSecondsAgo is the time since it was last heard (seconds).
	HeardSecondsAgo float64
}

// Gateways lists the known gateways by name.
func (s *Service) Gateways(ctx context.Context) ([]Member, error) {
	var members []Member
	err := s.store.View(ctx, func(tx Tx) error {
		head, err := tx.PolicyHead()
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
		all, err := tx.Gateways()
		if err != nil {
			return err
		}
		members = make([]Member, len(all))
		for i, g := range all {
			members[i] = Member{Gateway: g, Standing: standing(g, head, tx.Now()), HeardSecondsAgo: max(0, tx.Now().Sub(g.LastHeardAt).Seconds())}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list gateways: %w", err)
	}
	slices.SortFunc(members, func(a, b Member) int { return strings.Compare(a.Name, b.Name) })
	return members, nil
}

func standing(g Gateway, head Head, now time.Time) MemberState {
	held := g.Lineage == head.Lineage && g.Revision == head.Revision
	switch {
	case !g.Live(now):
		return MemberStale
	case held:
		return MemberLive
	case g.ahead(head):
		return MemberBehind
	case g.Result == policy.AckRejected || g.RejectedRevision > g.Revision:
		return MemberRejected
	default:
		return MemberBehind
	}
}

// ahead says that the gateway holds a revision of this lineage that was never
// written here: the database is older than what it handed out once.
func (g Gateway) ahead(head Head) bool {
	return g.Lineage == head.Lineage && g.Revision > head.Revision
}

// Bounds of an Ack. A policy has far fewer parts than maxReported.
const (
	maxInstance = 128
	maxError    = 2000
	maxReported = 4096
	verbAck     = "gateway.ack"
)

// Ack takes in what a gateway says of itself: it did this with a revision, and
// it is alive. The caller is a gateway token; one with scopes "gateway:<name>"
// speaks for those only. ErrInvalid names the field. A lineage or revision that
// is not known here is recorded as it is said: the standing shows it.
func (s *Service) Ack(ctx context.Context, a policy.Ack) error {
	p, err := identity.RequireToken(ctx, identity.TokenGateway)
	if err != nil {
		return s.deny(ctx, p, verbAck, "gateway:"+short(a.Gateway), err)
	}
	if err := checkAck(a); err != nil {
		return err
	}
	if !p.HasScope("gateway", a.Gateway) {
		err := fmt.Errorf("%w: the token %q does not speak for gateway %s", identity.ErrForbidden, p.Name, a.Gateway)
		return s.deny(ctx, p, verbAck, "gateway:"+a.Gateway, err)
	}
	var before, after Gateway
	var head Head
	err = s.store.InTx(ctx, func(tx Tx) error {
		if head, err = tx.PolicyHead(); err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
		before, after, err = s.record(tx, a)
		return err
	})
	if err != nil {
		return fmt.Errorf("acknowledge for gateway %s: %w", a.Gateway, err)
	}
	s.samples.add(after)
	s.report(ctx, before, after)
	if after.ahead(head) && before.Revision != after.Revision {
		s.log.WarnContext(ctx, "a gateway is ahead of this database, which was probably restored from a backup; an admin must confirm the lineage",
			"gateway", after.Name, "gateway_revision", after.Revision, "revision", head.Revision)
	}
	return nil
}

// record writes the gateway's row.
func (s *Service) record(tx Tx, a policy.Ack) (before, after Gateway, err error) {
	if err := tx.Lock("gateway:" + a.Gateway); err != nil {
		return before, after, err
	}
	before, err = tx.Gateway(a.Gateway)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return before, after, err
	}
	after = next(before, a, tx.Now())
	after.Prior, after.PriorAt = s.samples.prior(after, before)
	if changed(before, after, tx.Now()) {
		tx.Touch("gateways", a.Gateway)
	}
	if after.RejectedRevision != 0 && after.RejectedRevision != before.RejectedRevision {
		e := audit.Entry{
			ActorID: "gateway:" + a.Gateway, ActorName: a.Gateway, Channel: string(identity.ChannelGateway),
			Verb: "policy.apply", Subject: fmt.Sprintf("revision:%d", a.RejectedRevision), Decision: audit.Denied, Reason: short(a.Error),
		}
		if err := tx.Audit(e); err != nil {
			return before, after, err
		}
	}
	return before, after, tx.SaveGateway(after)
}

// next is the row after an acknowledgement: pure.
func next(before Gateway, a policy.Ack, now time.Time) Gateway {
	g := Gateway{
		Name: a.Gateway, Instance: a.Instance, Version: a.Version, Lineage: a.Lineage, Revision: a.Revision,
		Result: a.Result, Error: a.Error, RejectedRevision: a.RejectedRevision, ApplySeconds: a.ApplySeconds,
		AckedAt: now, LastHeardAt: now, State: a.State, StateAt: now,
	}
	same := before.Instance == a.Instance && before.Lineage == a.Lineage
	if same && before.Revision > a.Revision {
		// Two messages overtook each other: a running gateway never goes back.
		g.Revision, g.ApplySeconds, g.AckedAt = before.Revision, before.ApplySeconds, before.AckedAt
		g.State, g.StateAt = before.State, before.StateAt
		g.Result, g.Error, g.RejectedRevision = before.Result, before.Error, before.RejectedRevision
	}
	if same && before.Revision == a.Revision {
		g.AckedAt = before.AckedAt
	}
	return g
}

// changed says whether a console would show something else.
func changed(before, after Gateway, now time.Time) bool {
	return before.Name == "" || !before.Live(now) || before.Instance != after.Instance ||
		before.Lineage != after.Lineage || before.Revision != after.Revision || before.RejectedRevision != after.RejectedRevision
}

func (s *Service) report(ctx context.Context, before, after Gateway) {
	log := s.log.With("gateway", after.Name)
	if after.RejectedRevision != 0 && after.RejectedRevision != before.RejectedRevision {
		log.WarnContext(ctx, "gateway rejected a policy revision", "revision", after.RejectedRevision, "error", after.Error)
	}
	if before.Name == "" || before.Instance != after.Instance {
		log.InfoContext(ctx, "gateway joined", "instance", after.Instance, "version", after.Version, "lineage", after.Lineage, "revision", after.Revision)
	}
	if before.Revision != after.Revision || before.Lineage != after.Lineage {
		s.metrics.apply.Observe(after.ApplySeconds)
	}
}

// checkAck names what is wrong with an acknowledgement.
func checkAck(a policy.Ack) error {
	var errs strict.Errors
	if err := policy.CheckName(a.Gateway); err != nil {
		errs.Addf("gateway", "%s", err)
	}
	text := func(path, value string, least, most int) {
		if len(value) < least || len(value) > most || !utf8.ValidString(value) {
			errs.Addf(path, "has %d bytes: want %d to %d of UTF-8 text", len(value), least, most)
		}
	}
	text("instance", a.Instance, 1, maxInstance)
	text("version", a.Version, 0, maxInstance)
	text("lineage", a.Lineage, 0, maxInstance)
	text("error", a.Error, 0, maxError)
	if a.Result != policy.AckApplied && a.Result != policy.AckRejected {
		errs.Addf("result", "is %q: want applied or rejected", a.Result)
	}
	if a.Revision < 0 || a.RejectedRevision < 0 {
		errs.Addf("revision", "is negative")
	}
	if math.IsNaN(a.ApplySeconds) || math.IsInf(a.ApplySeconds, 0) || a.ApplySeconds < 0 {
		errs.Addf("apply_seconds", "is %g: want 0 or more", a.ApplySeconds)
	}
	if len(a.State.Breakers) > maxReported || len(a.State.Limits) > maxReported || len(a.State.Outcomes) > maxReported || len(a.State.ActiveOverrides) > maxReported {
		errs.Addf("state", "reports more than %d things of a kind", maxReported)
	}
	if len(errs) > 0 {
		return fmt.Errorf("%w: acknowledgement: %w", ErrInvalid, errs)
	}
	return nil
}
