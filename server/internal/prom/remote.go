package prom

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"holdfast/gpuguard/signals"
	"holdfast/server/observe"
)

// Defaults of RemoteOptions.
const (
	// DefaultTimeout bounds one question with its answer.
	DefaultTimeout = 10 * time.Second
	// DefaultMaxAnswer bounds the body of one answer: 11,000 points of 50 series
	// are about 20 MB.
	DefaultMaxAnswer = 32 << 20
)

// maxErrorText bounds what is quoted of somebody else's error.
const maxErrorText = 500

// RemoteOptions configure a Remote. Zero values take their defaults.
type RemoteOptions struct {
	// URL of the Prometheus: http or https, with the path prefix if it has one. A
	// user and password in it are sent as basic authentication and shown nowhere.
	URL string
	// BearerToken is sent with each question when it is not empty.
	BearerToken string
	// Timeout bounds one question.
	Timeout time.Duration
	// MaxAnswer is the largest answer taken, in bytes.
	MaxAnswer int64
	// Transport speaks to the Prometheus; nil: one with time limits that heeds the
	// proxy settings of the environment.
	Transport http.RoundTripper
	// Logger may be nil.
	Logger *slog.Logger
}

// Remote is a Prometheus elsewhere. It implements observe.Source and is safe for
// concurrent use. It asks when it is asked, and keeps nothing.
type Remote struct {
	api     v1.API
	client  *http.Client
	timeout time.Duration
	shown   string
	log     *slog.Logger
}

// NewRemote makes a Remote; it asks nothing yet.
func NewRemote(o RemoteOptions) (*Remote, error) {
	u, err := checkURL(o.URL)
	if err != nil {
		return nil, fmt.Errorf("address of Prometheus: %w", err)
	}
	if o.Timeout < 0 || o.MaxAnswer < 0 {
		return nil, errors.New("Timeout and MaxAnswer must not be negative")
	}
	guard := &guard{next: o.Transport, limit: cmp.Or(o.MaxAnswer, DefaultMaxAnswer), header: authorization(u.User, o.BearerToken)}
	u.User = nil
	timeout := cmp.Or(o.Timeout, DefaultTimeout)
	if guard.next == nil {
		guard.next = newTransport(timeout)
	}
	client := &http.Client{
		Transport: guard,
		// A redirect could carry the token elsewhere; name the final address instead.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	c, err := api.NewClient(api.Config{Address: u.String(), Client: client})
	if err != nil {
		return nil, fmt.Errorf("address of Prometheus: %w", plain(err))
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Remote{api: v1.NewAPI(c), client: client, timeout: timeout, shown: u.String(), log: o.Logger}, nil
}

// checkURL never quotes the address: it may hold a password.
func checkURL(s string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSpace(s))
	switch {
	case err != nil:
		return nil, errors.New("it is not a URL")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("it must begin with http:// or https://")
	case u.Host == "" || u.Hostname() == "":
		return nil, errors.New("it names no host")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("it must not have a query or a fragment")
	}
	return u, nil
}

func authorization(user *url.Userinfo, token string) string {
	if token != "" {
		return "Bearer " + token
	}
	if user == nil {
		return ""
	}
	password, _ := user.Password()
	r := http.Request{Header: http.Header{}}
	r.SetBasicAuth(user.Username(), password)
	return r.Header.Get("Authorization")
}

func newTransport(timeout time.Duration) *http.Transport {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: min(timeout, 5*time.Second)}).DialContext,
		TLSHandshakeTimeout:   min(timeout, 5*time.Second),
		ResponseHeaderTimeout: timeout,
		IdleConnTimeout:       time.Minute,
		MaxIdleConnsPerHost:   8,
		ForceAttemptHTTP2:     true,
	}
}

// Close lets go of idle connections.
func (r *Remote) Close() { r.client.CloseIdleConnections() }

// Kind implements observe.Source.
func (*Remote) Kind() observe.Kind { return observe.Remote }

// Query implements observe.Source.
func (r *Remote) Query(ctx context.Context, query string, at time.Time) ([]signals.Sample, error) {
	if err := observe.CheckQuery(query, at); err != nil {
		return nil, err
	}
	if at.IsZero() {
		at = time.Now()
	}
	var v model.Value
	err := r.ask(ctx, "query", func(ctx context.Context) (err error) {
		var warnings v1.Warnings
		v, warnings, _, err = r.api.Query(ctx, query, at, v1.WithTimeout(r.timeout))
		return r.warned(ctx, warnings, err)
	})
	if err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case *model.Scalar:
		return []signals.Sample{{Labels: map[string]string{}, Value: float64(v.Value), At: instant(v.Timestamp)}}, nil
	case model.Vector:
		return samples(v)
	default:
		return nil, fmt.Errorf("%w: it gives a %s, want a scalar or an instant vector", observe.ErrBadQuery, v.Type())
	}
}

// QueryRange implements observe.Source.
func (r *Remote) QueryRange(ctx context.Context, query string, rng observe.Range) ([]signals.Series, error) {
	if err := errors.Join(observe.CheckQuery(query, time.Time{}), rng.Check()); err != nil {
		return nil, err
	}
	var v model.Value
	err := r.ask(ctx, "query_range", func(ctx context.Context) (err error) {
		var warnings v1.Warnings
		v, warnings, _, err = r.api.QueryRange(ctx, query, v1.Range{Start: rng.Start, End: rng.End, Step: rng.Step}, v1.WithTimeout(r.timeout))
		return r.warned(ctx, warnings, err)
	})
	if err != nil {
		return nil, err
	}
	matrix, ok := v.(model.Matrix)
	if !ok {
		return nil, fmt.Errorf("%w: the answer is a %s, want a matrix", observe.ErrUnavailable, v.Type())
	}
	return series(matrix)
}

// warned logs what Prometheus says about an answer that may be incomplete.
func (r *Remote) warned(ctx context.Context, warnings v1.Warnings, err error) error {
	if err == nil && len(warnings) > 0 {
		r.log.WarnContext(ctx, "Prometheus warns about an answer", "url", r.shown, "warnings", cut(strings.Join(warnings, "; ")))
	}
	return err
}

// ask bounds a question and sorts its errors.
func (r *Remote) ask(ctx context.Context, what string, do func(context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	err := do(bounded)
	if err == nil {
		return nil
	}
	err = sorted(err)
	if errors.Is(err, observe.ErrUnavailable) && ctx.Err() == nil {
		r.log.WarnContext(ctx, "Prometheus does not answer", "url", r.shown, "endpoint", what, "error", err.Error())
	}
	return err
}

// sorted tells a bad query from everything else.
func sorted(err error) error {
	said, ok := errors.AsType[*v1.Error](err)
	if !ok {
		return fmt.Errorf("%w: %w", observe.ErrUnavailable, plain(err))
	}
	switch said.Type {
	case v1.ErrBadData, v1.ErrExec:
		// Prometheus' own words.
		return fmt.Errorf("%w: %s", observe.ErrBadQuery, cut(said.Msg))
	case v1.ErrBadResponse:
		// The client library reads every kind of value but a string.
		if strings.Contains(said.Msg, `unexpected value type "string"`) {
			return fmt.Errorf("%w: it gives a string, want a scalar or an instant vector", observe.ErrBadQuery)
		}
		return fmt.Errorf("%w: not an answer of Prometheus' API: %s", observe.ErrUnavailable, cut(said.Msg))
	default:
		return fmt.Errorf("%w: %s", observe.ErrUnavailable, cut(said.Msg))
	}
}

// plain takes the address off an error of net/http: it may hold what is secret.
func plain(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return wrapped.Err
	}
	return err
}

func cut(s string) string {
	if len(s) <= maxErrorText {
		return s
	}
	return strings.ToValidUTF8(s[:maxErrorText], "") + "…"
}

var errHistogram = fmt.Errorf("%w: it gives native histograms, want numbers", observe.ErrBadQuery)

func samples(vector model.Vector) ([]signals.Sample, error) {
	out := make([]signals.Sample, len(vector))
	for i, s := range vector {
		if s.Histogram != nil {
			return nil, errHistogram
		}
		out[i] = signals.Sample{Labels: metric(s.Metric), Value: float64(s.Value), At: instant(s.Timestamp)}
	}
	return out, nil
}

func series(matrix model.Matrix) ([]signals.Series, error) {
	out := make([]signals.Series, len(matrix))
	for i, s := range matrix {
		if len(s.Histograms) > 0 {
			return nil, errHistogram
		}
		points := make([]signals.Point, len(s.Values))
		for n, p := range s.Values {
			points[n] = signals.Point{At: instant(p.Timestamp), Value: float64(p.Value)}
		}
		out[i] = signals.Series{Labels: metric(s.Metric), Points: points}
	}
	return out, nil
}

func metric(m model.Metric) map[string]string { return set(model.LabelSet(m)) }

func set(labels model.LabelSet) map[string]string {
	out := make(map[string]string, len(labels))
	for name, v := range labels {
		out[string(name)] = string(v)
	}
	return out
}

func instant(t model.Time) time.Time { return t.Time().UTC() }

// number reads a value that the API sends as text; what is no number is no data.
func number(s string) float64 {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return math.NaN()
	}
	return v
}

// compare orders label sets as Prometheus does: name by name, value by value.
func compare(a, b map[string]string) int {
	return slices.Compare(flat(a), flat(b))
}

func flat(labels map[string]string) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		out = append(out, name, labels[name])
	}
	return out
}
