package gpuguard_test

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"holdfast/gpuguard"
	"holdfast/gpuguard/gpuguardtest"
	"holdfast/gpuguard/policy"
)

// unstarted is a gateway that takes updates and opens nothing.
func unstarted(t *testing.T, reg prometheus.Registerer) (*gpuguard.Guard, func(revision int64, overrides ...policy.Override) error) {
	t.Helper()
	o := gpuguard.DefaultOptions()
	o.Name, o.Logger, o.Registerer = "test", slog.New(slog.DiscardHandler), reg
	g, err := gpuguard.New(o)
	require.NoError(t, err)
	raw, err := policy.Encode(gpuguardtest.Document("http://127.0.0.1:1"))
	require.NoError(t, err)
	return g, func(revision int64, overrides ...policy.Override) error {
		return g.ApplyUpdate(policy.Update{Lineage: "l", Revision: revision, Base: raw, Overrides: overrides, LiveGateways: 1})
	}
}

// golden is the exposition of one metric without labels.
func golden(name, kind, help, value string) *strings.Reader {
	return strings.NewReader("# HELP " + name + " " + help + "\n# TYPE " + name + " " + kind + "\n" + name + " " + value + "\n")
}

func TestLeasesEndOneByOneWithoutServerOrRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewRegistry()
		g, apply := unstarted(t, reg)
		limit := gpuguardtest.Override(t, "limit", policy.GlobalLimitPath, policy.Limit{RequestsPerSecond: 5}, 2*time.Hour)
		require.NoError(t, apply(1, gpuguardtest.TripBreaker(t, time.Hour), limit))
		at := func(d time.Duration, want ...string) {
			t.Helper()
			<-time.After(d)
			synctest.Wait()
			require.ElementsMatch(t, want, g.State().ActiveOverrides)
		}
		at(time.Hour-time.Nanosecond, "trip", "limit")
		require.Equal(t, "forced_open", g.State().Breakers["llm"].State)
		at(time.Nanosecond, "limit")
		require.Equal(t, "closed", g.State().Breakers["llm"].State)
		require.Contains(t, g.State().Limits, policy.GlobalLimitPath)
		at(time.Hour)
		require.Empty(t, g.State().Limits)
		require.EqualValues(t, 1, g.Effective().Revision)
		require.NoError(t, testutil.GatherAndCompare(reg, golden("gpuguard_overrides_expired_total", "counter",
			"Overrides whose lease the gateway ended by its own clock.", "2"), "gpuguard_overrides_expired_total"))
		require.NoError(t, g.Stop(t.Context()))
	})
}

func TestRenewedLeaseLastsLonger(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, apply := unstarted(t, nil)
		require.NoError(t, apply(1, gpuguardtest.TripBreaker(t, time.Minute)))
		<-time.After(50 * time.Second)
		require.NoError(t, apply(2, gpuguardtest.TripBreaker(t, time.Minute)))
		<-time.After(59 * time.Second)
		synctest.Wait()
		require.Equal(t, []string{"trip"}, g.State().ActiveOverrides)
		<-time.After(time.Second)
		synctest.Wait()
		require.Empty(t, g.State().ActiveOverrides)
		require.NoError(t, g.Stop(t.Context()))
	})
}

func TestOverrideWithoutTimeLeftHasEnded(t *testing.T) {
	t.Parallel()
	g, apply := unstarted(t, nil)
	require.NoError(t, apply(1, gpuguardtest.TripBreaker(t, 0), policy.Override{
		ID: "negative", Path: policy.GlobalLimitPath, Value: json.RawMessage(`{"requests_per_second":1}`), RemainingSeconds: -5,
	}))
	require.Empty(t, g.State().ActiveOverrides, "no lease is without an end")
	require.NoError(t, g.Stop(t.Context()))
}

func TestTwoLeasesOnOnePathAreRefused(t *testing.T) {
	t.Parallel()
	g, apply := unstarted(t, nil)
	again := gpuguardtest.Override(t, "again", policy.BreakerForcedPath("llm"), policy.ForcedClosed, time.Minute)
	require.ErrorContains(t, apply(1, gpuguardtest.TripBreaker(t, time.Minute), again), "conflicts")
	require.Zero(t, g.Effective().Revision)
	require.NoError(t, g.Stop(t.Context()))
}
