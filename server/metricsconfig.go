package server

import (
	"net"
	"regexp"
	"strconv"
	"time"

	"holdfast/gpuguard/policy"
	"holdfast/strict"
)

// MetricsConfig says what the embedded Prometheus scrapes. It is not used when
// HOLDFAST_PROMETHEUS_URL names a Prometheus of your own.
type MetricsConfig struct {
	// ScrapeInterval is the distance of scrapes; default 5s, 1s to 5m.
	ScrapeInterval policy.Duration `json:"scrape_interval,omitzero"`
	// EvaluationInterval is the distance of rule evaluations; default 5s, 1s to 5m.
	EvaluationInterval policy.Duration `json:"evaluation_interval,omitzero"`
	// Retention is how long samples are kept on disk; default 6h, 1h to 7 days.
	Retention policy.Duration `json:"retention,omitzero"`
	// Jobs are what is scraped. The rules expect the jobs "gateway" and "engine",
	// the label environment on both and service on engines.
	Jobs []ScrapeJob `json:"jobs,omitempty"`
}

// ScrapeJob is a group of targets with the same labels.
type ScrapeJob struct {
	// Job becomes the label job; several entries may share it.
	Job string `json:"job"`
	// Targets are host:port.
	Targets []string `json:"targets"`
	// Path is where metrics are; default /metrics.
	Path string `json:"path,omitempty"`
	// Labels are added to every series.
	Labels map[string]string `json:"labels,omitempty"`
}

const (
	defaultScrape    = 5 * time.Second
	defaultRetention = 6 * time.Hour
)

var labelName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

// intervals gives the three durations with defaults filled in.
func (c MetricsConfig) intervals() (scrape, evaluate, retention time.Duration) {
	or := func(d policy.Duration, fallback time.Duration) time.Duration {
		if d == 0 {
			return fallback
		}
		return d.D()
	}
	return or(c.ScrapeInterval, defaultScrape), or(c.EvaluationInterval, defaultScrape), or(c.Retention, defaultRetention)
}

func (c MetricsConfig) validate(path string, errs *strict.Errors) {
	scrape, evaluate, retention := c.intervals()
	if scrape < time.Second || scrape > 5*time.Minute {
		errs.Addf(path+".scrape_interval", "want 1s to 5m")
	}
	if evaluate < time.Second || evaluate > 5*time.Minute {
		errs.Addf(path+".evaluation_interval", "want 1s to 5m")
	}
	if retention < time.Hour || retention > 7*24*time.Hour {
		errs.Addf(path+".retention", "want 1h to 168h; keep more in a Prometheus of your own")
	}
	for i, job := range c.Jobs {
		job.validate(strict.Index(path+".jobs", i), errs)
	}
}

func (j ScrapeJob) validate(path string, errs *strict.Errors) {
	if !labelName.MatchString(j.Job) {
		errs.Addf(path+".job", "want letters, digits and '_', such as engine or gateway")
	}
	if len(j.Targets) == 0 {
		errs.Addf(path+".targets", "name at least one host:port")
	}
	for i, target := range j.Targets {
		host, port, err := net.SplitHostPort(target)
		if n, numErr := strconv.Atoi(port); err != nil || host == "" || numErr != nil || n < 1 || n > 65535 {
			errs.Addf(strict.Index(path+".targets", i), "%q: want host:port, such as 127.0.0.1:9081", target)
		}
	}
	if j.Path != "" && j.Path[0] != '/' {
		errs.Addf(path+".path", "want a path that begins with /")
	}
	for name := range j.Labels {
		if !labelName.MatchString(name) || name == "job" || name == "instance" {
			errs.Addf(strict.Join(path+".labels", name), "is no label that can be set here: want letters, digits and '_', and not job or instance")
		}
	}
}
