package embedded

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"

	"holdfast/gpuguard/signals"
	"holdfast/server/observe"
)

var errStopped = fmt.Errorf("%w: the embedded Prometheus does not run", observe.ErrUnavailable)

// Query implements observe.Source.
func (e *Engine) Query(ctx context.Context, query string, at time.Time) ([]signals.Sample, error) {
	if err := observe.CheckQuery(query, at); err != nil {
		return nil, err
	}
	if at.IsZero() {
		at = time.Now()
	}
	ctx, r, leave, err := e.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	q, err := e.promql.NewInstantQuery(ctx, r.db, nil, query, at)
	if err != nil {
		return nil, badQuery(err)
	}
	defer q.Close()
	result := q.Exec(ctx)
	if result.Err != nil {
		return nil, executed(result.Err)
	}
	switch v := result.Value.(type) {
	case promql.Scalar:
		return []signals.Sample{{Labels: map[string]string{}, Value: v.V, At: instant(v.T)}}, nil
	case promql.Vector:
		return samples(v)
	default:
		return nil, fmt.Errorf("%w: it gives a %s, want a scalar or an instant vector", observe.ErrBadQuery, result.Value.Type())
	}
}

// QueryRange implements observe.Source.
func (e *Engine) QueryRange(ctx context.Context, query string, r observe.Range) ([]signals.Series, error) {
	if err := errors.Join(observe.CheckQuery(query, time.Time{}), r.Check()); err != nil {
		return nil, err
	}
	ctx, run, leave, err := e.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	q, err := e.promql.NewRangeQuery(ctx, run.db, nil, query, r.Start, r.End, r.Step)
	if err != nil {
		return nil, badQuery(err)
	}
	defer q.Close()
	matrix, err := q.Exec(ctx).Matrix()
	if err != nil {
		return nil, executed(err)
	}
	return series(matrix)
}

// enter waits for a turn and keeps the storage open until leave is called. The
// context it returns ends with the caller's, and when the engine stops.
func (e *Engine) enter(ctx context.Context) (_ context.Context, _ *running, leave func(), err error) {
	select {
	case e.turns <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, nil, fmt.Errorf("%w: too many queries at once: %w", observe.ErrUnavailable, ctx.Err())
	}
	e.mu.RLock()
	r := e.run
	if r == nil {
		e.mu.RUnlock()
		<-e.turns
		return nil, nil, nil, errStopped
	}
	ctx, cancel := context.WithCancel(ctx)
	release := context.AfterFunc(r.queries, cancel)
	return ctx, r, func() { release(); cancel(); e.mu.RUnlock(); <-e.turns }, nil
}

func badQuery(err error) error { return fmt.Errorf("%w: %w", observe.ErrBadQuery, err) }

// executed sorts the errors of the engine: what a person can write better, and
// what is not the query's fault.
func executed(err error) error {
	var (
		timeout  promql.ErrQueryTimeout
		canceled promql.ErrQueryCanceled
		storage  promql.ErrStorage
	)
	if errors.As(err, &timeout) || errors.As(err, &canceled) || errors.As(err, &storage) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w", observe.ErrUnavailable, err)
	}
	return badQuery(err)
}

var errHistogram = fmt.Errorf("%w: it gives native histograms, want numbers", observe.ErrBadQuery)

func samples(vector promql.Vector) ([]signals.Sample, error) {
	out := make([]signals.Sample, len(vector))
	for i, s := range vector {
		if s.H != nil {
			return nil, errHistogram
		}
		out[i] = signals.Sample{Labels: labelMap(s.Metric), Value: s.F, At: instant(s.T)}
	}
	return out, nil
}

func series(matrix promql.Matrix) ([]signals.Series, error) {
	out := make([]signals.Series, len(matrix))
	for i, s := range matrix {
		if len(s.Histograms) > 0 {
			return nil, errHistogram
		}
		points := make([]signals.Point, len(s.Floats))
		for n, p := range s.Floats {
			points[n] = signals.Point{At: instant(p.T), Value: p.F}
		}
		out[i] = signals.Series{Labels: labelMap(s.Metric), Points: points}
	}
	return out, nil
}

// labelMap copies: the engine reuses its memory once the query is closed.
func labelMap(l labels.Labels) map[string]string { return l.Map() }

func instant(ms int64) time.Time { return time.UnixMilli(ms).UTC() }
