package gpuguard

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"holdfast/gpuguard/policy"
)

// Options configure one gateway. Start from DefaultOptions.
type Options struct {
	// Addr is where callers connect, host:port; port 0 picks a free one.
	Addr string
	// AdminAddr is where health, metrics, policy and state are shown,
	// host:port; empty means no admin listener. Keep it on loopback or a
	// private network.
	AdminAddr string
	// AdminToken is the bearer token that AdminAddr asks for on all but health
	// and readiness; empty asks for none.
	AdminToken string
	// Name identifies this gateway to the server and must be unique in the
	// fleet; see policy.CheckName.
	Name string
	// Version is this build's version, reported with each acknowledgement.
	Version string
	// StateDir keeps the last good policy of a server, so that a restart without
	// the server goes on with it; empty keeps nothing. It is made when missing.
	StateDir string
	// Policy is the policy of a gateway without a server. Exactly one of
	// Policy and Control may be set; with neither, ApplyUpdate brings it.
	Policy *policy.Document
	// Control is the server this gateway takes its policy from.
	Control *Control
	// Secret resolves an upstream credential to its secret. Nil refuses
	// policies that name a credential. It is called when a policy is applied.
	Secret func(policy.Credential) (string, error)
	// Logger takes everything but requests. Nil discards.
	Logger *slog.Logger
	// AccessLog takes the one line per request. Nil means Logger; a logger on
	// slog.DiscardHandler silences it.
	AccessLog *slog.Logger
	// Registerer receives the gpuguard_* metrics; nil means that none are
	// published. Two gateways of one process need one each.
	Registerer prometheus.Registerer
	// Gatherer is what /metrics on AdminAddr shows; nil means no such page.
	Gatherer prometheus.Gatherer
	// Clock is the time source of breakers, limits and leases; nil means
	// time.Now. Its readings should carry a monotonic part.
	Clock func() time.Time
	// DrainTimeout is how long Stop lets requests in flight finish before it
	// cuts them, unless its context ends earlier.
	DrainTimeout time.Duration
	// ReadHeaderTimeout bounds a caller's request header, BodyTimeout its
	// body, IdleTimeout a kept-alive connection without a request.
	ReadHeaderTimeout time.Duration
	BodyTimeout       time.Duration
	IdleTimeout       time.Duration
	// WriteTimeout bounds one write to a caller that does not read.
	WriteTimeout time.Duration
	// MaxHeaderBytes caps a caller's request header.
	MaxHeaderBytes int
}

// Control names a holdfast server.
type Control struct {
	// URL is the server's base address, http or https.
	URL string
	// Token is a service token of kind gateway.
	Token string
}

// Bounds of MaxHeaderBytes, in bytes.
const (
	leastHeaderBytes   = 4 << 10
	defaultHeaderBytes = 64 << 10
)

// DefaultOptions returns settings for one gateway on this machine: callers on
// 127.0.0.1:8081 and administration on 127.0.0.1:9081.
func DefaultOptions() Options {
	name, err := os.Hostname()
	if err != nil || policy.CheckName(name) != nil {
		name = "gpuguard"
	}
	return Options{
		Addr:              "127.0.0.1:8081",
		AdminAddr:         "127.0.0.1:9081",
		Name:              name,
		DrainTimeout:      30 * time.Second,
		ReadHeaderTimeout: 10 * time.Second,
		BodyTimeout:       60 * time.Second,
		IdleTimeout:       90 * time.Second,
		WriteTimeout:      30 * time.Second,
		MaxHeaderBytes:    defaultHeaderBytes,
	}
}

// Validate reports every problem of the options at once, nil when there is none.
func (o Options) Validate() error {
	var errs []error
	add := func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	add(checkAddr("Addr", o.Addr))
	if o.AdminAddr != "" {
		add(checkAddr("AdminAddr", o.AdminAddr))
	}
	if err := policy.CheckName(o.Name); err != nil {
		add(fmt.Errorf("Name %w", err))
	}
	if o.Policy != nil && o.Control != nil {
		add(errors.New("Policy and Control are both set: a gateway takes its policy from one place"))
	}
	if o.Control != nil {
		add(o.Control.validate())
	}
	add(checkPositive("DrainTimeout", o.DrainTimeout))
	add(checkPositive("ReadHeaderTimeout", o.ReadHeaderTimeout))
	add(checkPositive("BodyTimeout", o.BodyTimeout))
	add(checkPositive("IdleTimeout", o.IdleTimeout))
	add(checkPositive("WriteTimeout", o.WriteTimeout))
	if o.MaxHeaderBytes < leastHeaderBytes {
		add(fmt.Errorf("MaxHeaderBytes is %d: want at least %d", o.MaxHeaderBytes, leastHeaderBytes))
	}
	return errors.Join(errs...)
}

func (c Control) validate() error {
	var errs []error
	u, err := url.Parse(c.URL)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil {
		errs = append(errs, errors.New("Control.URL: want http:// or https:// with a host and without user info"))
	}
	if c.Token == "" {
		errs = append(errs, errors.New("Control.Token is empty: make one with `holdfast token create --kind gateway`"))
	}
	return errors.Join(errs...)
}

func checkAddr(field, addr string) error {
	if _, port, err := net.SplitHostPort(addr); err != nil || port == "" {
		return fmt.Errorf("%s is %q: want host:port, such as 127.0.0.1:8081", field, addr)
	}
	return nil
}

func checkPositive(field string, d time.Duration) error {
	if d <= 0 {
		return fmt.Errorf("%s is %s: want more than zero", field, d)
	}
	return nil
}
