package runbookstest

import (
	"context"
	"slices"
	"sync"
	"time"

	"holdfast/gpuguard/signals"
)

// Metrics is a runbooks.Metrics that answers every query alike.
type Metrics struct {
	mu      sync.Mutex
	answer  []signals.Sample
	err     error
	queries []string
}

// Answer sets the values that every query gives; none at all is no data.
func (m *Metrics) Answer(values ...float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.answer, m.err = nil, nil
	for _, v := range values {
		m.answer = append(m.answer, signals.Sample{Value: v})
	}
}

// Fail lets every query fail; nil is no data again.
func (m *Metrics) Fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.answer, m.err = nil, err
}

// Queries are what was asked, in order.
func (m *Metrics) Queries() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.queries)
}

// Query gives what Answer or Fail set.
func (m *Metrics) Query(ctx context.Context, query string, _ time.Time) ([]signals.Sample, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.queries = append(m.queries, query)
	return slices.Clone(m.answer), m.err
}
