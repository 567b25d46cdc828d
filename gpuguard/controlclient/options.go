package controlclient

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"holdfast/gpuguard/policy"
)

// Options configure a Client. URL, Token, Gateway and Apply are required.
type Options struct {
	// URL is the server's base address, such as "https://holdfast.example.com".
	URL string
	// Token is the gateway's service token; it is sent as bearer token and never logged.
	Token string
	// Gateway is the member name: unique among the gateways of one server.
	Gateway string
	// Instance changes with each process start; empty takes a random one.
	Instance string
	// Version is the build, reported with each acknowledgement.
	Version string
	// StateDir is the folder of the last-known-good file; empty keeps nothing on disk.
	StateDir string
	// Held is the policy already in force, as loaded by LoadLastKnownGood; nil
	// when the gateway starts without one. Lower revisions of its lineage are refused.
	Held *policy.Update
	// HTTPClient is used without its Timeout (a stream has no end) and never
	// follows redirects; nil takes a client of its own.
	HTTPClient *http.Client
	// Clock gives the time by which leases end; nil takes time.Now.
	Clock func() time.Time
	// Logger receives what happened; nil discards.
	Logger *slog.Logger
	// Registerer takes the gpuguard_control_* metrics; nil registers none.
	Registerer prometheus.Registerer
	// Apply swaps the gateway to the update. The update has been validated
	// (Decode and Merge succeed) and its overrides carry Expires by Clock. It is
	// also called when only LiveGateways changed, with the same revision. It must
	// be all or nothing: on an error the revision is rejected with that reason
	// and the former policy stays. Calls never overlap.
	Apply func(ctx context.Context, u policy.Update) error
	// State is what the acknowledgement reports; nil reports an empty state.
	State func() policy.State
}

func (o Options) withDefaults() Options {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.State == nil {
		o.State = func() policy.State { return policy.State{} }
	}
	return o
}

// validate names every missing or wrong option.
func (o Options) validate() error {
	var errs []error
	u, err := url.Parse(o.URL)
	switch {
	case o.URL == "":
		errs = append(errs, errors.New("control URL is empty: set the server's address, such as https://holdfast.example.com"))
	case err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "":
		errs = append(errs, errors.New("control URL must be an absolute http or https address, such as https://holdfast.example.com"))
	case u.User != nil:
		errs = append(errs, errors.New("control URL must not carry user information: the token is given apart"))
	case u.RawQuery != "" || u.Fragment != "":
		errs = append(errs, errors.New("control URL must not carry a query or a fragment"))
	}
	if o.Token == "" {
		errs = append(errs, errors.New("control token is empty: create one with `holdfast token`"))
	} else if strings.ContainsFunc(o.Token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		errs = append(errs, errors.New("control token has characters that no token has (white space or non-ASCII)"))
	}
	if err := policy.CheckName(o.Gateway); err != nil {
		errs = append(errs, fmt.Errorf("gateway name: %w", err))
	}
	if o.Apply == nil {
		errs = append(errs, errors.New("Apply is nil"))
	}
	return errors.Join(errs...)
}
