package admin

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"
)

// guarded asks for the bearer token, when one is configured.
func (h *handler) guarded(next http.Handler) http.Handler {
	if h.opts.Token == "" {
		return next
	}
	want := sha256.Sum256([]byte(h.opts.Token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Digests are compared, so that neither content nor length of the token shows in time.
		got := sha256.Sum256([]byte(bearer(r)))
		if subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
			w.Header().Set("WWW-Authenticate", `Bearer realm="gpuguard admin"`)
			problem(w, http.StatusUnauthorized, "unauthorized", "this page asks for the gateway's admin token as bearer token")
			return
		}
		next.ServeHTTP(w, r)
	})
}

func bearer(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// withHeaders marks answers as fresh and not to be guessed at by browsers.
func withHeaders(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		next.ServeHTTP(w, r)
	})
}
