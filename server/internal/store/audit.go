package store

import (
	"context"
	"errors"
	"iter"

	"gorm.io/gorm"

	"holdfast/server/audit"
)

const (
	// maxAudit is the largest page of the audit.
	maxAudit = 500
	// maxChain is the largest batch of the chainer.
	maxChain = 500
)

type auditRow struct {
	ID        int64 `gorm:"primaryKey;autoIncrement"`
	At        stamp
	ActorID   string
	ActorName string
	Channel   string
	Verb      string
	Subject   string
	Decision  string
	Reason    string
	Details   map[string]string `gorm:"serializer:json"`
}

// TableName is the table.
func (auditRow) TableName() string { return "audit_entries" }

func (r auditRow) entry() audit.Entry {
	return audit.Entry{
		ID: r.ID, At: r.At.t, ActorID: r.ActorID, ActorName: r.ActorName, Channel: r.Channel,
		Verb: r.Verb, Subject: r.Subject, Decision: audit.Decision(r.Decision), Reason: r.Reason,
		Details: r.Details,
	}
}

type pendingRow struct {
	EntryID int64 `gorm:"primaryKey;autoIncrement:false"`
}

// TableName is the table.
func (pendingRow) TableName() string { return "audit_pending" }

type linkedRow struct {
	Entry    auditRow `gorm:"embedded"`
	Seq      int64
	PrevHash string
	Hash     string
}

func (r linkedRow) linked() audit.Linked {
	return audit.Linked{Entry: r.Entry.entry(), Link: audit.Link{Seq: r.Seq, PrevHash: r.PrevHash, Hash: r.Hash}}
}

type chainRow struct {
	Seq      int64 `gorm:"primaryKey;autoIncrement:false"`
	EntryID  int64
	PrevHash string
	Hash     string
}

// TableName is the table.
func (chainRow) TableName() string { return "audit_chain" }

type auditHeadRow struct {
	ID   int `gorm:"primaryKey;autoIncrement:false"`
	Seq  int64
	Hash string
}

// TableName is the table.
func (auditHeadRow) TableName() string { return "audit_head" }

// Audit writes a decision in its own transaction. It gets its link later, when
// it is committed: a chain that is extended here would make every decision wait
// for every other. At is set to Now when zero.
func (tx *Tx) Audit(e audit.Entry) error {
	row := auditRow{
		At: tx.orNow(e.At), ActorID: e.ActorID, ActorName: e.ActorName, Channel: e.Channel,
		Verb: e.Verb, Subject: e.Subject, Decision: string(e.Decision), Reason: e.Reason,
		Details: e.Details,
	}
	if err := tx.create("write the audit", &row); err != nil {
		return err
	}
	return tx.create("write the audit", &pendingRow{EntryID: row.ID})
}

// ChainPending links at most max committed entries, by id, and says how many.
// The place in the chain is given here, so an entry that commits late is linked
// late and leaves no gap. Any number of servers may call it: they take turns.
func (s *Store) ChainPending(ctx context.Context, max int) (n int, err error) {
	idle, err := s.nothingPending(ctx)
	if err != nil || idle {
		return 0, err
	}
	err = s.InTx(ctx, func(tx *Tx) error {
		// The lock comes first: what is read after it includes all earlier links.
		head, err := one[auditHeadRow](tx, "read the head of the audit chain", tx.db.Clauses(forUpdate), errNoCounter)
		if err != nil {
			return err
		}
		entries, err := tx.pendingEntries(bounded(max, maxChain))
		n = len(entries)
		if err != nil || n == 0 {
			return err
		}
		return tx.link(head, entries)
	})
	return n, err
}

func (s *Store) nothingPending(ctx context.Context) (bool, error) {
	var rows []pendingRow
	err := s.View(ctx, func(tx *Tx) error {
		return tx.check("look for unlinked audit entries", tx.db.Limit(1).Find(&rows).Error)
	})
	return len(rows) == 0, err
}

func (tx *Tx) pendingEntries(limit int) ([]audit.Entry, error) {
	query := tx.db.Where("id IN (SELECT entry_id FROM audit_pending ORDER BY entry_id LIMIT ?)", limit).Order("id")
	return many(tx, "read unlinked audit entries", query, auditRow.entry)
}

// link appends entries, as they are stored, after the head.
func (tx *Tx) link(head auditHeadRow, entries []audit.Entry) error {
	last := audit.Link{Seq: head.Seq, Hash: head.Hash}
	rows := make([]chainRow, len(entries))
	ids := make([]int64, len(entries))
	for i, e := range entries {
		last = audit.Next(last, e)
		rows[i] = chainRow{Seq: last.Seq, EntryID: e.ID, PrevHash: last.PrevHash, Hash: last.Hash}
		ids[i] = e.ID
	}
	if err := tx.create("link audit entries", &rows); err != nil {
		return err
	}
	if err := tx.exec("link audit entries", "DELETE FROM audit_pending WHERE entry_id IN ?", ids); err != nil {
		return err
	}
	tx.Touch("audit", "")
	return tx.exec("link audit entries", "UPDATE audit_head SET seq = ?, hash = ? WHERE id = 1", last.Seq, last.Hash)
}

// Head is the newest link of the audit chain, to be published outside of the
// database: only against a published head can a cut-off end be seen.
func (s *Store) Head(ctx context.Context) (audit.Head, error) {
	var head audit.Head
	err := s.View(ctx, func(tx *Tx) error {
		row, err := one[auditHeadRow](tx, "read the head of the audit chain", tx.db, errNoCounter)
		head = audit.Head{Seq: row.Seq, Hash: row.Hash}
		return err
	})
	return head, err
}

// Export passes linked entries from the given seq on (0 and 1: from the first)
// to fn, in order, until fn fails.
func (s *Store) Export(ctx context.Context, from int64, fn func(audit.Linked) error) error {
	for {
		page, err := s.auditPage(ctx, func(query *gorm.DB) *gorm.DB {
			return query.Where("c.seq >= ?", from).Order("c.seq")
		}, maxAudit)
		if err != nil {
			return err
		}
		for _, l := range page {
			if err := fn(l); err != nil {
				return err
			}
		}
		if len(page) < maxAudit {
			return nil
		}
		from = page[len(page)-1].Seq + 1
	}
}

// VerifyAudit checks the stored chain against its stored head; the error is
// *audit.BrokenError where it is broken. For a check that does not trust this
// database use Export and audit.Verify with a published head.
func (s *Store) VerifyAudit(ctx context.Context) (audit.Head, error) {
	head, err := s.Head(ctx)
	if err != nil {
		return audit.Head{}, err
	}
	return audit.Verify(s.chain(ctx), &head)
}

// chain is Export as a sequence.
func (s *Store) chain(ctx context.Context) iter.Seq2[audit.Linked, error] {
	return func(yield func(audit.Linked, error) bool) {
		err := s.Export(ctx, 1, func(l audit.Linked) error {
			if !yield(l, nil) {
				return errStopped
			}
			return nil
		})
		if err != nil && !errors.Is(err, errStopped) {
			yield(audit.Linked{}, err)
		}
	}
}

// AuditEntries lists decisions with ID < before (0: from the newest), newest
// first; Link is zero for one that is not linked yet.
func (s *Store) AuditEntries(ctx context.Context, before int64, limit int) ([]audit.Linked, error) {
	return s.auditPage(ctx, func(query *gorm.DB) *gorm.DB {
		if before > 0 {
			query = query.Where("e.id < ?", before)
		}
		return query.Order("e.id DESC")
	}, bounded(limit, maxAudit))
}

// auditPage reads entries with their links.
func (s *Store) auditPage(ctx context.Context, narrow func(*gorm.DB) *gorm.DB, limit int) ([]audit.Linked, error) {
	var page []audit.Linked
	err := s.View(ctx, func(tx *Tx) error {
		query := tx.db.Table("audit_entries e").
			Select("e.*, COALESCE(c.seq, 0) AS seq, COALESCE(c.prev_hash, '') AS prev_hash, COALESCE(c.hash, '') AS hash").
			Joins("LEFT JOIN audit_chain c ON c.entry_id = e.id")
		var err error
		page, err = many(tx, "read the audit", narrow(query).Limit(limit), linkedRow.linked)
		return err
	})
	return page, err
}
