package actions

import (
	"maps"
	"slices"
	"strings"

	"holdfast/gpuguard/policy"
)

// touched is what the layers of a plan reach.
type touched struct {
	everything   bool
	dependencies map[string]bool
	routes       map[string]bool
	// uncounted says that something is reached whose requests are not counted apart.
	uncounted bool
}

// blastOf says how much of the traffic goes through what the layers touch.
func blastOf(layers []Layer, snap Snapshot) Blast {
	reach := reachOf(layers, snap.Effective)
	b := Blast{Routes: slices.Sorted(maps.Keys(reach.routes)), Gateways: []string{}}
	if b.Routes == nil {
		b.Routes = []string{}
	}
	for _, g := range snap.Gateways {
		if g.Live {
			b.Gateways = append(b.Gateways, g.Name)
		}
	}
	slices.Sort(b.Gateways)
	traffic, ok := Measure(snap)
	if !ok || traffic.Total.Requests == 0 {
		return b
	}
	b.Requests = traffic.Total.Requests
	if share, ok := reach.share(traffic); ok {
		b.Share = &share
	}
	return b
}

func reachOf(layers []Layer, doc policy.Document) touched {
	t := touched{dependencies: map[string]bool{}, routes: map[string]bool{}}
	for _, l := range layers {
		section, rest, _ := strings.Cut(l.Path, ".")
		name, _, _ := strings.Cut(rest, ".")
		switch section {
		case "dependencies":
			t.dependencies[name] = true
			for _, route := range RoutesOf(doc, name) {
				t.routes[route] = true
			}
		case "routes":
			t.routes[name] = true
			dependency := doc.Pools[doc.Routes[name].Pool].Dependency
			if len(RoutesOf(doc, dependency)) == 1 {
				t.dependencies[dependency] = true
			} else {
				t.uncounted = true // its neighbours share the counter
			}
		case "limits":
			t.everything = true
		default: // tenants, whose requests the gateways do not count apart
			t.uncounted = true
		}
	}
	if t.everything {
		for route := range doc.Routes {
			t.routes[route] = true
		}
	}
	return t
}

// share is the ratio of requests touched; false when it cannot be told.
func (t touched) share(traffic Traffic) (float64, bool) {
	switch {
	case t.everything:
		return 1, true
	case t.uncounted:
		return 0, false
	}
	var n int64
	for dependency := range t.dependencies {
		n += traffic.Dependencies[dependency].Requests
	}
	return float64(n) / float64(traffic.Total.Requests), true
}

// RoutesOf lists the routes that lead to a dependency, sorted.
func RoutesOf(doc policy.Document, dependency string) []string {
	var routes []string
	for name, r := range doc.Routes {
		if doc.Pools[r.Pool].Dependency == dependency {
			routes = append(routes, name)
		}
	}
	slices.Sort(routes)
	return routes
}
