package observe

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"holdfast/gpuguard/signals"
)

const (
	// boardSpan and boardStep are the sparklines': half an hour of 61 points.
	boardSpan = 30 * time.Minute
	boardStep = 30 * time.Second
	// boardFor is how long an answer is good for; many consoles ask at once.
	boardFor = 2 * time.Second
)

// Board tells how services are by their golden signals. It is safe for
// concurrent use; its cost does not grow with the number of services but for the
// series that are read: one range query for each signal.
type Board struct {
	source Source
	now    func() time.Time

	mu    sync.Mutex
	at    time.Time
	known []ServiceSignals
}

// NewBoard makes a Board over a source. The clock may be nil.
func NewBoard(source Source, now func() time.Time) *Board {
	if now == nil {
		now = time.Now
	}
	return &Board{source: source, now: now}
}

// Board gives every service, by name, or the one that is named; empty texts take
// all. ErrUnavailable when the source does not answer.
func (b *Board) Board(ctx context.Context, service, environment string) ([]ServiceSignals, error) {
	all, err := b.read(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the golden signals: %w", err)
	}
	found := []ServiceSignals{}
	for _, s := range all {
		if (service == "" || s.Service == service) && (environment == "" || s.Environment == environment) {
			found = append(found, s)
		}
	}
	return found, nil
}

func (b *Board) read(ctx context.Context) ([]ServiceSignals, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	if age := now.Sub(b.at); b.known != nil && age >= 0 && age < boardFor {
		return b.known, nil
	}
	d := draft{places: map[place]*ServiceSignals{}}
	for _, def := range signals.Golden() {
		if err := d.add(ctx, b.source, def, now); err != nil {
			return nil, err
		}
	}
	if err := d.addRules(ctx, b.source); err != nil {
		return nil, err
	}
	b.known, b.at = d.finish(now), now
	return b.known, nil
}

// place is a service in an environment.
type place struct{ service, environment string }

func placeOf(labels map[string]string) (place, bool) {
	p := place{labels["service"], labels["environment"]}
	return p, p.service != ""
}

// draft is a board being read.
type draft struct{ places map[place]*ServiceSignals }

func (d draft) of(p place) *ServiceSignals {
	s := d.places[p]
	if s == nil {
		s = &ServiceSignals{Service: p.service, Environment: p.environment, Health: signals.HealthNoData}
		d.places[p] = s
	}
	return s
}

// add reads one signal of all services.
func (d draft) add(ctx context.Context, source Source, def signals.Definition, now time.Time) error {
	found, err := source.QueryRange(ctx, def.QueryAll(), Range{Start: now.Add(-boardSpan), End: now, Step: boardStep})
	if err != nil {
		return err
	}
	usual := map[place]float64{}
	if q := def.UsualQueryAll(); q != "" {
		samples, err := source.Query(ctx, q, now)
		if err != nil {
			return err
		}
		for _, s := range samples {
			if p, ok := placeOf(s.Labels); ok {
				usual[p] = s.Value
			}
		}
	}
	for _, series := range preferred(found) {
		p, ok := placeOf(series.Labels)
		if !ok {
			continue
		}
		s := d.of(p)
		s.Signals = append(s.Signals, signalOf(def.Against(usual[p]), p, series, now))
	}
	return nil
}

// preferred keeps one series for each place: of several sources the allocator's.
func preferred(all []signals.Series) []signals.Series {
	best := map[place]signals.Series{}
	for _, s := range all {
		p, ok := placeOf(s.Labels)
		if _, there := best[p]; ok && (!there || s.Labels["source"] == signals.SourceAllocator) {
			best[p] = s
		}
	}
	return slices.Collect(maps.Values(best))
}

func signalOf(def signals.Definition, p place, series signals.Series, now time.Time) Signal {
	s := Signal{
		Name: def.Name, Title: def.Title, Help: def.Help, Unit: string(def.Unit),
		Query: def.Query(p.service, p.environment), Health: signals.HealthNoData, Source: def.Source,
		WarningAbove: def.WarningAbove, CriticalAbove: def.CriticalAbove, WarningBelow: def.WarningBelow, CriticalBelow: def.CriticalBelow,
		Points: series.Points,
	}
	if source := series.Labels["source"]; source != "" {
		s.Source = source
	}
	if n := len(series.Points); n > 0 {
		// Only a point of this very moment is the value now.
		if last := series.Points[n-1]; now.Sub(last.At) < boardStep && signals.IsData(last.Value) {
			s.Value, s.At, s.Health = &last.Value, last.At, def.Judge(last.Value)
		}
	}
	return s
}

// addRules adds what fires.
func (d draft) addRules(ctx context.Context, source Source) error {
	groups, err := source.Rules(ctx)
	if err != nil {
		return err
	}
	for _, g := range groups {
		for _, r := range g.Rules {
			for _, a := range r.Alerts {
				p, ok := placeOf(a.Labels)
				if !ok || a.State != RuleFiring {
					continue
				}
				s := d.of(p)
				s.Health = signals.Worst(s.Health, healthOf(a.Labels["severity"]))
				if !slices.Contains(s.Firing, r.Name) {
					s.Firing = append(s.Firing, r.Name)
				}
			}
		}
	}
	return nil
}

// healthOf is what a firing alert of a severity means for its service.
func healthOf(severity string) signals.Health {
	switch severity {
	case "critical", "error":
		return signals.Critical
	case "warning":
		return signals.Warning
	default:
		return signals.HealthNoData
	}
}

// finish fills in the signals that have no data and sorts.
func (d draft) finish(now time.Time) []ServiceSignals {
	all := make([]ServiceSignals, 0, len(d.places))
	for p, s := range d.places {
		have := map[string]Signal{}
		for _, sig := range s.Signals {
			have[sig.Name] = sig
		}
		s.Signals = s.Signals[:0]
		for _, def := range signals.Golden() {
			sig, ok := have[def.Name]
			if !ok {
				sig = signalOf(def, p, signals.Series{}, now)
			}
			s.Signals = append(s.Signals, sig)
			s.Health = signals.Worst(s.Health, sig.Health)
		}
		slices.Sort(s.Firing)
		all = append(all, *s)
	}
	slices.SortFunc(all, func(a, b ServiceSignals) int {
		if c := strings.Compare(a.Service, b.Service); c != 0 {
			return c
		}
		return strings.Compare(a.Environment, b.Environment)
	})
	return all
}
