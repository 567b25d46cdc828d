package policy

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"holdfast/strict"
)

func (v *validator) pools() {
	for _, name := range sortedKeys(v.doc.Pools) {
		at := strict.Join("pools", name)
		p := v.doc.Pools[name]
		v.name(at, "pool", name)
		refer(v, at+".dependency", "dependency", p.Dependency, v.doc.Dependencies)
		for _, endpoint := range sortedKeys(p.Endpoints) {
			where := strict.Join(at+".endpoints", endpoint)
			v.name(where, "endpoint", endpoint)
			v.add(where+".url", checkURL(p.Endpoints[endpoint].URL))
		}
		if p.Credential != nil {
			v.credential(at+".credential", *p.Credential)
		}
	}
}

// checkURL checks an upstream address. Its errors never repeat the address: it
// may hold a password put there by mistake.
func checkURL(raw string) error {
	if raw == "" {
		return errors.New(`is missing: want an address such as "http://10.0.0.7:8000"`)
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Host == "", u.Opaque != "":
		return errors.New(`is not an absolute http or https address such as "http://10.0.0.7:8000"`)
	case u.User != nil:
		return errors.New("has user information: give secrets by the pool's credential")
	case u.RawQuery != "" || u.ForceQuery:
		return errors.New("has a query: give scheme, host and path only")
	case strings.Contains(raw, "#"):
		return errors.New("has a fragment: give scheme, host and path only")
	case u.Path != "" && u.Path != "/" && path.Clean(u.Path) != strings.TrimSuffix(u.Path, "/"):
		return errors.New(`has a path with empty, "." or ".." segments`)
	}
	return checkHost(u)
}

func checkHost(u *url.URL) error {
	host := u.Hostname()
	if host == "" {
		return errors.New("has no host name")
	}
	if port := u.Port(); port != "" || strings.HasSuffix(u.Host, ":") {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return errors.New("has a port that is not 1 to 65535")
		}
	}
	// A host that does not parse is a name, and is judged when it is dialled. R37:
	// these addresses are never an engine; 169.254.169.254 gives away cloud credentials.
	ip, err := netip.ParseAddr(host)
	if ip = ip.Unmap(); err == nil && (ip.IsLinkLocalUnicast() || ip.IsMulticast() || ip.IsUnspecified()) {
		return fmt.Errorf("has the address %s: link-local, multicast and unspecified addresses are no upstreams", ip)
	}
	return nil
}

var (
	envName     = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	headerName  = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")
	hopByHeader = []string{
		"connection", "content-length", "host", "keep-alive", "proxy-connection",
		"te", "trailer", "transfer-encoding", "upgrade",
	}
)

func (v *validator) credential(at string, c Credential) {
	switch {
	case c.Env == "" && c.File == "":
		v.addf(at, "names no source: set env or file")
	case c.Env != "" && c.File != "":
		v.addf(at, "names two sources: set env or file, not both")
	case c.Env != "" && !envName.MatchString(c.Env):
		v.addf(at+".env", "is not the name of an environment variable (the secret itself never stands in a policy)")
	case c.File != "" && !strings.HasPrefix(c.File, "/"):
		v.addf(at+".file", "is not an absolute path (the secret itself never stands in a policy)")
	}
	if c.Header != "" && !headerName.MatchString(c.Header) {
		v.addf(at+".header", "is not the name of a request header")
	}
	if slices.Contains(hopByHeader, strings.ToLower(c.Header)) {
		v.addf(at+".header", "%q belongs to the connection and cannot carry a secret", c.Header)
	}
	if strings.ContainsFunc(c.Prefix, func(r rune) bool { return r < ' ' || r > '~' }) {
		v.addf(at+".prefix", "has characters that no header value may have")
	}
}
