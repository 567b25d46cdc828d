package signals

import (
	_ "embed"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"sync"

	"holdfast/strict"
)

// Signals that engines give besides the golden ones.
const (
	Running     = "running"
	QueueTime   = "queue_time"
	Preemptions = "preemptions"
	Finished    = "finished"
	// Answer is the mean length of an answer.
	Answer = "answer"
)

// measure is what an engine signal counts and the values it can have.
type measure struct {
	unit Unit
	most float64 // greatest value that means anything; the least is 0
	// join adds up what the parts of one engine say, or takes the greatest.
	join   Aggregation
	source string
}

// anyNumber bounds what has no bound of its own: more is no measurement.
const anyNumber = 1e15

var measures = map[string]measure{
	Queue:         {Requests, anyNumber, Sum, SourceEngine},
	Running:       {Requests, anyNumber, Sum, SourceEngine},
	QueueTime:     {Seconds, anyNumber, Max, SourceEngine},
	Decode:        {SecondsPerToken, anyNumber, Max, SourceEngine},
	Tokens:        {TokensPerSecond, anyNumber, Sum, SourceEngine},
	Answer:        {TokensPerRequest, anyNumber, Max, SourceEngine},
	KVUse:         {Ratio, 1, Max, SourceEngine},
	Preemptions:   {RequestsPerSecond, anyNumber, Sum, SourceEngine},
	Finished:      {RequestsPerSecond, anyNumber, Sum, SourceEngine},
	Fragmentation: {Ratio, 1, Max, SourceAllocator},
}

// AliasType is how a metric is read.
type AliasType string

// Alias types.
const (
	// AliasGauge is read as it is.
	AliasGauge AliasType = "gauge"
	// AliasCounter is read as growth per second between two scrapes.
	AliasCounter AliasType = "counter"
	// AliasHistogram is the mean of what was observed between two scrapes.
	AliasHistogram AliasType = "histogram"
	// AliasMean is the same from two counters, Metric and Count.
	AliasMean AliasType = "mean"
	// AliasShare is Metric / (Of − Less), three gauges.
	AliasShare AliasType = "share"
)

// Alias is one name under which an engine exports a signal.
type Alias struct {
	// Engine is the kind of engine, such as "vllm"; Versions says in words which, empty for all.
	Engine   string `json:"engine"`
	Versions string `json:"versions,omitempty"`
	// Metric is the metric's name; a histogram's without _sum and _count.
	Metric string `json:"metric"`
	// Count is the second counter of a mean; Of and Less are the other gauges of a share.
	Count string `json:"count,omitempty"`
	Of    string `json:"of,omitempty"`
	Less  string `json:"less,omitempty"`
	// Labels that a sample must have.
	Labels map[string]string `json:"labels,omitempty"`
	Type   AliasType         `json:"type"`
	// Scale turns the metric's unit into the signal's, such as 1e-6 for
	// microseconds; 0 means 1.
	Scale float64 `json:"scale,omitempty"`
}

// Aliases are the names known for each signal, those to prefer first.
type Aliases struct {
	Version int                `json:"version"`
	Signals map[string][]Alias `json:"signals"`
}

//go:embed aliases.json
var shipped []byte

// Known are the aliases that ship with holdfast.
var Known = sync.OnceValues(func() (*Aliases, error) { return ParseAliases(shipped) })

// ParseAliases reads and checks an alias file; the error names every fault by its path.
func ParseAliases(data []byte) (*Aliases, error) {
	var a Aliases
	if err := strict.DecodeJSON(data, &a); err != nil {
		return nil, fmt.Errorf("signal aliases: %w", err)
	}
	if err := a.validate(); err != nil {
		return nil, fmt.Errorf("signal aliases: %w", err)
	}
	return &a, nil
}

const (
	aliasVersion = 1
	mostAliases  = 100
)

var (
	metricName = regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]*$`)
	labelName  = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)
	engineName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]*$`)
)

func (a *Aliases) validate() error {
	var errs strict.Errors
	if a.Version != aliasVersion {
		errs.Addf("version", "is %d, want %d", a.Version, aliasVersion)
	}
	for _, name := range slices.Sorted(maps.Keys(a.Signals)) {
		at := "signals." + name
		if _, known := measures[name]; !known {
			errs.Addf(at, "is no signal, want one of %v", slices.Sorted(maps.Keys(measures)))
			continue
		}
		list := a.Signals[name]
		if len(list) > mostAliases {
			errs.Addf(at, "has %d aliases, want at most %d", len(list), mostAliases)
			continue
		}
		for i, alias := range list {
			alias.validate(&errs, fmt.Sprintf("%s[%d]", at, i))
			if slices.ContainsFunc(list[:i], alias.same) {
				errs.Addf(fmt.Sprintf("%s[%d].metric", at, i), "%s is there twice", alias.Metric)
			}
		}
	}
	return errs.Err()
}

// same says whether two aliases read the same metric.
func (x Alias) same(y Alias) bool { return x.Metric == y.Metric && maps.Equal(x.Labels, y.Labels) }

func (x Alias) validate(errs *strict.Errors, at string) {
	if !engineName.MatchString(x.Engine) {
		errs.Addf(at+".engine", "%q is no name of lower-case letters, digits and hyphens", x.Engine)
	}
	metric := func(key, value string, wanted bool) {
		switch {
		case !wanted && value != "":
			errs.Addf(at+"."+key, "does not belong to type %q", x.Type)
		case wanted && !metricName.MatchString(value):
			errs.Addf(at+"."+key, "%q is no metric name", value)
		}
	}
	metric("metric", x.Metric, true)
	switch x.Type {
	case AliasGauge, AliasCounter, AliasHistogram, AliasMean, AliasShare:
		metric("count", x.Count, x.Type == AliasMean)
		metric("of", x.Of, x.Type == AliasShare)
		metric("less", x.Less, x.Type == AliasShare)
	default:
		errs.Addf(at+".type", "is %q, want gauge, counter, histogram, mean or share", x.Type)
	}
	for _, name := range slices.Sorted(maps.Keys(x.Labels)) {
		if !labelName.MatchString(name) || name == nameLabel {
			errs.Addf(at+".labels", "%q is no label name", name)
		}
	}
	if !IsData(x.Scale) || x.Scale < 0 || x.Scale > 1e12 {
		errs.Addf(at+".scale", "is %g, want more than 0 and at most 1e12", x.Scale)
	}
}

// scale is Scale with its default.
func (x Alias) scale() float64 {
	if x.Scale == 0 {
		return 1
	}
	return x.Scale
}

// Metrics are the names that the alias reads from a scrape.
func (x Alias) Metrics() []string {
	switch x.Type {
	case AliasHistogram:
		return []string{x.Metric + "_sum", x.Metric + "_count"}
	case AliasMean:
		return []string{x.Metric, x.Count}
	case AliasShare:
		return []string{x.Metric, x.Of, x.Less}
	case AliasGauge, AliasCounter:
		return []string{x.Metric}
	default:
		return nil
	}
}
