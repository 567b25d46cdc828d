// Package embedded runs Prometheus' own storage, query engine, scraper and rule manager in-process.
package embedded

import (
	_ "github.com/prometheus/prometheus/discovery/targetgroup"
	_ "github.com/prometheus/prometheus/promql"
	_ "github.com/prometheus/prometheus/rules"
	_ "github.com/prometheus/prometheus/scrape"
	_ "github.com/prometheus/prometheus/tsdb"
)
