package gateway

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"net/http"
	"strings"

	"holdfast/gpuguard/policy"
)

// authenticate finds the tenant by its API key. Without a known key, routes
// with optional authentication serve an anonymous caller.
func (x *exchange) authenticate() *refusal {
	key := apiKey(x.r.Header)
	if key != "" {
		x.tenant = x.snap.tenants.find(key)
	}
	if x.tenant != nil {
		x.record.Tenant, x.record.Class = x.tenant.name, x.tenant.class
		return nil
	}
	if !x.to.authRequired {
		return nil
	}
	no := &refusal{
		outcome: policy.OutcomeUnauthenticated, status: http.StatusUnauthorized,
		kind: authentication, code: "invalid_api_key", message: "The API key is not known here.", reason: "unknown key", noRetry: true,
	}
	if key == "" {
		no.code, no.reason = "missing_api_key", "no key"
		no.message = "An API key is needed: send it as \"Authorization: Bearer KEY\" or \"x-api-key: KEY\"."
	}
	return no
}

// apiKey is the caller's key; Authorization goes first.
func apiKey(h http.Header) string {
	scheme, key, ok := strings.Cut(h.Get("Authorization"), " ")
	if ok && strings.EqualFold(scheme, "Bearer") {
		return strings.TrimSpace(key)
	}
	return h.Get("X-Api-Key")
}

// keyring finds tenants by the digest of a key. The first bytes of a digest
// select, the comparison of the rest takes constant time.
type keyring map[uint64][]keyEntry

type keyEntry struct {
	digest [sha256.Size]byte
	tenant *tenant
}

func (k keyring) add(digest [sha256.Size]byte, t *tenant) {
	at := binary.BigEndian.Uint64(digest[:])
	k[at] = append(k[at], keyEntry{digest, t})
}

func (k keyring) find(key string) *tenant {
	digest := sha256.Sum256([]byte(key))
	for _, e := range k[binary.BigEndian.Uint64(digest[:])] {
		if subtle.ConstantTimeCompare(e.digest[:], digest[:]) == 1 {
			return e.tenant
		}
	}
	return nil
}
