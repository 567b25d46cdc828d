// Package admin is the handler of the gateway's admin listener: health,
// readiness, metrics, the effective policy and the gateway's state. It never
// shares a port with the data path.
package admin

import (
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

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

// Handler serves GET (and HEAD) of
//
//	/healthz  200 while the process runs
//	/readyz   200 when requests can be taken, else 503 with the reason
//	/metrics  Prometheus text or OpenMetrics
//	/policy   the effective policy, its overrides with remaining time, lineage and revision
//	/state    breakers, limits, outcomes and the link to the server
//
// API key digests are shortened in /policy. Health and readiness ask for no token.
func Handler(o Options) http.Handler {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	h := &handler{opts: o}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", h.health)
	mux.HandleFunc("GET /readyz", h.ready)
	mux.Handle("GET /policy", h.guarded(http.HandlerFunc(h.policy)))
	mux.Handle("GET /state", h.guarded(http.HandlerFunc(h.state)))
	if o.Gatherer != nil {
		metrics := promhttp.HandlerFor(o.Gatherer, promhttp.HandlerOpts{EnableOpenMetrics: true})
		mux.Handle("GET /metrics", h.guarded(metrics))
	}
	return withHeaders(mux)
}

type handler struct{ opts Options }

func (h *handler) health(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	fmt.Fprintln(w, "ok")
}

func (h *handler) ready(w http.ResponseWriter, _ *http.Request) {
	if err := h.opts.Source.Ready(); err != nil {
		w.Header().Set("Retry-After", "1")
		problem(w, http.StatusServiceUnavailable, "not ready", err.Error())
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	fmt.Fprintln(w, "ready")
}
