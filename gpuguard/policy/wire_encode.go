package policy

import "encoding/json"

// The messages between server and gateways are read strictly, and null is
// refused there: what is nil in Go is written as empty.

// MarshalJSON writes nil overrides as an empty list.
func (u Update) MarshalJSON() ([]byte, error) {
	type plain Update // without this method
	u.Overrides = orEmptyList(u.Overrides)
	return json.Marshal(plain(u))
}

// MarshalJSON writes nil maps and lists as empty ones.
func (s State) MarshalJSON() ([]byte, error) {
	type plain State // without this method
	s.Breakers, s.Limits, s.Outcomes = orEmpty(s.Breakers), orEmpty(s.Limits), orEmpty(s.Outcomes)
	s.ActiveOverrides = orEmptyList(s.ActiveOverrides)
	s.Outcomes = mapValues(s.Outcomes, func(_ string, counts map[Outcome]int64) map[Outcome]int64 {
		if counts == nil {
			return map[Outcome]int64{}
		}
		return counts
	})
	return json.Marshal(plain(s))
}

// MarshalJSON writes nil overrides as an empty list.
func (e Effective) MarshalJSON() ([]byte, error) {
	type plain Effective // without this method
	e.Overrides = orEmptyList(e.Overrides)
	return json.Marshal(plain(e))
}

func orEmptyList[V any](list []V) []V {
	if list == nil {
		return []V{}
	}
	return list
}
