package store

import (
	"time"

	"holdfast/server/identity"
)

type personRow struct {
	ID        string `gorm:"primaryKey"`
	Handle    string
	Name      string
	Role      string
	SlackTeam string
	SlackUser string
	Disabled  bool
	CreatedAt stamp
}

// TableName is the table.
func (personRow) TableName() string { return "persons" }

func (r personRow) person() identity.Person {
	return identity.Person{
		ID: r.ID, Handle: r.Handle, Name: r.Name, Role: identity.Role(r.Role),
		SlackTeam: r.SlackTeam, SlackUser: r.SlackUser,
		Disabled: r.Disabled, CreatedAt: r.CreatedAt.t,
	}
}

// Person finds by id.
func (tx *Tx) Person(id string) (identity.Person, error) {
	return tx.person("id = ?", id)
}

// PersonByHandle finds by login name.
func (tx *Tx) PersonByHandle(handle string) (identity.Person, error) {
	return tx.person("handle = ?", handle)
}

// PersonBySlack finds by linked Slack user.
func (tx *Tx) PersonBySlack(team, user string) (identity.Person, error) {
	if user == "" {
		// Persons without a link have an empty user too.
		return identity.Person{}, identity.ErrNotFound
	}
	return tx.person("slack_team = ? AND slack_user = ?", team, user)
}

func (tx *Tx) person(where string, args ...any) (identity.Person, error) {
	row, err := one[personRow](tx, "read a person", tx.db.Where(where, args...), identity.ErrNotFound)
	if err != nil {
		return identity.Person{}, err
	}
	return row.person(), nil
}

// People lists everybody by handle.
func (tx *Tx) People() ([]identity.Person, error) {
	return many(tx, "list people", tx.db.Order("handle"), personRow.person)
}

// SavePerson inserts or replaces; a taken handle or Slack user gives ErrDuplicate.
func (tx *Tx) SavePerson(p identity.Person) error {
	row := personRow{
		ID: p.ID, Handle: p.Handle, Name: p.Name, Role: string(p.Role),
		SlackTeam: p.SlackTeam, SlackUser: p.SlackUser,
		Disabled: p.Disabled, CreatedAt: tx.orNow(p.CreatedAt),
	}
	return tx.attempt(func() error { return tx.upsert("save a person", &row, "id") })
}

// orNow is the given time, or database time when it is zero.
func (tx *Tx) orNow(t time.Time) stamp {
	if t.IsZero() {
		return at(tx.now)
	}
	return at(t)
}
