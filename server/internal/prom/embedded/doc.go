// Package embedded runs Prometheus' own storage, query engine, scraper and rule
// manager in this process, for an installation without a Prometheus.
//
//	targets ◀──scrape── scrape.Manager ──▶ tsdb (Dir/tsdb) ◀── promql ◀── Query, QueryRange
//	                                          ▲    │
//	                                   recorded    ▼
//	                                  series   rules.Manager ──▶ notify (Dir/alerts.json) ──▶ Deliver
//
// It is the only importer of these packages, which weigh about 19 MB of binary:
// nothing but the wiring of the server imports it.
//
// # What is on disk
//
// Samples go to a write-ahead log at once and into blocks of half an hour later,
// so kill -9 loses what was scraped in the last moments at most; the log is
// replayed at the next Start. A lock file that a killed process left behind is
// taken over; one that is held by a living process is an error of Start.
//
// Blocks are dropped when they are older than Retention. At 6 h and one scrape in
// 5 s a series takes about 22 KB of disk and 3 KB of memory (TestDiskIsBounded and
// BenchmarkScrape measure both): 2,000 series are 45 MB and 6 MB.
//
// # What "now" means
//
// A value counts as current for LookbackDelta: Prometheus' default of 5 minutes
// would let a stopped scrape look healthy all that time. Targets that answer no
// more are marked stale by the scraper at once; the look-back only matters when
// the scraping itself stopped, as it does during a restart.
package embedded
