// Package e2e drives the shipped programs as separate processes, together with a
// real Alertmanager, a real browser and a real PostgreSQL. Its tests have the
// build tag e2e; `make e2e` runs them.
package e2e
