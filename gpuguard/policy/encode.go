package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// MarshalJSON writes the canonical form: one document has one encoding. Names
// are sorted, fields keep the order of the type, and collections that are nil
// read as empty, because null is refused on the way in.
func (d Document) MarshalJSON() ([]byte, error) {
	type plain Document // without this method
	d.Dependencies = orEmpty(d.Dependencies)
	d.Pools = orEmpty(d.Pools)
	d.Routes = orEmpty(d.Routes)
	d.Pools = mapValues(d.Pools, func(_ string, p Pool) Pool {
		p.Endpoints = orEmpty(p.Endpoints)
		return p
	})
	d.Tenants = mapValues(d.Tenants, func(_ string, t Tenant) Tenant {
		if t.Keys == nil {
			t.Keys = []string{}
		}
		return t
	})
	return json.Marshal(plain(d))
}

// Encode is the canonical JSON of the document; what Decode accepted always encodes.
func Encode(d Document) ([]byte, error) { return json.Marshal(d) }

// Hash is the lower-case hex SHA-256 of the canonical JSON: equal hashes mean equal documents.
func Hash(d Document) (string, error) {
	b, err := Encode(d)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), nil
}

func orEmpty[V any](m map[string]V) map[string]V {
	if m == nil {
		return map[string]V{}
	}
	return m
}
