package gateway

import (
	"encoding/hex"
	"math/rand/v2"
	"net"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
)

// hopByHop headers belong to one connection.
var hopByHop = map[string]bool{
	"Connection": true, "Proxy-Connection": true, "Keep-Alive": true, "Proxy-Authenticate": true,
	"Proxy-Authorization": true, "Te": true, "Trailer": true, "Transfer-Encoding": true, "Upgrade": true,
}

// notForwarded are request headers that stop here: the caller's credentials,
// and what only the gateway may say about a request (R34).
var notForwarded = map[string]bool{
	"Authorization": true, "X-Api-Key": true, "Api-Key": true, "Expect": true, "Content-Length": true,
	"Forwarded": true, "X-Real-Ip": true, requestIDName: true,
}

var ownPrefixes = []string{"X-Forwarded-", "X-Tenant-", "X-Guard-", "X-Gpuguard-"}

// notPassedBack are response headers that only the gateway may set.
var notPassedBack = map[string]bool{degradedHeader: true, outcomeHeader: true}

// upstreamHeader is the header of the upstream's request.
func (x *exchange) upstreamHeader() http.Header {
	in := x.r.Header
	out := make(http.Header, len(in)+4)
	listed := connectionListed(in)
	for name, values := range in {
		if hopByHop[name] || notForwarded[name] || hasOwnPrefix(name) || slices.Contains(listed, name) {
			continue
		}
		switch name {
		case "Idempotency-Key", "X-Idempotency-Key":
			// In canonical spelling it would make net/http repeat a POST by
			// itself after the upstream may have worked on it (C56).
			name = strings.ToLower(name)
		case "Accept-Encoding":
			if x.to.expectJSON {
				continue
			}
		}
		out[name] = values
	}
	if x.to.expectJSON {
		out["Accept-Encoding"] = []string{"identity"} // what is compressed cannot be scanned (C57)
	}
	if _, ok := out["User-Agent"]; !ok {
		out["User-Agent"] = nil // none instead of net/http's own
	}
	x.identify(out)
	return out
}

// identify sets what the gateway itself knows of the caller, and who the
// gateway is.
func (x *exchange) identify(out http.Header) {
	out[requestIDName] = []string{x.record.RequestID}
	if x.tenant != nil {
		out["X-Tenant-Id"] = []string{x.tenant.name}
	}
	if host, _, err := net.SplitHostPort(x.r.RemoteAddr); err == nil {
		out["X-Forwarded-For"] = []string{host}
	}
	if p := x.to.pool; p.secretHeader != "" {
		out[p.secretHeader] = []string{p.secret}
	}
}

func hasOwnPrefix(name string) bool {
	for _, p := range ownPrefixes {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}

// connectionListed are the headers that Connection declares hop-by-hop.
func connectionListed(h http.Header) []string {
	var names []string
	for _, line := range h["Connection"] {
		for name := range strings.SplitSeq(line, ",") {
			if name = textproto.TrimString(name); name != "" {
				names = append(names, textproto.CanonicalMIMEHeaderKey(name))
			}
		}
	}
	return names
}

// copyResponseHeader passes the upstream's header to the caller.
func copyResponseHeader(out, in http.Header) {
	listed := connectionListed(in)
	for name, values := range in {
		if hopByHop[name] || notPassedBack[name] || slices.Contains(listed, name) {
			continue
		}
		out[name] = values
	}
}

// requestID takes the caller's id when it is harmless, else a new one.
func requestID(h http.Header) string {
	const most = 128
	id := first(h, requestIDName)
	if id != "" && len(id) <= most && !strings.ContainsFunc(id, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.:", r))
	}) {
		return id
	}
	var b [16]byte
	for i := range b {
		b[i] = byte(rand.Uint32()) // an id to find log lines by, not a secret
	}
	return hex.EncodeToString(b[:])
}

// first is the first value of a header in canonical spelling.
func first(h http.Header, name string) string {
	if v := h[name]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// methodName keeps methods in the log a closed set.
func methodName(m string) string {
	switch m {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch,
		http.MethodDelete, http.MethodOptions, http.MethodConnect, http.MethodTrace:
		return m
	}
	return "other"
}
