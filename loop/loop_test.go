package loop_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"holdfast/loop"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestEveryStepsByTimeAndBySignals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wake, kick := make(chan struct{}, 1), make(chan struct{}, 1)
		var at []time.Duration
		begun := time.Now()
		var r loop.Runner
		run := func(ctx context.Context) {
			loop.Every(ctx, time.Second, wake, kick, func(context.Context) { at = append(at, time.Since(begun)) })
		}
		r.Start(t.Context(), run)
		r.Start(t.Context(), func(context.Context) { t.Error("a second one runs beside the first") })
		synctest.Wait()
		<-time.After(300 * time.Millisecond)
		// One is taken, one is kept for later, and a third adds nothing.
		loop.Kick(kick)
		loop.Kick(kick)
		loop.Kick(kick)
		synctest.Wait()
		<-time.After(300 * time.Millisecond)
		wake <- struct{}{}
		synctest.Wait()
		<-time.After(600 * time.Millisecond)
		r.Stop()
		require.Equal(t, []time.Duration{0, 300 * time.Millisecond, 300 * time.Millisecond, 600 * time.Millisecond, time.Second}, at)
	})
}

func TestStopWaitsAndStartBeginsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r loop.Runner
		r.Stop() // nothing runs yet
		for range 2 {
			ended := false
			r.Start(t.Context(), func(ctx context.Context) {
				<-ctx.Done()
				<-time.After(time.Second)
				ended = true
			})
			r.Stop()
			require.True(t, ended)
		}
	})
}
