package store

import (
	"encoding/json"

	"gorm.io/gorm"

	"holdfast/server/chat"
)

// maxClicks is the largest batch of due clicks.
const maxClicks = 100

type buttonRow struct {
	ID        string `gorm:"primaryKey"`
	Kind      string
	Subject   string
	Slot      string
	Label     string
	Style     string
	Confirm   string
	Action    string
	Params    string
	Hash      string
	CreatedAt stamp
	ExpiresAt stamp
	UsedAt    stamp
	UsedBy    string
	RetiredAt stamp
}

// TableName is the table.
func (buttonRow) TableName() string { return "buttons" }

func (r buttonRow) button() chat.Button {
	return chat.Button{
		ID: r.ID, Kind: chat.ButtonKind(r.Kind), Subject: r.Subject, Slot: r.Slot, Label: r.Label,
		Style: r.Style, Confirm: r.Confirm, Action: r.Action, Params: rawOrNil(r.Params), Hash: r.Hash,
		CreatedAt: r.CreatedAt.t, ExpiresAt: r.ExpiresAt.t, UsedAt: r.UsedAt.t, UsedBy: r.UsedBy,
		RetiredAt: r.RetiredAt.t,
	}
}

// rawOrNil keeps absent JSON absent.
func rawOrNil(s string) json.RawMessage {
	if s == "" {
		return nil
	}
	return json.RawMessage(s)
}

// LiveButtons lists the buttons of a subject that are neither used, retired nor
// expired, oldest first.
func (tx *Tx) LiveButtons(subject string) ([]chat.Button, error) {
	query := tx.db.Where("subject = ? AND used_at IS NULL AND retired_at IS NULL", subject).
		Where("expires_at IS NULL OR expires_at > ?", at(tx.now)).Order("created_at, id")
	return many(tx, "list buttons", query, buttonRow.button)
}

// Button finds by id, used and retired ones too.
func (tx *Tx) Button(id string) (chat.Button, error) {
	row, err := one[buttonRow](tx, "read a button", tx.db.Where("id = ?", id), chat.ErrNotFound)
	if err != nil {
		return chat.Button{}, err
	}
	return row.button(), nil
}

// InsertButton stores a button and retires an expired one of the same slot.
// When another server filled the slot in the meantime the transaction runs again.
func (tx *Tx) InsertButton(b chat.Button) error {
	err := tx.exec("retire an expired button",
		"UPDATE buttons SET retired_at = ? WHERE subject = ? AND slot = ? AND used_at IS NULL AND retired_at IS NULL AND expires_at <= ?",
		at(tx.now), b.Subject, b.Slot, at(tx.now))
	if err != nil {
		return err
	}
	return tx.create("insert a button", &buttonRow{
		ID: b.ID, Kind: string(b.Kind), Subject: b.Subject, Slot: b.Slot, Label: b.Label,
		Style: b.Style, Confirm: b.Confirm, Action: b.Action, Params: string(b.Params), Hash: b.Hash,
		CreatedAt: tx.orNow(b.CreatedAt), ExpiresAt: at(b.ExpiresAt), UsedAt: at(b.UsedAt),
		UsedBy: b.UsedBy, RetiredAt: at(b.RetiredAt),
	})
}

// RetireButton takes it off; one that is off already stays as it was.
func (tx *Tx) RetireButton(id string) error {
	return tx.exec("retire a button",
		"UPDATE buttons SET retired_at = ? WHERE id = ? AND retired_at IS NULL", at(tx.now), id)
}

// UseButton marks it used; false when it was used before. Of two presses at
// once the second waits for the first to commit.
func (tx *Tx) UseButton(id, personName string) (bool, error) {
	n, err := tx.affected("use a button",
		"UPDATE buttons SET used_at = ?, used_by = ? WHERE id = ? AND used_at IS NULL", at(tx.now), personName, id)
	return n == 1, err
}

type clickRow struct {
	ID         string `gorm:"primaryKey"`
	ButtonID   string
	PersonID   string
	PersonName string
	Team       string
	ChatUser   string
	Channel    string
	MessageTS  string `gorm:"column:message_ts"`
	Status     string
	Detail     string
	ReceivedAt stamp
	DoneAt     stamp
	NextAt     stamp
	Attempts   int
}

// TableName is the table.
func (clickRow) TableName() string { return "clicks" }

func (r clickRow) click() chat.Click {
	return chat.Click{
		ID: r.ID, ButtonID: r.ButtonID, PersonID: r.PersonID, PersonName: r.PersonName, Team: r.Team,
		User: r.ChatUser, Channel: r.Channel, MessageTS: r.MessageTS, Status: chat.ClickStatus(r.Status),
		Detail: r.Detail, ReceivedAt: r.ReceivedAt.t, DoneAt: r.DoneAt.t, NextAt: r.NextAt.t,
		Attempts: r.Attempts,
	}
}

func (tx *Tx) clickRow(c chat.Click) clickRow {
	return clickRow{
		ID: c.ID, ButtonID: c.ButtonID, PersonID: c.PersonID, PersonName: c.PersonName, Team: c.Team,
		ChatUser: c.User, Channel: c.Channel, MessageTS: c.MessageTS, Status: string(c.Status),
		Detail: c.Detail, ReceivedAt: tx.orNow(c.ReceivedAt), DoneAt: at(c.DoneAt), NextAt: at(c.NextAt),
		Attempts: c.Attempts,
	}
}

// InsertClick commits a press; an accepted one is due at NextAt, or at once when
// that is zero. ErrNotFound for an unknown button.
func (tx *Tx) InsertClick(c chat.Click) error {
	if c.Status == chat.ClickAccepted {
		if c.NextAt.IsZero() {
			c.NextAt = tx.now
		}
		tx.wake(wakeClicks)
	}
	row := tx.clickRow(c)
	return ofParent(tx.create("insert a click", &row), chat.ErrNotFound)
}

// ClickByButton finds the newest click on a button.
func (tx *Tx) ClickByButton(buttonID string) (chat.Click, error) {
	query := tx.db.Where("button_id = ?", buttonID).Order("received_at DESC, id DESC")
	row, err := one[clickRow](tx, "read a click", query, chat.ErrNotFound)
	if err != nil {
		return chat.Click{}, err
	}
	return row.click(), nil
}

// DueClicks locks and returns accepted clicks whose time has come, longest due
// first, skipping those locked by another server.
func (tx *Tx) DueClicks(limit int) ([]chat.Click, error) {
	query := tx.db.Clauses(skipLocked).Where("status = 'accepted' AND next_at <= ?", at(tx.now)).
		Order("next_at, id").Limit(bounded(limit, maxClicks))
	return many(tx, "find due clicks", query, clickRow.click)
}

// SaveClick replaces a click; ErrNotFound when there is none.
func (tx *Tx) SaveClick(c chat.Click) error {
	row := tx.clickRow(c)
	result := tx.db.Model(&row).Select("*").Updates(&row)
	if err := tx.check("save a click", result.Error); err != nil {
		return err
	}
	if result.RowsAffected == 0 {
		return chat.ErrNotFound
	}
	return nil
}

// PendingClicks lists accepted clicks on the buttons of a card, oldest first:
// those of the subject itself and, for an incident, those of its runs.
func (tx *Tx) PendingClicks(subject string) ([]chat.Click, error) {
	query := tx.db.Where("status = 'accepted'").
		Where("button_id IN (?)", tx.cardButtons(subject)).Order("received_at, id")
	return many(tx, "list pending clicks", query, clickRow.click)
}

// cardButtons selects the ids of the buttons on a subject's card.
func (tx *Tx) cardButtons(subject string) *gorm.DB {
	return tx.db.Model(&buttonRow{}).Select("id").Where(
		"subject = ? OR subject IN (SELECT 'run:' || id FROM action_runs WHERE incident_id <> '' AND 'incident:' || incident_id = ?)",
		subject, subject)
}

type messageRow struct {
	Subject   string `gorm:"primaryKey"`
	Channel   string
	TS        string `gorm:"column:ts"`
	PostKey   string
	UpdatedAt stamp
}

// TableName is the table.
func (messageRow) TableName() string { return "message_refs" }

// MessageRef finds where the card of a subject stands.
func (tx *Tx) MessageRef(subject string) (chat.MessageRef, error) {
	row, err := one[messageRow](tx, "read where a card stands", tx.db.Where("subject = ?", subject), chat.ErrNotFound)
	if err != nil {
		return chat.MessageRef{}, err
	}
	return chat.MessageRef{
		Subject: row.Subject, Channel: row.Channel, TS: row.TS, PostKey: row.PostKey, UpdatedAt: row.UpdatedAt.t,
	}, nil
}

// SaveMessageRef inserts or replaces.
func (tx *Tx) SaveMessageRef(m chat.MessageRef) error {
	row := messageRow{
		Subject: m.Subject, Channel: m.Channel, TS: m.TS, PostKey: m.PostKey, UpdatedAt: at(m.UpdatedAt),
	}
	return tx.upsert("save where a card stands", &row, "subject")
}
