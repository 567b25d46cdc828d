package fleet

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/gpuguard/policy"
)

func TestRatesCompareTwoReadings(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 2, 3, 14, 0, 0, 0, time.UTC)
	counts := func(ok, broken int64) policy.State {
		return policy.State{Outcomes: map[string]map[policy.Outcome]int64{"llm": {policy.OutcomeOK: ok, policy.OutcomeUpstreamError: broken}}}
	}
	tests := []struct {
		name string
		gw   Gateway
		want Rates
	}{
		{"a minute of traffic", Gateway{Prior: counts(100, 0), PriorAt: at, State: counts(190, 30), StateAt: at.Add(time.Minute)}, Rates{PerSecond: 2, Failed: .25, Known: true, FailedKnown: true}},
		{"no traffic is not 0 % errors", Gateway{Prior: counts(5, 5), PriorAt: at, State: counts(5, 5), StateAt: at.Add(time.Minute)}, Rates{Known: true}},
		{"one reading", Gateway{State: counts(5, 5), StateAt: at}, Rates{}},
		{"a restart", Gateway{Prior: counts(100, 0), PriorAt: at, State: counts(3, 0), StateAt: at.Add(time.Minute)}, Rates{}},
		{"readings too far apart", Gateway{Prior: counts(1, 0), PriorAt: at, State: counts(3, 0), StateAt: at.Add(time.Hour)}, Rates{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, tt.gw.Rates())
		})
	}
}
