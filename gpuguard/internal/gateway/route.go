package gateway

import (
	"net/http"
	"slices"
	"strings"

	"holdfast/gpuguard/policy"
)

// route finds the route of a request: the longest path prefix that also takes
// the method.
func (x *exchange) route() *refusal {
	if x.r.Method == http.MethodConnect {
		return methodRefused("this is not a forward proxy")
	}
	if x.snap == nil {
		return &refusal{
			outcome: policy.OutcomeNoEndpoint, status: http.StatusServiceUnavailable,
			kind: serverError, code: "no_policy", message: "The gateway has no policy yet.", reason: "no policy loaded",
		}
	}
	if why := badPath(x.r.URL.Path); why != "" {
		return badRequest("invalid_path", "The request path is refused: "+why+".")
	}
	var allowed []string
	for _, to := range x.snap.routes {
		if !to.matches(x.r.URL.Path) {
			continue
		}
		if to.takes(x.r.Method) {
			x.use(to)
			return nil
		}
		allowed = append(allowed, to.methods...)
	}
	if len(allowed) > 0 {
		no := methodRefused("no route takes this method here")
		no.allow = strings.Join(allowed, ", ")
		return no
	}
	return &refusal{
		outcome: policy.OutcomeNoRoute, status: http.StatusNotFound,
		kind: invalidRequest, code: "unknown_url", message: "No route of the policy matches this path.", noRetry: true,
	}
}

func (x *exchange) use(to *route) {
	x.to = to
	x.series = to.series
	x.record.Route = to.name
	x.record.Dependency = to.pool.dependency.name
}

func methodRefused(reason string) *refusal {
	return &refusal{
		outcome: policy.OutcomeNoRoute, status: http.StatusMethodNotAllowed,
		kind: invalidRequest, code: "method_not_allowed", message: "The method is not allowed: " + reason + ".",
		reason: reason, noRetry: true,
	}
}

func badRequest(code, message string) *refusal {
	return &refusal{
		outcome: policy.OutcomeBadRequest, status: http.StatusBadRequest,
		kind: invalidRequest, code: code, message: message, reason: code, noRetry: true,
	}
}

// matches compares whole path segments.
func (to *route) matches(path string) bool {
	rest, ok := strings.CutPrefix(path, to.prefix)
	return ok && (rest == "" || rest[0] == '/' || to.prefix == "/")
}

func (to *route) takes(method string) bool {
	return len(to.methods) == 0 || slices.Contains(to.methods, method)
}

// badPath says why a decoded path is refused: spellings that an upstream could
// read as another path than the one matched here (R36). Empty means it is fine.
func badPath(path string) string {
	if path == "" || path[0] != '/' {
		return "it does not begin with /"
	}
	if strings.IndexFunc(path, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\\' }) >= 0 {
		return "it has a control character or a backslash"
	}
	if i := strings.IndexByte(path, '%'); i >= 0 && doubleEncoded(path[i:]) {
		return "it is encoded twice"
	}
	for rest := path[1:]; rest != ""; {
		segment, after, more := strings.Cut(rest, "/")
		if segment == "." || segment == ".." {
			return "it has a . or .. segment"
		}
		if segment == "" && more {
			return "it has an empty segment"
		}
		rest = after
	}
	return ""
}

// doubleEncoded finds an encoded dot, slash, backslash or percent sign in a
// path that was decoded already.
func doubleEncoded(path string) bool {
	lower := strings.ToLower(path)
	for _, code := range []string{"%2e", "%2f", "%5c", "%25"} {
		if strings.Contains(lower, code) {
			return true
		}
	}
	return false
}
