package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast/actions"
	"holdfast/server/alert"
	"holdfast/server/identity"
	"holdfast/server/internal/httpapi"
	"holdfast/server/internal/prom"
	"holdfast/server/internal/prom/embedded"
	"holdfast/server/observe"
)

// metricsSource is the name under which the embedded Prometheus' alerts are taken in.
const metricsSource = "embedded-prometheus"

// PrometheusOptions say where metrics come from.
type PrometheusOptions struct {
	// URL is a Prometheus of your own; the embedded one runs when it is empty.
	URL string
	// Token is a bearer token for it; may be empty.
	Token string
	// Dir is where the embedded one keeps its samples.
	Dir string
	// Rules are the rule files the embedded one evaluates, by name.
	Rules map[string][]byte
}

// validate says what is missing; an address is checked when it is connected to.
func (p *PrometheusOptions) validate() error {
	if p.URL == "" && p.Dir == "" {
		return errors.New("metrics: the embedded Prometheus needs a folder")
	}
	return nil
}

// openMetrics connects to Prometheus, or makes the embedded one; startMetrics starts it.
func (s *Server) openMetrics(context.Context) error {
	p := s.opts.Prometheus
	if s.opts.Metrics != nil || p == nil {
		s.metrics = s.opts.Metrics
		return nil
	}
	log := s.log.With("component", "metrics")
	if p.URL != "" {
		remote, err := prom.NewRemote(prom.RemoteOptions{URL: p.URL, BearerToken: p.Token, Logger: log})
		if err != nil {
			return fmt.Errorf("prometheus: %w", err)
		}
		s.metrics = remote
		return nil
	}
	c := s.opts.Config.Metrics
	scrape, evaluate, retention := c.intervals()
	o := embedded.Options{
		Dir: p.Dir, ScrapeInterval: scrape, EvaluationInterval: evaluate, Retention: retention,
		ExternalURL: s.public.String(), Deliver: s.deliverAlerts, Logger: log, Registerer: s.opts.Registerer,
	}
	for name, data := range p.Rules {
		o.Rules = append(o.Rules, embedded.RuleFile{Name: name, Data: data})
	}
	for _, job := range c.Jobs {
		o.Jobs = append(o.Jobs, embedded.Job{Name: job.Job, Path: job.Path, Addresses: job.Targets, Labels: job.Labels})
	}
	engine, err := embedded.New(o)
	if err != nil {
		return fmt.Errorf("embedded Prometheus: %w", err)
	}
	s.metrics, s.prometheus = engine, engine
	return nil
}

// metricsRetry is how long after a failure the embedded Prometheus is started again.
const metricsRetry = time.Minute

// startMetrics starts the embedded Prometheus, once alerts can be taken in. A
// full disk or a broken folder must not keep the server from its work: then
// questions about metrics are answered as unavailable, and it is tried again.
func (s *Server) startMetrics(ctx context.Context) error {
	if s.prometheus == nil {
		return nil
	}
	s.cleanup(s.prometheus.Stop)
	err := s.prometheus.Start(ctx)
	if err == nil || ctx.Err() != nil {
		return err
	}
	s.log.Error("the embedded Prometheus could not be started; its rules call nobody until it is", "error", err, "retry_in", metricsRetry.String())
	running := false
	s.every(context.WithoutCancel(ctx), metricsRetry, "start the embedded Prometheus", func(ctx context.Context) error {
		if running {
			return nil
		}
		err := s.prometheus.Start(ctx)
		running = err == nil
		return err
	})
	return nil
}

// deliverAlerts takes what the embedded Prometheus fires in like any other
// source's notification.
func (s *Server) deliverAlerts(ctx context.Context, webhook []byte) error {
	n, err := alert.ParseAlertmanager(webhook, metricsSource)
	if err != nil {
		return err
	}
	_, err = s.intake.Accept(identity.WithPrincipal(ctx, identity.System()), n)
	return err
}

// judge is what actions are verified with; nil (the interface) without metrics.
func (s *Server) judge() actions.Metrics {
	if s.metrics == nil {
		return nil
	}
	return s.metrics
}

// board is what the console shows; nil (the interface) without metrics.
func (s *Server) board() httpapi.Signals {
	if s.metrics == nil {
		return nil
	}
	return observe.NewBoard(s.metrics, s.opts.Clock)
}
