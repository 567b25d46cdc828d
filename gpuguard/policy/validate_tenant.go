package policy

import (
	"math"
	"strings"

	"holdfast/strict"
)

// maxLimitRate is the largest rate or burst (requests per second, requests).
const maxLimitRate = 1e9

// digestLength is the length of a SHA-256 in hex.
const digestLength = 64

func (v *validator) tenants() {
	owner := map[string]string{} // digest → path of its first use
	for _, name := range sortedKeys(v.doc.Tenants) {
		path := strict.Join("tenants", name)
		t := v.doc.Tenants[name]
		v.name(path, "tenant", name)
		if t.Class != "" {
			v.name(path+".class", "class", t.Class)
		}
		if len(t.Keys) == 0 {
			v.addf(path+".keys", "is missing: without a key nobody can be this tenant")
		}
		for i, digest := range t.Keys {
			v.key(strict.Index(path+".keys", i), digest, owner)
		}
		v.limit(path+".limit", t.Limit)
	}
}

// key checks one key digest. It never repeats it: a key pasted in place of its
// digest would be a secret.
func (v *validator) key(path, digest string, owner map[string]string) {
	if len(digest) != digestLength || strings.Trim(digest, "0123456789abcdef") != "" {
		v.addf(path, "is not a key digest: want the SHA-256 of the key as %d lower-case hex digits, as printed by `printf %%s KEY | sha256sum`", digestLength)
		return
	}
	if first, taken := owner[digest]; taken {
		v.addf(path, "is the same key as %s: a key belongs to one tenant", first)
		return
	}
	owner[digest] = path
}

func (v *validator) limit(path string, l *Limit) {
	if l == nil {
		return
	}
	if !finite(l.RequestsPerSecond) || l.RequestsPerSecond < 0 || l.RequestsPerSecond > maxLimitRate {
		v.addf(path+".requests_per_second", "is %g: want 0 (refuse everything) to %g", l.RequestsPerSecond, float64(maxLimitRate))
	}
	if l.Burst != 0 && (!finite(l.Burst) || l.Burst < 1 || l.Burst > maxLimitRate) {
		v.addf(path+".burst", "is %g: want 1 to %g requests", l.Burst, float64(maxLimitRate))
	}
}

func finite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }
