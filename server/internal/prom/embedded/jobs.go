package embedded

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	promconfig "github.com/prometheus/common/config"
	"github.com/prometheus/common/model"

	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/discovery/targetgroup"
)

// reloadInterval is how often the scraper looks for new targets: a gateway that
// came up is scraped within a second.
func reloadInterval(scrape time.Duration) model.Duration {
	return model.Duration(min(time.Second, scrape))
}

// SetJobs replaces what is scraped. Targets that stay keep their state; series of
// those that go are marked stale after two intervals. Before Start it replaces
// Options.Jobs. It fails, and changes nothing, when a job is invalid.
func (e *Engine) SetJobs(ctx context.Context, jobs []Job) error {
	if err := checkJobs(jobs); err != nil {
		return fmt.Errorf("embedded Prometheus: %w", err)
	}
	e.jobsMu.Lock()
	defer e.jobsMu.Unlock()
	e.mu.RLock()
	defer e.mu.RUnlock()
	if e.run != nil {
		if err := e.apply(e.run, jobs); err != nil {
			return fmt.Errorf("embedded Prometheus: %w", err)
		}
		select {
		case e.run.targets <- targetGroups(jobs, e.run.pools):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	e.jobs = jobs
	return nil
}

// apply gives the scraper the configuration of the jobs. A pool that was there
// once stays as it was, without targets: removing or changing it would leave its
// series without the marker that ends them.
func (e *Engine) apply(r *running, jobs []Job) error {
	c, err := config.Load("", e.log)
	if err != nil {
		return err
	}
	for _, j := range jobs {
		r.pools[j.Name] = j.BearerToken
	}
	for _, name := range slices.Sorted(maps.Keys(r.pools)) {
		pool, err := e.pool(name, r.pools[name])
		if err != nil {
			return err
		}
		if err := pool.Validate(c.GlobalConfig); err != nil {
			return err
		}
		c.ScrapeConfigs = append(c.ScrapeConfigs, pool)
	}
	return r.scrape.ApplyConfig(c)
}

func (e *Engine) pool(name, token string) (*config.ScrapeConfig, error) {
	p := config.DefaultScrapeConfig
	p.JobName = name
	p.ScrapeInterval, p.ScrapeTimeout = model.Duration(e.o.ScrapeInterval), model.Duration(e.o.ScrapeTimeout)
	p.BodySizeLimit, p.SampleLimit = maxScrapeBytes, maxScrapeSamples
	p.LabelLimit, p.LabelNameLengthLimit, p.LabelValueLengthLimit = maxLabels, maxLabelName, maxLabelValue
	// A metrics page is asked for as text, whatever it says about itself.
	p.ScrapeFallbackProtocol = config.PrometheusText0_0_4
	// A token must not follow a redirect to another host.
	p.HTTPClientConfig.FollowRedirects = false
	if token != "" {
		p.HTTPClientConfig.Authorization = &promconfig.Authorization{Type: "Bearer", Credentials: promconfig.Secret(token)}
	}
	return &p, p.HTTPClientConfig.Validate()
}

// targetGroups gives the targets of each pool. Scheme and path are labels that
// the scraper reads, so jobs of one name may differ in them.
func targetGroups(jobs []Job, pools map[string]string) map[string][]*targetgroup.Group {
	sets := map[string][]*targetgroup.Group{}
	for name := range pools {
		sets[name] = nil
	}
	for i, j := range jobs {
		g := &targetgroup.Group{
			Source: fmt.Sprintf("%s/%d", j.Name, i),
			Labels: model.LabelSet{
				model.SchemeLabel:      model.LabelValue(cmp.Or(j.Scheme, "http")),
				model.MetricsPathLabel: model.LabelValue(cmp.Or(j.Path, "/metrics")),
			},
		}
		for name, v := range j.Labels {
			g.Labels[model.LabelName(name)] = model.LabelValue(v)
		}
		for _, a := range j.Addresses {
			g.Targets = append(g.Targets, model.LabelSet{model.AddressLabel: model.LabelValue(a)})
		}
		sets[j.Name] = append(sets[j.Name], g)
	}
	return sets
}
