package change

import (
	"maps"
	"slices"
	"time"
)

// band is the guard band of an environment, a multiple of two resolutions so
// that half of it can be put on each side of a hold.
func (c Catalogue) band(environment string) time.Duration {
	env, ok := c.Environments[environment]
	if !ok {
		return DefaultGuardBand
	}
	return max(0, env.GuardBand).Truncate(2 * resolution)
}

func (c Catalogue) scope(environment string) Scope {
	if s := c.Environments[environment].Scope; s == ScopeEnvironment {
		return s
	}
	return ScopeNeighbourhood
}

// Neighbours are the services one hop away, those it depends on and those that
// depend on it, sorted.
func (c Catalogue) Neighbours(service string) []string {
	set := map[string]bool{}
	for _, d := range c.Services[service].DependsOn {
		set[d] = true
	}
	for name, s := range c.Services {
		if slices.Contains(s.DependsOn, service) {
			set[name] = true
		}
	}
	delete(set, service)
	return slices.Sorted(maps.Keys(set))
}

// resources are what a change of the service holds: its own exclusively and its
// neighbours shared, so that two changes meet when they are the same or linked
// directly, and not when they merely share a neighbour.
func (c Catalogue) resources(service, environment string) []Resource {
	if c.scope(environment) == ScopeEnvironment {
		return []Resource{{Key: "env/" + environment}}
	}
	key := func(s string) string { return "env/" + environment + "/svc/" + s }
	out := []Resource{{Key: key(service)}}
	for _, n := range c.Neighbours(service) {
		out = append(out, Resource{Key: key(n), Shared: true})
	}
	// A fixed order keeps two transactions from waiting for each other.
	slices.SortFunc(out, func(a, b Resource) int {
		if a.Key < b.Key {
			return -1
		}
		return 1
	})
	return out
}

// area answers whether another service counts for one change.
type area struct {
	all  bool
	near map[string]bool
}

func (c Catalogue) area(service, environment string) area {
	a := area{all: c.scope(environment) == ScopeEnvironment, near: map[string]bool{service: true}}
	for _, n := range c.Neighbours(service) {
		a.near[n] = true
	}
	return a
}

func (a area) has(service string) bool { return a.all || a.near[service] }

// guarded gives a window padded by half the band on each side: two padded
// half-open windows overlap exactly when the windows are closer than the band.
func guarded(start, end time.Time, band time.Duration) (time.Time, time.Time) {
	return start.Add(-band / 2), end.Add(band / 2)
}
