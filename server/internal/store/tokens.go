package store

import (
	"time"

	"holdfast/server/identity"
)

// touchEvery is how often the use of a token is noted at most.
const touchEvery = time.Minute

type tokenRow struct {
	ID         string `gorm:"primaryKey"`
	Kind       string
	Name       string
	Scopes     []string `gorm:"serializer:json"`
	OwnerID    string
	Hash       string
	CreatedAt  stamp
	ExpiresAt  stamp
	LastUsedAt stamp
	RevokedAt  stamp
}

// TableName is the table.
func (tokenRow) TableName() string { return "tokens" }

func (r tokenRow) token() identity.Token {
	return identity.Token{
		ID: r.ID, Kind: identity.TokenKind(r.Kind), Name: r.Name, Scopes: r.Scopes,
		OwnerID: r.OwnerID, Hash: r.Hash, CreatedAt: r.CreatedAt.t, ExpiresAt: r.ExpiresAt.t,
		LastUsedAt: r.LastUsedAt.t, RevokedAt: r.RevokedAt.t,
	}
}

// Token finds by public id, revoked and expired ones too.
func (tx *Tx) Token(id string) (identity.Token, error) {
	row, err := one[tokenRow](tx, "read a token", tx.db.Where("id = ?", id), identity.ErrNotFound)
	if err != nil {
		return identity.Token{}, err
	}
	return row.token(), nil
}

// Tokens lists all, oldest first.
func (tx *Tx) Tokens() ([]identity.Token, error) {
	return many(tx, "list tokens", tx.db.Order("created_at, id"), tokenRow.token)
}

// InsertToken gives ErrDuplicate for a taken id.
func (tx *Tx) InsertToken(t identity.Token) error {
	row := tokenRow{
		ID: t.ID, Kind: string(t.Kind), Name: t.Name, Scopes: t.Scopes, OwnerID: t.OwnerID,
		Hash: t.Hash, CreatedAt: tx.orNow(t.CreatedAt), ExpiresAt: at(t.ExpiresAt),
		LastUsedAt: at(t.LastUsedAt), RevokedAt: at(t.RevokedAt),
	}
	return tx.attempt(func() error { return tx.create("insert a token", &row) })
}

// RevokeToken ends a token; the first time of revocation is kept.
func (tx *Tx) RevokeToken(id string) error {
	n, err := tx.affected("revoke a token",
		"UPDATE tokens SET revoked_at = COALESCE(revoked_at, ?) WHERE id = ?", at(tx.now), id)
	if err == nil && n == 0 {
		return identity.ErrNotFound
	}
	return err
}

// TouchToken notes use, at most once a minute.
func (tx *Tx) TouchToken(id string) error {
	return tx.exec("note the use of a token",
		"UPDATE tokens SET last_used_at = ? WHERE id = ? AND (last_used_at IS NULL OR last_used_at <= ?)",
		at(tx.now), id, at(tx.now.Add(-touchEvery)))
}
