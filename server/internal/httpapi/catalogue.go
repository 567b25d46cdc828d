package httpapi

import (
	"maps"
	"slices"

	"holdfast/server/change"
)

// catalogueJSON is the catalogue as described, sorted by name.
type catalogueJSON struct {
	Services     []change.Service  `json:"services"`
	Environments []environmentJSON `json:"environments"`
}

type environmentJSON struct {
	Name      string       `json:"name"`
	GuardBand string       `json:"guard_band"`
	Scope     change.Scope `json:"scope"`
}

func catalogueView(c change.Catalogue) catalogueJSON {
	out := catalogueJSON{Services: []change.Service{}, Environments: []environmentJSON{}}
	for _, name := range slices.Sorted(maps.Keys(c.Services)) {
		out.Services = append(out.Services, c.Services[name])
	}
	for _, name := range slices.Sorted(maps.Keys(c.Environments)) {
		e := c.Environments[name]
		out.Environments = append(out.Environments, environmentJSON{Name: name, GuardBand: e.GuardBand.String(), Scope: e.Scope})
	}
	return out
}
