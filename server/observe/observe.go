// Package observe is what holdfast learns from metrics: the port behind which a
// remote or the embedded Prometheus stands, and the board of golden signals that
// the console shows for each service.
package observe

import (
	"context"
	"errors"
	"time"

	"holdfast/gpuguard/signals"
)

// Source answers questions about metrics. Both implementations, a remote
// Prometheus and Prometheus' own packages in this process, behave alike.
type Source interface {
	// Query evaluates PromQL at one time; the zero time means now. A scalar is one
	// sample without labels. ErrBadQuery wraps what is wrong with the query,
	// ErrUnavailable that nobody answered.
	Query(ctx context.Context, query string, at time.Time) ([]signals.Sample, error)
	// QueryRange evaluates PromQL over a time range.
	QueryRange(ctx context.Context, query string, r Range) ([]signals.Series, error)
	// Rules lists the rule groups with the state of each rule.
	Rules(ctx context.Context) ([]RuleGroup, error)
	// Targets lists what is scraped and how it went.
	Targets(ctx context.Context) ([]Target, error)
	// Kind says which one it is.
	Kind() Kind
}

// Kind of a Source.
type Kind string

// Kinds.
const (
	Remote   Kind = "remote"
	Embedded Kind = "embedded"
)

// Range is a time range with its resolution; both ends are included.
type Range struct {
	Start, End time.Time
	Step       time.Duration
}

// MaxPoints is the most points per series a range may have, Prometheus' own limit.
const MaxPoints = 11000

// Sentinels.
var (
	// ErrBadQuery wraps the parser's or engine's own words.
	ErrBadQuery = errors.New("invalid query")
	// ErrUnavailable: Prometheus does not answer.
	ErrUnavailable = errors.New("metrics are not available")
)

// RuleGroup is one group of a rule file.
type RuleGroup struct {
	Name     string
	Interval time.Duration
	Rules    []Rule
}

// RuleState is what an alerting rule says now.
type RuleState string

// Rule states; recording rules have none.
const (
	RuleInactive RuleState = "inactive"
	RulePending  RuleState = "pending"
	RuleFiring   RuleState = "firing"
)

// Rule is one recording or alerting rule.
type Rule struct {
	Name  string
	Query string
	// Alerting is false for a recording rule.
	Alerting bool
	// For is how long the condition must hold before it fires.
	For         time.Duration
	State       RuleState
	Labels      map[string]string
	Annotations map[string]string
	// Health is "ok", "err" or "unknown"; LastError says why it is "err".
	Health      string
	LastError   string
	EvaluatedAt time.Time
	// Alerts are the active ones.
	Alerts []ActiveAlert
}

// ActiveAlert is one pending or firing series of a rule.
type ActiveAlert struct {
	Labels   map[string]string
	State    RuleState
	ActiveAt time.Time
	Value    float64
}

// Target is one scraped address.
type Target struct {
	Job    string
	URL    string
	Labels map[string]string
	// Health is "up", "down" or "unknown"; LastError says why it is "down".
	Health    string
	LastError string
	ScrapedAt time.Time
	// Took is how long the last scrape took.
	Took time.Duration
}
