package signals

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// nameLabel is the label that carries a sample's metric name.
const nameLabel = "__name__"

// mostApart bounds the time between two scrapes that are compared; what grew
// over a longer time says nothing about now.
const mostApart = 10 * time.Minute

// Preempted is the share of sequences that a paged KV pool took back, of those
// that were taken back or finished. It has SourceEngineKV and is a reading of its
// own, so that nobody takes it for an allocator's fragmentation.
const Preempted = "preempted"

// Scrape is what one target said at one time. The label "__name__" of a sample
// is its metric's name.
type Scrape struct {
	At      time.Time
	Samples []Sample
}

// Reading is one signal of one engine.
type Reading struct {
	// Value is nil when there is no data; Why says then what is the matter.
	Value *float64
	Why   string
	Unit  Unit
	// Source is where the number comes from, Metric the name that was used; empty
	// when no known name was there.
	Source string
	Metric string
	At     time.Time
}

// Readings are the signals of one engine by name, those without data too.
type Readings map[string]Reading

// Nothing says that no known name was found: the mapping yields nothing, and
// that is an alert, never a zero (C30).
func (r Readings) Nothing() bool {
	for _, reading := range r {
		if reading.Metric != "" {
			return false
		}
	}
	return true
}

// Missing names the signals without data, in order.
func (r Readings) Missing() []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(r)) {
		if r[name].Value == nil {
			names = append(names, name)
		}
	}
	return names
}

// Extract reads the signals of one engine from its latest scrape and the one
// before, which rates and means need; the zero Scrape stands for none. The first
// name of a signal that gives a number is used. Missing, NaN, infinite and
// impossible samples and counters that were reset are no data.
func (a *Aliases) Extract(before, now Scrape) Readings {
	x := extraction{before: index(before.Samples), now: index(now.Samples), apart: now.At.Sub(before.At)}
	if before.At.IsZero() || x.apart < 0 || x.apart > mostApart {
		x.apart = 0
	}
	out := Readings{}
	for name, m := range measures {
		out[name] = x.signal(m, a.Signals[name], now.At)
	}
	out[Preempted] = preempted(out[Preemptions], out[Finished])
	return out
}

func preempted(preemptions, finished Reading) Reading {
	r := Reading{Unit: Ratio, Source: SourceEngineKV, Metric: preemptions.Metric, At: preemptions.At}
	switch {
	case preemptions.Value == nil:
		r.Why = preemptions.Why
	case finished.Value == nil:
		r.Why = finished.Why
	case *preemptions.Value+*finished.Value <= 0:
		r.Why = "nothing ran"
	default:
		r.Value = data(*preemptions.Value / (*preemptions.Value + *finished.Value))
	}
	return r
}

// data is a pointer to a number one can judge, nil for others.
func data(v float64) *float64 {
	if !IsData(v) {
		return nil
	}
	return &v
}

// extraction is the work on one pair of scrapes.
type extraction struct {
	before, now map[string][]Sample
	apart       time.Duration // 0 when the scrapes cannot be compared
}

func index(samples []Sample) map[string][]Sample {
	out := map[string][]Sample{}
	for _, s := range samples {
		if name := s.Labels[nameLabel]; name != "" {
			out[name] = append(out[name], s)
		}
	}
	return out
}

func (x *extraction) signal(m measure, aliases []Alias, at time.Time) Reading {
	r := Reading{Unit: m.unit, Source: m.source, At: at, Why: "no known name"}
	for _, alias := range aliases {
		v, why := x.read(alias, m)
		if why == absent {
			continue
		}
		if why == "" && IsData(v) && v >= 0 && v <= m.most {
			r.Value, r.Why, r.Metric = &v, "", alias.Metric
			return r
		}
		if r.Metric == "" {
			r.Metric, r.Why = alias.Metric, why
			if why == "" {
				r.Why = notANumber
			}
		}
	}
	return r
}

// Reasons for no data.
const (
	absent     = "absent"
	notANumber = "not a number that can be"
	wasReset   = "the counter was reset"
	notTwice   = "no comparable scrape before"
	nothingNew = "nothing happened between the scrapes"
)

// read gives the value of an alias, or why there is none.
func (x *extraction) read(a Alias, m measure) (v float64, why string) {
	switch a.Type {
	case AliasGauge:
		return x.gauge(a, m)
	case AliasShare:
		return x.share(a, m)
	case AliasCounter:
		grown, why := x.grown(a, a.Metric)
		if why == "" && x.apart == 0 {
			why = notTwice
		}
		if why != "" {
			return 0, why
		}
		return grown * a.scale() / x.apart.Seconds(), ""
	case AliasHistogram, AliasMean:
		return x.mean(a)
	default:
		return 0, absent
	}
}

func (x *extraction) gauge(a Alias, m measure) (float64, string) {
	samples := x.matching(x.now, a, a.Metric)
	if len(samples) == 0 {
		return 0, absent
	}
	var values []float64
	for _, s := range samples {
		if v := s.Value * a.scale(); IsData(v) && v >= 0 && v <= m.most {
			values = append(values, v)
		}
	}
	if len(values) == 0 {
		return 0, notANumber
	}
	return m.join.of(values), ""
}

// share is Metric / (Of − Less), the greatest of those with equal labels.
func (x *extraction) share(a Alias, m measure) (float64, string) {
	parts := x.matching(x.now, a, a.Metric)
	if len(parts) == 0 {
		return 0, absent
	}
	of, less := keyed(x.matching(x.now, a, a.Of)), keyed(x.matching(x.now, a, a.Less))
	var values []float64
	for _, s := range parts {
		whole, has := of[labelKey(s)]
		static, hasStatic := less[labelKey(s)]
		if !has || !hasStatic || whole-static <= 0 {
			continue
		}
		if v := s.Value / (whole - static) * a.scale(); IsData(v) && v >= 0 && v <= m.most {
			values = append(values, v)
		}
	}
	if len(values) == 0 {
		return 0, notANumber
	}
	return m.join.of(values), ""
}

// mean is how much the sum grew for each one that was counted.
func (x *extraction) mean(a Alias) (float64, string) {
	names := a.Metrics()
	sum, why := x.grown(a, names[0])
	if why != "" {
		return 0, why
	}
	count, why := x.grown(a, names[1])
	switch {
	case why != "":
		return 0, why
	case x.apart == 0:
		return 0, notTwice
	case count <= 0:
		return 0, nothingNew
	}
	return sum * a.scale() / count, ""
}

// grown is how much a counter grew, over all its series that were there before.
func (x *extraction) grown(a Alias, metric string) (float64, string) {
	now := x.matching(x.now, a, metric)
	if len(now) == 0 {
		return 0, absent
	}
	before := keyed(x.matching(x.before, a, metric))
	total, found := 0.0, false
	for _, s := range now {
		was, there := before[labelKey(s)]
		switch {
		case !there:
			continue
		case !s.Valid() || !IsData(was) || s.Value < 0 || was < 0:
			return 0, notANumber
		case s.Value < was:
			return 0, wasReset
		}
		total += s.Value - was
		found = true
	}
	if !found {
		return 0, notTwice
	}
	return total, ""
}

// matching are the samples of a metric that have the alias's labels.
func (x *extraction) matching(from map[string][]Sample, a Alias, metric string) []Sample {
	if len(a.Labels) == 0 {
		return from[metric]
	}
	var out []Sample
	for _, s := range from[metric] {
		if hasLabels(s, a.Labels) {
			out = append(out, s)
		}
	}
	return out
}

func hasLabels(s Sample, want map[string]string) bool {
	for k, v := range want {
		if s.Labels[k] != v {
			return false
		}
	}
	return true
}

// keyed gives values by labels.
func keyed(samples []Sample) map[string]float64 {
	out := make(map[string]float64, len(samples))
	for _, s := range samples {
		out[labelKey(s)] = s.Value
	}
	return out
}

// labelKey tells series of one metric apart.
func labelKey(s Sample) string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(s.Labels)) {
		if k != nameLabel {
			b.WriteString(k + "\xff" + s.Labels[k] + "\xff")
		}
	}
	return b.String()
}
