package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"slices"
	"strings"

	"holdfast/strict"
)

// Bounds of routes.
const (
	// MaxBodyBytesLimit is the largest body cap of a route (bytes): 1 GiB.
	MaxBodyBytesLimit = 1 << 30
	// MaxFallbackBytes is the largest static answer (bytes): 64 KiB.
	MaxFallbackBytes = 64 << 10
)

// routeMethods are those a route may name; CONNECT never reaches a route and
// TRACE would echo credentials.
var routeMethods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}

func (v *validator) routes() {
	earlier := map[string][]string{} // prefix → routes with it
	for _, name := range sortedKeys(v.doc.Routes) {
		at := strict.Join("routes", name)
		r := v.doc.Routes[name]
		v.name(at, "route", name)
		v.match(at+".match", r.Match)
		v.overlap(at, r.Match, earlier[r.Match.PathPrefix])
		earlier[r.Match.PathPrefix] = append(earlier[r.Match.PathPrefix], name)
		if r.Auth != "" && r.Auth != AuthRequired && r.Auth != AuthOptional {
			v.addf(at+".auth", "is %q: want required or optional", r.Auth)
		}
		refer(v, at+".pool", "pool", r.Pool, v.doc.Pools)
		if r.Expect != "" && r.Expect != ExpectJSON && r.Expect != ExpectAny {
			v.addf(at+".expect", "is %q: want json or any", r.Expect)
		}
		if r.MaxBodyBytes < 0 || r.MaxBodyBytes > MaxBodyBytesLimit {
			v.addf(at+".max_body_bytes", "is %d: want 1 to %d bytes", r.MaxBodyBytes, MaxBodyBytesLimit)
		}
		v.limit(at+".limit", r.Limit)
		if r.Fallback != nil {
			v.fallback(at+".fallback", *r.Fallback)
		}
	}
}

func (v *validator) match(at string, m Match) {
	v.add(at+".path_prefix", checkPrefix(m.PathPrefix))
	for i, method := range m.Methods {
		where := strict.Index(at+".methods", i)
		switch {
		case !slices.Contains(routeMethods, method):
			v.addf(where, "is %q: want one of %s", method, strings.Join(routeMethods, ", "))
		case slices.Contains(m.Methods[:i], method):
			v.addf(where, "%s is given twice", method)
		}
	}
}

// checkPrefix wants prefixes in one canonical form, so that equal prefixes are
// equal texts and no request can be matched by a spelling (R36).
func checkPrefix(p string) error {
	switch {
	case p == "":
		return errors.New(`is missing: want a path such as "/v1/chat"`)
	case p[0] != '/':
		return fmt.Errorf("is %q: want a path that begins with /", p)
	case strings.ContainsAny(p, `?#%\*`) || strings.ContainsFunc(p, func(r rune) bool { return r <= ' ' || r > '~' }):
		return fmt.Errorf("is %q: want plain ASCII without ?, #, %%, *, backslash and white space", p)
	case p == "/":
		return nil
	case strings.HasSuffix(p, "/"):
		return fmt.Errorf("is %q: leave the last / out, whole path segments are matched anyway", p)
	}
	for segment := range strings.SplitSeq(p[1:], "/") {
		if segment == "" || segment == "." || segment == ".." {
			return fmt.Errorf(`is %q: want no empty, "." or ".." segments`, p)
		}
	}
	return nil
}

// overlap refuses a route that would match the same request as one of those
// with the same prefix.
func (v *validator) overlap(at string, m Match, samePrefix []string) {
	for _, name := range samePrefix {
		if method, both := sharedMethod(m.Methods, v.doc.Routes[name].Match.Methods); both {
			v.addf(at+".match", "%s %s is matched by %s as well: give each route its own prefix or methods", method, m.PathPrefix, strict.Join("routes", name))
			return
		}
	}
}

// sharedMethod finds a method in both lists; an empty list has all.
func sharedMethod(a, b []string) (string, bool) {
	switch {
	case len(a) == 0 && len(b) == 0:
		return "every method of", true
	case len(a) == 0:
		return b[0], true
	case len(b) == 0:
		return a[0], true
	}
	i := slices.IndexFunc(a, func(m string) bool { return slices.Contains(b, m) })
	if i < 0 {
		return "", false
	}
	return a[i], true
}

func (v *validator) fallback(at string, f Fallback) {
	if f.Status != 0 && (f.Status < 200 || f.Status > 599) {
		v.addf(at+".status", "is %d: want 200 to 599", f.Status)
	}
	media := DefaultFallbackContentType
	if f.ContentType != "" {
		var err error
		if media, _, err = mime.ParseMediaType(f.ContentType); err != nil || strings.ContainsAny(f.ContentType, "\r\n") {
			v.addf(at+".content_type", "is %q: want a media type such as application/json", f.ContentType)
		}
	}
	switch {
	case f.Body == "" && f.Status != 204 && f.Status != 304:
		// An empty 200 is what outage A showed its users.
		v.addf(at+".body", "is empty: give the answer callers can live with")
	case f.Body != "" && (f.Status == 204 || f.Status == 304):
		v.addf(at+".body", "cannot be sent with status %d", f.Status)
	case len(f.Body) > MaxFallbackBytes:
		v.addf(at+".body", "is %d bytes long: at most %d are allowed", len(f.Body), MaxFallbackBytes)
	case media == DefaultFallbackContentType && f.Body != "" && !json.Valid([]byte(f.Body)):
		v.addf(at+".body", "is not JSON, but the content type is %s", DefaultFallbackContentType)
	}
}
