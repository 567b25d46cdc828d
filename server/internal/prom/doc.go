// Package prom asks a Prometheus over its HTTP API. Prometheus in this process is
// the package embedded below; both implement observe.Source and behave alike, which
// the tests of embedded check against each other.
package prom
