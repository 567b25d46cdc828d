package fleet

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"holdfast/gpuguard/policy"
	"holdfast/server/audit"
	"holdfast/server/identity"
)

// Policy verbs in the audit.
const (
	verbInit    = "policy.init"
	verbPut     = "policy.put"
	verbConfirm = "policy.confirm_lineage"

	subjectPolicy = "policy"
	// policyLock serialises everything that writes policy revisions.
	policyLock = "policy"
)

// Init makes the first revision of a fresh database, with a lineage of its own,
// and gives the head; a database that has a policy keeps it. A gateway without a
// policy takes the lineage as it is. One that holds another, because this
// database was wiped or is a stranger's, goes on with what it has until an admin
// confirms (ConfirmLineage).
func (s *Service) Init(ctx context.Context, base policy.Document) (head Head, err error) {
	if err := base.Validate(); err != nil {
		return Head{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	raw, err := policy.Encode(base)
	if err != nil {
		return Head{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	err = s.store.InTx(ctx, func(tx Tx) error {
		if err := tx.Lock(policyLock); err != nil {
			return err
		}
		if head, err = tx.PolicyHead(); !errors.Is(err, ErrNotFound) {
			return err
		}
		if err := tx.InitPolicy(strings.ToLower(rand.Text()), false, raw); err != nil {
			return err
		}
		if head, err = tx.PolicyHead(); err != nil {
			return err
		}
		e := identity.System().AuditEntry(verbInit, subjectPolicy, audit.Allowed, "the database had no policy")
		e.Details = map[string]string{"lineage": head.Lineage}
		return tx.Audit(e)
	})
	if err != nil {
		return Head{}, fmt.Errorf("start the policy: %w", err)
	}
	return head, nil
}

// Head reads the newest policy; ErrNotFound before Init. Overrides carry the
// remaining seconds by database time.
func (s *Service) Head(ctx context.Context) (head Head, err error) {
	err = s.store.View(ctx, func(tx Tx) error {
		head, err = headNow(tx)
		return err
	})
	return head, err
}

// headNow is the head with the live overrides stamped.
func headNow(tx Tx) (Head, error) {
	head, err := tx.PolicyHead()
	if err != nil {
		return Head{}, err
	}
	head.Overrides = policy.StampRemaining(head.Overrides, tx.Now())
	return head, nil
}

// Effective reads the newest policy, merged.
func (s *Service) Effective(ctx context.Context) (policy.Effective, error) {
	var head Head
	var now time.Time
	err := s.store.View(ctx, func(tx Tx) (err error) {
		now = tx.Now()
		head, err = headNow(tx)
		return err
	})
	if err != nil {
		return policy.Effective{}, err
	}
	doc, err := merged(head.Base, head.Overrides, now)
	if err != nil {
		return policy.Effective{}, fmt.Errorf("revision %d: %w", head.Revision, err)
	}
	return policy.Effective{Lineage: head.Lineage, Revision: head.Revision, Document: doc, Overrides: head.Overrides}, nil
}

// merged decodes a base document and lays the overrides over it.
func merged(base json.RawMessage, overrides []policy.Override, now time.Time) (policy.Document, error) {
	doc, err := policy.Decode(base)
	if err != nil {
		return policy.Document{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	doc, err = policy.Merge(doc, overrides, now)
	if err != nil {
		return policy.Document{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return doc, nil
}

// PutBase replaces the base document (admin) and gives the new head. ErrStale
// when ifRevision is not the newest revision; 0 skips that check. ErrInvalid
// wraps strict.Errors naming each field, also when a live override no longer
// fits. A document equal to the one in force makes no new revision.
func (s *Service) PutBase(ctx context.Context, doc json.RawMessage, ifRevision int64) (Head, error) {
	p, err := s.permit(ctx, identity.RoleAdmin, verbPut, subjectPolicy)
	if err != nil {
		return Head{}, err
	}
	base, err := policy.Decode(doc)
	if err != nil {
		return Head{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	raw, err := policy.Encode(base)
	if err != nil {
		return Head{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	var head Head
	err = s.store.InTx(ctx, func(tx Tx) (err error) {
		head, err = putBase(tx, p, raw, ifRevision)
		return err
	})
	if err != nil {
		return Head{}, fmt.Errorf("put the policy: %w", err)
	}
	return head, nil
}

func putBase(tx Tx, p identity.Principal, raw json.RawMessage, ifRevision int64) (Head, error) {
	if err := tx.Lock(policyLock); err != nil {
		return Head{}, err
	}
	head, err := headNow(tx)
	if err != nil {
		return Head{}, err
	}
	if ifRevision != 0 && ifRevision != head.Revision {
		return Head{}, fmt.Errorf("%w: you read revision %d and the newest is %d", ErrStale, ifRevision, head.Revision)
	}
	after, err := merged(raw, head.Overrides, tx.Now())
	if err != nil {
		return Head{}, err
	}
	before, err := merged(head.Base, head.Overrides, tx.Now())
	if err == nil && len(policy.Diff(before, after)) == 0 && sameJSON(head.Base, raw) {
		return head, nil
	}
	if err := tx.SetBase(raw); err != nil {
		return Head{}, err
	}
	if _, err := tx.BumpRevision("base edit by "+p.Name, p.Name); err != nil {
		return Head{}, err
	}
	if head, err = headNow(tx); err != nil {
		return Head{}, err
	}
	e := p.AuditEntry(verbPut, subjectPolicy, audit.Allowed, "")
	e.Details = map[string]string{"revision": fmt.Sprint(head.Revision)}
	tx.Touch("policy", fmt.Sprint(head.Revision))
	return head, tx.Audit(e)
}

// sameJSON compares base documents by their canonical form: databases may
// reformat JSON that they keep.
func sameJSON(a, b json.RawMessage) bool {
	docA, errA := policy.Decode(a)
	docB, errB := policy.Decode(b)
	return errA == nil && errB == nil && len(policy.Diff(docA, docB)) == 0
}

// ConfirmLineage accepts this database's policy for gateways that hold another
// history (admin). When gateways are ahead of the newest revision, the database
// was restored from a backup: they would refuse everything up to the revision
// they hold, so a new lineage begins with what the database has.
func (s *Service) ConfirmLineage(ctx context.Context) error {
	p, err := s.permit(ctx, identity.RoleAdmin, verbConfirm, subjectPolicy)
	if err != nil {
		return err
	}
	err = s.store.InTx(ctx, func(tx Tx) error {
		if err := tx.Lock(policyLock); err != nil {
			return err
		}
		head, err := tx.PolicyHead()
		if err != nil {
			return err
		}
		head, changed, err := acceptHistory(tx, head)
		if err != nil || !changed {
			return err
		}
		tx.Touch("policy", fmt.Sprint(head.Revision))
		e := p.AuditEntry(verbConfirm, subjectPolicy, audit.Allowed, "")
		e.Details = map[string]string{"lineage": head.Lineage}
		return tx.Audit(e)
	})
	if err != nil {
		return fmt.Errorf("confirm the lineage: %w", err)
	}
	return nil
}

// acceptHistory confirms the lineage, or begins a confirmed one when gateways are ahead.
func acceptHistory(tx Tx, head Head) (after Head, changed bool, err error) {
	all, err := tx.Gateways()
	if err != nil {
		return head, false, err
	}
	switch {
	case slices.ContainsFunc(all, func(g Gateway) bool { return g.ahead(head) }):
		err = tx.InitPolicy(strings.ToLower(rand.Text()), true, head.Base)
	case !head.LineageConfirmed:
		err = tx.ConfirmLineage()
	default:
		return head, false, nil
	}
	if err != nil {
		return head, false, err
	}
	after, err = tx.PolicyHead()
	return after, true, err
}

// Revisions lists the history below before (0: from the newest), newest first.
func (s *Service) Revisions(ctx context.Context, before int64, limit int) (list []Revision, err error) {
	err = s.store.View(ctx, func(tx Tx) error {
		list, err = tx.Revisions(before, limit)
		return err
	})
	return list, err
}
