package store_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/server/internal/store"
	"holdfast/server/internal/store/storetest"
	"holdfast/server/outbox"
)

func eachBench(b *testing.B, fn func(b *testing.B, db *storetest.DB)) {
	for _, kind := range []storetest.Kind{storetest.SQLite, storetest.Postgres} {
		b.Run(string(kind), func(b *testing.B) { fn(b, storetest.Open(b, kind)) })
	}
}

// A click: audit row, card refresh and button in one transaction.
func BenchmarkClickTransaction(b *testing.B) {
	eachBench(b, func(b *testing.B, db *storetest.DB) {
		for i := range b.N {
			err := db.InTx(b.Context(), func(tx *store.Tx) error {
				if err := tx.Audit(decision(i)); err != nil {
					return err
				}
				return tx.Enqueue(outbox.Message{Topic: "chat", Key: "k", Kind: "card", Subject: "s", Coalesce: true})
			})
			require.NoError(b, err)
		}
	})
}

func BenchmarkView(b *testing.B) {
	eachBench(b, func(b *testing.B, db *storetest.DB) {
		for b.Loop() {
			require.NoError(b, db.View(b.Context(), func(tx *store.Tx) error {
				_, err := tx.People()
				return err
			}))
		}
	})
}

// A claim in a calendar that fills up.
func BenchmarkClaim(b *testing.B) {
	eachBench(b, func(b *testing.B, db *storetest.DB) {
		i := 0
		for b.Loop() {
			i++
			err := db.InTx(b.Context(), func(tx *store.Tx) error {
				start := t0.AddDate(0, 0, i)
				if _, err := tx.LiveChanges("prod", start, start); err != nil {
					return err
				}
				c := newChange(name("c", i), start, 0)
				if err := tx.InsertChange(&c); err != nil {
					return err
				}
				return tx.PutHold(guarded(c.ID, start, start, exclusive, elsewhere))
			})
			require.NoError(b, err)
		}
	})
}
