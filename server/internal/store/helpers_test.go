package store_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/server/internal/store"
	"holdfast/server/internal/store/storetest"
)

// t0 is after every mark a fresh database can hold, so that tests may freeze at it.
var t0 = time.Date(2026, 2, 3, 14, 0, 0, 0, time.UTC)

// each runs a test on both databases, with the clock standing at t0.
func each(t *testing.T, fn func(t *testing.T, db *storetest.DB)) {
	t.Helper()
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		db.Freeze(t, t0)
		fn(t, db)
	})
}

// inTx runs fn in a transaction that must commit.
func inTx(t *testing.T, s *storetest.DB, fn func(tx *store.Tx)) {
	t.Helper()
	require.NoError(t, s.InTx(t.Context(), func(tx *store.Tx) error {
		fn(tx)
		return nil
	}))
}

// view runs fn in a read-only transaction.
func view(t *testing.T, s *storetest.DB, fn func(tx *store.Tx)) {
	t.Helper()
	require.NoError(t, s.View(t.Context(), func(tx *store.Tx) error {
		fn(tx)
		return nil
	}))
}

// parallel runs fn n times at once and returns the errors by index.
func parallel(n int, fn func(i int) error) []error {
	errs := make([]error, n)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-start
			errs[i] = fn(i)
		})
	}
	close(start)
	wg.Wait()
	return errs
}

// woken says whether a wake is waiting.
func woken(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

func name(prefix string, i int) string { return fmt.Sprintf("%s-%02d", prefix, i) }
