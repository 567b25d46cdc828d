package store_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"holdfast/server/identity"
	"holdfast/server/internal/store"
	"holdfast/server/internal/store/storetest"
)

func TestPersonsAreFoundByEachKeyAndReplaced(t *testing.T) {
	each(t, func(t *testing.T, db *storetest.DB) {
		alice := identity.Person{
			ID: "p1", Handle: "alice", Name: "Alice", Role: identity.RoleResponder,
			SlackTeam: "T1", SlackUser: "U1", CreatedAt: t0,
		}
		bob := identity.Person{ID: "p2", Handle: "bob", Name: "Bob", Role: identity.RoleAdmin, Disabled: true, CreatedAt: t0}
		inTx(t, db, func(tx *store.Tx) {
			require.NoError(t, tx.SavePerson(bob))
			require.NoError(t, tx.SavePerson(alice))
		})
		view(t, db, func(tx *store.Tx) {
			byID, err := tx.Person("p1")
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(alice, byID))
			byHandle, err := tx.PersonByHandle("bob")
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(bob, byHandle))
			bySlack, err := tx.PersonBySlack("T1", "U1")
			require.NoError(t, err)
			require.Equal(t, "p1", bySlack.ID)
			_, err = tx.PersonBySlack("", "")
			require.ErrorIs(t, err, identity.ErrNotFound, "persons without a link are not each other")
			_, err = tx.Person("nobody")
			require.ErrorIs(t, err, identity.ErrNotFound)
			all, err := tx.People()
			require.NoError(t, err)
			require.Empty(t, cmp.Diff([]identity.Person{alice, bob}, all))
		})
		alice.Role, alice.SlackUser = identity.RoleApprover, "U9"
		inTx(t, db, func(tx *store.Tx) {
			require.NoError(t, tx.SavePerson(alice))
			got, err := tx.Person("p1")
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(alice, got))
		})
	})
}

// A refused row leaves the transaction usable: what follows is committed.
func TestTakenHandleAndSlackUserAreRefusedAndTheTransactionGoesOn(t *testing.T) {
	each(t, func(t *testing.T, db *storetest.DB) {
		inTx(t, db, func(tx *store.Tx) {
			require.NoError(t, tx.SavePerson(identity.Person{ID: "p1", Handle: "alice", SlackTeam: "T", SlackUser: "U"}))
			err := tx.SavePerson(identity.Person{ID: "p2", Handle: "alice"})
			require.ErrorIs(t, err, identity.ErrDuplicate)
			require.ErrorContains(t, err, "handle")
			err = tx.SavePerson(identity.Person{ID: "p2", Handle: "bob", SlackTeam: "T", SlackUser: "U"})
			require.ErrorIs(t, err, identity.ErrDuplicate)
			require.ErrorContains(t, err, "Slack user")
			require.NoError(t, tx.SavePerson(identity.Person{ID: "p2", Handle: "bob"}))
			require.NoError(t, tx.SavePerson(identity.Person{ID: "p3", Handle: "carol"}), "two without Slack are fine")
		})
		view(t, db, func(tx *store.Tx) {
			all, err := tx.People()
			require.NoError(t, err)
			require.Len(t, all, 3)
		})
	})
}

func TestTokens(t *testing.T) {
	each(t, func(t *testing.T, db *storetest.DB) {
		token := identity.Token{
			ID: "abc", Kind: identity.TokenCI, Name: "pipeline", Scopes: []string{"service:checkout"},
			OwnerID: "p1", Hash: "00ff", CreatedAt: t0, ExpiresAt: t0.Add(time.Hour),
		}
		inTx(t, db, func(tx *store.Tx) {
			require.NoError(t, tx.InsertToken(token))
			require.ErrorIs(t, tx.InsertToken(token), identity.ErrDuplicate)
			got, err := tx.Token("abc")
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(token, got))
			_, err = tx.Token("xyz")
			require.ErrorIs(t, err, identity.ErrNotFound)
			require.ErrorIs(t, tx.RevokeToken("xyz"), identity.ErrNotFound)
		})
		used := func() time.Time {
			var at time.Time
			inTx(t, db, func(tx *store.Tx) {
				require.NoError(t, tx.TouchToken("abc"))
				got, err := tx.Token("abc")
				require.NoError(t, err)
				at = got.LastUsedAt
			})
			return at
		}
		require.Equal(t, t0, used())
		db.Advance(t, 59*time.Second)
		require.Equal(t, t0, used(), "at most once a minute")
		db.Advance(t, time.Second)
		require.Equal(t, t0.Add(time.Minute), used())

		inTx(t, db, func(tx *store.Tx) { require.NoError(t, tx.RevokeToken("abc")) })
		db.Advance(t, time.Hour)
		inTx(t, db, func(tx *store.Tx) {
			require.NoError(t, tx.RevokeToken("abc"))
			all, err := tx.Tokens()
			require.NoError(t, err)
			require.Len(t, all, 1)
			require.Equal(t, t0.Add(time.Minute), all[0].RevokedAt, "the first revocation is kept")
		})
	})
}

func TestOneTimeLinkWorksOnceForItsPurposeAndInTime(t *testing.T) {
	each(t, func(t *testing.T, db *storetest.DB) {
		inTx(t, db, func(tx *store.Tx) {
			for _, hash := range []string{"h1", "h2"} {
				require.NoError(t, tx.InsertLink(identity.Link{
					Hash: hash, Purpose: identity.LinkSlack, SlackTeam: "T", SlackUser: "U", ExpiresAt: t0.Add(time.Minute),
				}))
			}
			_, err := tx.UseLink("h1", identity.LinkLogin)
			require.ErrorIs(t, err, identity.ErrLinkUsed, "wrong purpose")
			_, err = tx.UseLink("h9", identity.LinkSlack)
			require.ErrorIs(t, err, identity.ErrLinkUsed, "unknown")
		})
		errs := parallel(8, func(int) error {
			return db.InTx(t.Context(), func(tx *store.Tx) error {
				link, err := tx.UseLink("h1", identity.LinkSlack)
				if err == nil && (link.SlackUser != "U" || !link.UsedAt.Equal(t0)) {
					return errors.New("not the link that was stored")
				}
				return err
			})
		})
		won := 0
		for _, err := range errs {
			if err == nil {
				won++
				continue
			}
			require.ErrorIs(t, err, identity.ErrLinkUsed)
		}
		require.Equal(t, 1, won)

		db.Advance(t, time.Minute)
		inTx(t, db, func(tx *store.Tx) {
			_, err := tx.UseLink("h2", identity.LinkSlack)
			require.ErrorIs(t, err, identity.ErrLinkUsed, "expired exactly now")
		})
	})
}

func TestSessions(t *testing.T) {
	each(t, func(t *testing.T, db *storetest.DB) {
		session := identity.Session{Hash: "s1", PersonID: "p1", CreatedAt: t0, ExpiresAt: t0.Add(time.Hour)}
		inTx(t, db, func(tx *store.Tx) {
			require.ErrorIs(t, tx.InsertSession(session), identity.ErrNotFound, "no such person")
			require.NoError(t, tx.SavePerson(identity.Person{ID: "p1", Handle: "alice"}))
			require.NoError(t, tx.InsertSession(session))
			require.ErrorIs(t, tx.InsertSession(session), identity.ErrDuplicate)
			got, err := tx.Session("s1")
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(session, got))
		})
		db.Advance(t, time.Hour)
		inTx(t, db, func(tx *store.Tx) {
			_, err := tx.Session("s1")
			require.ErrorIs(t, err, identity.ErrNotFound, "expired")
			require.NoError(t, tx.DeleteSession("s1"))
			require.NoError(t, tx.DeleteSession("s1"), "gone already")
		})
	})
}
