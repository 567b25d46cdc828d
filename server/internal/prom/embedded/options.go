package embedded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"

	"github.com/prometheus/prometheus/config"
)

// Defaults of Options.
const (
	DefaultScrapeInterval     = 5 * time.Second
	DefaultEvaluationInterval = 5 * time.Second
	DefaultRetention          = 6 * time.Hour
	// DefaultMaxSamples bounds what one query may hold in memory: 16 bytes each, 80 MB.
	DefaultMaxSamples = 5_000_000
	// DefaultQueryTimeout bounds one query of a person or a page.
	DefaultQueryTimeout = 10 * time.Second
	// DefaultQueries is how many queries run at once; rules do not wait for them.
	DefaultQueries = 4
)

// Limits of a scrape. What exceeds them fails the scrape: up is 0 and the target
// says why.
const (
	maxScrapeBytes   = 32 << 20
	maxScrapeSamples = 50_000
	maxLabels        = 64
	maxLabelName     = 512
	maxLabelValue    = 4096
)

// Options configure an Engine. Zero values take their defaults.
type Options struct {
	// Dir is the folder of its data, made when missing. Required.
	Dir string
	// ScrapeInterval is how often a target is asked.
	ScrapeInterval time.Duration
	// ScrapeTimeout bounds one scrape: the interval, at most 10 s.
	ScrapeTimeout time.Duration
	// EvaluationInterval is how often rules are evaluated whose group does not say.
	EvaluationInterval time.Duration
	// Retention is how long samples are kept, at least an hour.
	Retention time.Duration
	// Rules are Prometheus rule files.
	Rules []RuleFile
	// Jobs are what is scraped from the start; SetJobs replaces them.
	Jobs []Job
	// ExternalURL is this server's address for people, for templates of rules.
	ExternalURL string
	// Link gives the address of a page that shows an expression; nil: alerts carry none.
	Link func(expr string) string
	// Deliver takes the JSON of an Alertmanager webhook of version "4". Required
	// when a rule alerts. It may be called with the same webhook again.
	Deliver func(ctx context.Context, webhook []byte) error
	// Repeat is how often firing alerts are delivered again (notify.DefaultRepeat).
	Repeat time.Duration
	// QueryTimeout, MaxSamples and Queries bound what queries cost.
	QueryTimeout time.Duration
	MaxSamples   int
	Queries      int
	// Logger and Registerer may be nil.
	Logger     *slog.Logger
	Registerer prometheus.Registerer
}

// RuleFile is one rule file in Prometheus' format.
type RuleFile struct {
	// Name stands in messages and identifies the file.
	Name string
	Data []byte
}

// Job is a set of addresses that are scraped alike.
type Job struct {
	// Name is the label job. Several Jobs may share it, with other labels, schemes
	// or paths.
	Name string
	// Scheme is "http" (default) or "https".
	Scheme string
	// Path is "/metrics" when empty.
	Path string
	// Addresses are host:port.
	Addresses []string
	// Labels are added to every series of these targets.
	Labels map[string]string
	// BearerToken is sent when it is not empty. Jobs that share a Name share it.
	BearerToken string
}

func (o Options) withDefaults() Options {
	o.ScrapeInterval = cmp.Or(o.ScrapeInterval, DefaultScrapeInterval)
	o.ScrapeTimeout = cmp.Or(o.ScrapeTimeout, min(o.ScrapeInterval, 10*time.Second))
	o.EvaluationInterval = cmp.Or(o.EvaluationInterval, DefaultEvaluationInterval)
	o.Retention = cmp.Or(o.Retention, DefaultRetention)
	o.QueryTimeout = cmp.Or(o.QueryTimeout, DefaultQueryTimeout)
	o.MaxSamples = cmp.Or(o.MaxSamples, DefaultMaxSamples)
	o.Queries = cmp.Or(o.Queries, DefaultQueries)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// minInterval is what Prometheus' labels for intervals, in milliseconds, and a
// small machine can bear.
const minInterval = 100 * time.Millisecond

func (o Options) check() error {
	switch {
	case o.Dir == "":
		return errors.New("Dir is empty")
	case o.ScrapeInterval < minInterval || o.EvaluationInterval < minInterval || o.ScrapeTimeout < minInterval:
		return fmt.Errorf("ScrapeInterval, ScrapeTimeout and EvaluationInterval must be at least %s", minInterval)
	case o.ScrapeTimeout > o.ScrapeInterval:
		return fmt.Errorf("ScrapeTimeout is %s, longer than ScrapeInterval %s", o.ScrapeTimeout, o.ScrapeInterval)
	case o.Retention < time.Hour:
		return fmt.Errorf("Retention is %s, want at least 1h", o.Retention)
	case o.MaxSamples < 1 || o.Queries < 1 || o.QueryTimeout < 0:
		return errors.New("MaxSamples, Queries and QueryTimeout must be positive")
	}
	if _, err := url.Parse(o.ExternalURL); err != nil {
		return errors.New("ExternalURL is not a URL")
	}
	return nil
}

// LookbackDelta is how long a value counts as current: three scrapes, so that one
// lost scrape makes no gap, and at least 30 s.
func (o Options) LookbackDelta() time.Duration {
	return max(30*time.Second, 3*cmp.Or(o.ScrapeInterval, DefaultScrapeInterval))
}

// settle is how long after the start the silence of a rule counts: two scrapes
// give a rate, two evaluations a recorded series and the alert made of it.
func (o Options) settle() time.Duration {
	return 4 * max(o.ScrapeInterval, o.EvaluationInterval)
}

// reserved are labels that a Job cannot set.
var reserved = []string{model.MetricNameLabel, model.JobLabel, model.InstanceLabel}

func checkJobs(jobs []Job) error {
	tokens := map[string]string{}
	for _, j := range jobs {
		if err := j.check(); err != nil {
			return fmt.Errorf("job %q: %w", j.Name, err)
		}
		if token, ok := tokens[j.Name]; ok && token != j.BearerToken {
			return fmt.Errorf("job %q: has two bearer tokens; give the jobs two names", j.Name)
		}
		tokens[j.Name] = j.BearerToken
	}
	return nil
}

func (j Job) check() error {
	switch {
	case j.Name == "":
		return errors.New("has no name")
	case j.Scheme != "" && j.Scheme != "http" && j.Scheme != "https":
		return fmt.Errorf("the scheme is %q, want http or https", j.Scheme)
	case j.Path != "" && j.Path[0] != '/':
		return fmt.Errorf("the path %q does not start with /", j.Path)
	}
	for _, a := range j.Addresses {
		if err := config.CheckTargetAddress(model.LabelValue(a)); err != nil || a == "" {
			return fmt.Errorf("%q is no address, want host:port", a)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(j.Labels)) {
		switch {
		case !model.UTF8Validation.IsValidLabelName(name) || len(name) > 1 && name[:2] == "__" || slices.Contains(reserved, name):
			return fmt.Errorf("the label %q cannot be set", name)
		case !model.LabelValue(j.Labels[name]).IsValid():
			return fmt.Errorf("the label %q is not UTF-8", name)
		}
	}
	return nil
}
