package store

import "holdfast/server/identity"

type linkRow struct {
	Hash      string `gorm:"primaryKey"`
	Purpose   string
	PersonID  string
	SlackTeam string
	SlackUser string
	ExpiresAt stamp
	UsedAt    stamp
}

// TableName is the table.
func (linkRow) TableName() string { return "links" }

func (r linkRow) link() identity.Link {
	return identity.Link{
		Hash: r.Hash, Purpose: identity.LinkPurpose(r.Purpose), PersonID: r.PersonID,
		SlackTeam: r.SlackTeam, SlackUser: r.SlackUser, ExpiresAt: r.ExpiresAt.t, UsedAt: r.UsedAt.t,
	}
}

type sessionRow struct {
	Hash      string `gorm:"primaryKey"`
	PersonID  string
	CreatedAt stamp
	ExpiresAt stamp
}

// TableName is the table.
func (sessionRow) TableName() string { return "sessions" }

// InsertLink stores a one-time link.
func (tx *Tx) InsertLink(l identity.Link) error {
	row := linkRow{
		Hash: l.Hash, Purpose: string(l.Purpose), PersonID: l.PersonID, SlackTeam: l.SlackTeam,
		SlackUser: l.SlackUser, ExpiresAt: at(l.ExpiresAt), UsedAt: at(l.UsedAt),
	}
	return tx.attempt(func() error { return tx.create("insert a link", &row) })
}

// UseLink marks the link used and returns it. The check and the mark are one
// statement: of two that come at once, one gets ErrLinkUsed.
func (tx *Tx) UseLink(hash string, purpose identity.LinkPurpose) (identity.Link, error) {
	n, err := tx.affected("use a link",
		"UPDATE links SET used_at = ? WHERE hash = ? AND purpose = ? AND used_at IS NULL AND expires_at > ?",
		at(tx.now), hash, string(purpose), at(tx.now))
	if err != nil {
		return identity.Link{}, err
	}
	if n == 0 {
		return identity.Link{}, identity.ErrLinkUsed
	}
	row, err := one[linkRow](tx, "read a link", tx.db.Where("hash = ?", hash), identity.ErrLinkUsed)
	if err != nil {
		return identity.Link{}, err
	}
	return row.link(), nil
}

// InsertSession stores a console login; ErrNotFound for an unknown person.
func (tx *Tx) InsertSession(s identity.Session) error {
	row := sessionRow{
		Hash: s.Hash, PersonID: s.PersonID, CreatedAt: tx.orNow(s.CreatedAt), ExpiresAt: at(s.ExpiresAt),
	}
	err := tx.attempt(func() error { return tx.create("insert a session", &row) })
	return ofParent(err, identity.ErrNotFound)
}

// Session finds a login that has not expired.
func (tx *Tx) Session(hash string) (identity.Session, error) {
	query := tx.db.Where("hash = ? AND expires_at > ?", hash, at(tx.now))
	row, err := one[sessionRow](tx, "read a session", query, identity.ErrNotFound)
	if err != nil {
		return identity.Session{}, err
	}
	return identity.Session{
		Hash: row.Hash, PersonID: row.PersonID, CreatedAt: row.CreatedAt.t, ExpiresAt: row.ExpiresAt.t,
	}, nil
}

// DeleteSession ends a login; one that is gone already is no error.
func (tx *Tx) DeleteSession(hash string) error {
	return tx.exec("delete a session", "DELETE FROM sessions WHERE hash = ?", hash)
}
