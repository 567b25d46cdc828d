package policy

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestValidate(t *testing.T) {
	t.Parallel()
	digest := strings.Repeat("0a", 32)
	dep := func(change func(*Dependency)) func(*Document) {
		return func(d *Document) {
			v := d.Dependencies["llm"]
			change(&v)
			d.Dependencies["llm"] = v
		}
	}
	route := func(change func(*Route)) func(*Document) {
		return func(d *Document) {
			v := d.Routes["chat"]
			change(&v)
			d.Routes["chat"] = v
		}
	}
	credential := func(c Credential) func(*Document) {
		return func(d *Document) {
			v := d.Pools["llm-main"]
			v.Credential = &c
			d.Pools["llm-main"] = v
		}
	}
	cases := map[string]struct {
		change func(*Document)
		want   []string // beginnings of "path: message"
	}{
		"version":                {func(d *Document) { d.Version = 2 }, []string{"version: is 2: this program reads version 1"}},
		"dependency name":        {func(d *Document) { d.Dependencies["a.b"] = Dependency{} }, []string{`dependencies["a.b"]: dependency name "a.b" has other characters`}},
		"long name":              {func(d *Document) { d.Dependencies[strings.Repeat("a", 64)] = Dependency{} }, []string{"dependencies." + strings.Repeat("a", 64) + ": dependency name is 64 characters long"}},
		"name with hyphen first": {func(d *Document) { d.Pools["-x"] = Pool{Dependency: "llm"} }, []string{`pools.-x: pool name "-x" begins or ends with a hyphen`}},
		"empty name":             {func(d *Document) { d.Tenants[""] = Tenant{Keys: []string{digest}} }, []string{`tenants[""]: tenant name is empty`}},
		"service":                {dep(func(v *Dependency) { v.Service = "a\nb" }), []string{"dependencies.llm.service: want at most 100 printable"}},

		"forced in a base":   {dep(func(v *Dependency) { v.Breaker.Forced = ForcedOpen }), []string{"dependencies.llm.breaker.forced: cannot stand in a base policy"}},
		"two windows":        {dep(func(v *Dependency) { v.Breaker = Breaker{WindowCalls: 20, WindowTime: 1} }), []string{"dependencies.llm.breaker.window_calls: and window_time exclude each other"}},
		"failure rate above": {dep(func(v *Dependency) { v.Breaker.FailureRate = 30 }), []string{"dependencies.llm.breaker.failure_rate: is 30: want a ratio"}},
		"failure rate below": {dep(func(v *Dependency) { v.Breaker.FailureRate = -0.1 }), []string{"dependencies.llm.breaker.failure_rate: is -0.1"}},
		"failure rate NaN":   {dep(func(v *Dependency) { v.Breaker.FailureRate = math.NaN() }), []string{"dependencies.llm.breaker.failure_rate: is NaN"}},
		"minimum above window": {dep(func(v *Dependency) { v.Breaker = Breaker{WindowCalls: 5, MinimumCalls: 6} }), []string{
			"dependencies.llm.breaker.minimum_calls: is 6, more than window_calls (5)",
		}},
		"negative breaker": {dep(func(v *Dependency) {
			v.Breaker = Breaker{WindowCalls: -1, MinimumCalls: -1, ConsecutiveFailures: -1, OpenFor: -1, HalfOpenProbes: -1, HalfOpenFor: -1}
		}), []string{
			"dependencies.llm.breaker.window_calls: is -1",
			"dependencies.llm.breaker.minimum_calls: is -1",
			"dependencies.llm.breaker.consecutive_failures: is -1",
			"dependencies.llm.breaker.open_for: is -1ns: want a duration above 0",
			"dependencies.llm.breaker.half_open_probes: is -1",
			"dependencies.llm.breaker.half_open_for: is -1ns",
		}},
		"negative timeout": {dep(func(v *Dependency) { v.Timeouts.Total = Duration(-time.Second) }), []string{"dependencies.llm.timeouts.total: is -1s: want a duration above 0"}},
		"huge timeout":     {dep(func(v *Dependency) { v.Timeouts.Idle = Duration(25 * time.Hour) }), []string{"dependencies.llm.timeouts.idle: is 25h0m0s: want at most 24h"}},
		"first byte above default total": {dep(func(v *Dependency) { v.Timeouts = Timeouts{FirstByte: Duration(30 * time.Second)} }), []string{
			"dependencies.llm.timeouts.first_byte: first_byte (30s) is longer than total (20s by default) and would never be reached: lower first_byte or raise total",
		}},
		"total below default first byte": {dep(func(v *Dependency) { v.Timeouts = Timeouts{Total: Duration(10 * time.Second)} }), []string{
			"dependencies.llm.timeouts.total: first_byte (15s by default) is longer than total (10s)",
		}},
		"idle above the stream's cap": {dep(func(v *Dependency) {
			v.Timeouts = Timeouts{Idle: Duration(2 * time.Minute), StreamTotal: Duration(time.Minute)}
		}), []string{
			"dependencies.llm.timeouts.idle: idle (2m0s) is longer than stream_total (1m0s)",
		}},

		"pool without dependency": {func(d *Document) { d.Pools["x"] = Pool{} }, []string{"pools.x.dependency: is missing: name a dependency"}},
		"pool of unknown dependency": {func(d *Document) { d.Pools["x"] = Pool{Dependency: "vectordb"} }, []string{
			`pools.x.dependency: no dependency is named "vectordb": did you mean "vector-db"?`,
		}},
		"route of unknown pool":    {route(func(r *Route) { r.Pool = "nowhere" }), []string{`routes.chat.pool: no pool is named "nowhere"`}},
		"credential without":       {credential(Credential{}), []string{"pools.llm-main.credential: names no source"}},
		"credential with two":      {credential(Credential{Env: "A", File: "/a"}), []string{"pools.llm-main.credential: names two sources"}},
		"credential env is secret": {credential(Credential{Env: "sk-abc"}), []string{"pools.llm-main.credential.env: is not the name of an environment variable"}},
		"credential relative file": {credential(Credential{File: "secret"}), []string{"pools.llm-main.credential.file: is not an absolute path"}},
		"credential header": {credential(Credential{Env: "A", Header: "Host", Prefix: "a\r\n"}), []string{
			`pools.llm-main.credential.header: "Host" belongs to the connection`, "pools.llm-main.credential.prefix: has characters",
		}},
		"credential header name": {credential(Credential{Env: "A", Header: "a b"}), []string{"pools.llm-main.credential.header: is not the name of a request header"}},

		"tenant without keys": {func(d *Document) { d.Tenants["x"] = Tenant{} }, []string{"tenants.x.keys: is missing"}},
		"tenant class":        {func(d *Document) { d.Tenants["x"] = Tenant{Keys: []string{digest}, Class: "V I P"} }, []string{"tenants.x.class: class name"}},
		"key in upper case":   {func(d *Document) { d.Tenants["x"] = Tenant{Keys: []string{strings.ToUpper(digest)}} }, []string{"tenants.x.keys[0]: is not a key digest"}},
		"key twice in one":    {func(d *Document) { d.Tenants["x"] = Tenant{Keys: []string{digest, digest}} }, []string{"tenants.x.keys[1]: is the same key as tenants.x.keys[0]"}},
		"key of two tenants":  {func(d *Document) { d.Tenants["x"] = Tenant{Keys: d.Tenants["acme"].Keys} }, []string{"tenants.x.keys[0]: is the same key as tenants.acme.keys[0]"}},
		"tenant limit": {func(d *Document) {
			d.Tenants["x"] = Tenant{Keys: []string{digest}, Limit: &Limit{RequestsPerSecond: -1, Burst: 0.5}}
		}, []string{
			"tenants.x.limit.requests_per_second: is -1: want 0", "tenants.x.limit.burst: is 0.5: want 1",
		}},
		"global limit": {func(d *Document) { d.Limits.Global = &Limit{RequestsPerSecond: math.Inf(1)} }, []string{"limits.global.requests_per_second: is +Inf"}},

		"prefix missing":      {route(func(r *Route) { r.Match.PathPrefix = "" }), []string{"routes.chat.match.path_prefix: is missing"}},
		"prefix relative":     {route(func(r *Route) { r.Match.PathPrefix = "v1" }), []string{`routes.chat.match.path_prefix: is "v1": want a path that begins with /`}},
		"prefix with slash":   {route(func(r *Route) { r.Match.PathPrefix = "/v1/" }), []string{`routes.chat.match.path_prefix: is "/v1/": leave the last / out`}},
		"prefix with dots":    {route(func(r *Route) { r.Match.PathPrefix = "/v1/../admin" }), []string{"routes.chat.match.path_prefix: "}},
		"prefix with escapes": {route(func(r *Route) { r.Match.PathPrefix = "/v1%2e" }), []string{"routes.chat.match.path_prefix: "}},
		"prefix with query":   {route(func(r *Route) { r.Match.PathPrefix = "/v1?x" }), []string{"routes.chat.match.path_prefix: "}},
		"method unknown":      {route(func(r *Route) { r.Match.Methods = []string{"POST", "post", "CONNECT", "POST"} }), []string{`routes.chat.match.methods[1]: is "post"`, `routes.chat.match.methods[2]: is "CONNECT"`, "routes.chat.match.methods[3]: POST is given twice"}},
		"same prefix, shared method": {func(d *Document) {
			d.Routes["z"] = Route{Match: Match{PathPrefix: "/v1/chat/completions", Methods: []string{"GET", "POST"}}, Pool: "llm-main"}
		}, []string{"routes.z.match: POST /v1/chat/completions is matched by routes.chat as well"}},
		"same prefix, any method": {func(d *Document) {
			d.Routes["z"] = Route{Match: Match{PathPrefix: "/v1/models"}, Pool: "llm-main"}
		}, []string{"routes.z.match: every method of /v1/models is matched by routes.models as well"}},
		"same prefix, other methods are fine": {func(d *Document) {
			d.Routes["z"] = Route{Match: Match{PathPrefix: "/v1/chat/completions", Methods: []string{"GET"}}, Pool: "llm-main"}
		}, nil},
		"auth and expect": {route(func(r *Route) { r.Auth, r.Expect = "none", "xml" }), []string{`routes.chat.auth: is "none"`, `routes.chat.expect: is "xml"`}},
		"body cap":        {route(func(r *Route) { r.MaxBodyBytes = -1 }), []string{"routes.chat.max_body_bytes: is -1"}},
		"fallback status": {route(func(r *Route) { r.Fallback.Status = 100 }), []string{"routes.chat.fallback.status: is 100"}},
		"fallback empty":  {route(func(r *Route) { r.Fallback.Body = "" }), []string{"routes.chat.fallback.body: is empty"}},
		"fallback not JSON": {route(func(r *Route) { r.Fallback.Body = "busy" }), []string{
			"routes.chat.fallback.body: is not JSON, but the content type is application/json",
		}},
		"fallback plain":         {route(func(r *Route) { r.Fallback = &Fallback{ContentType: "text/plain", Body: "busy"} }), nil},
		"fallback 204":           {route(func(r *Route) { r.Fallback = &Fallback{Status: 204} }), nil},
		"fallback 204 with body": {route(func(r *Route) { r.Fallback = &Fallback{Status: 204, Body: "{}"} }), []string{"routes.chat.fallback.body: cannot be sent with status 204"}},
		"fallback type":          {route(func(r *Route) { r.Fallback.ContentType = "json;;" }), []string{"routes.chat.fallback.content_type: "}},
		"fallback too long":      {route(func(r *Route) { r.Fallback.Body = strings.Repeat("1", MaxFallbackBytes+1) }), []string{"routes.chat.fallback.body: is 65537 bytes long"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := example(t)
			tc.change(&d)
			got := problems(t, d.Validate())
			require.Len(t, got, len(tc.want), "%v", got)
			for i, line := range got {
				require.True(t, strings.HasPrefix(line, tc.want[i]), "got  %s\nwant %s", line, tc.want[i])
			}
		})
	}
}

// A key pasted in place of its digest is a secret and is not repeated.
func TestValidateNeverRepeatsSecrets(t *testing.T) {
	t.Parallel()
	d := example(t)
	d.Tenants["x"] = Tenant{Keys: []string{"sk-canary"}}
	d.Pools["x"] = Pool{
		Dependency: "llm",
		Endpoints:  map[string]Endpoint{"one": {URL: "http://user:canary@host:99999/%zz"}, "two": {URL: "http://user:canary@host"}},
		Credential: &Credential{Env: "canary-secret"},
	}
	err := d.Validate()
	require.Len(t, problems(t, err), 4)
	require.NotContains(t, err.Error(), "canary")
}

func TestEndpointURL(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"http://10.0.0.7:8000":              "",
		"https://api.example.com/openai/v1": "",
		"http://[fd00::1]:80/":              "",
		"http://localhost":                  "",
		"http://127.0.0.1:9101":             "",
		"":                                  "is missing",
		"10.0.0.7:8000":                     "not an absolute http",
		"ftp://host":                        "not an absolute http",
		"http://":                           "not an absolute http",
		"http:host":                         "not an absolute http",
		"http://user@host":                  "user information",
		"http://host?x=1":                   "query",
		"http://host?":                      "query",
		"http://host/#f":                    "fragment",
		"http://host#":                      "fragment",
		"http://host:0":                     "port",
		"http://host:":                      "port",
		"http://host:70000":                 "port",
		"http://:80":                        "no host name",
		"http://host/a//b":                  "segments",
		"http://host/a/../b":                "segments",
		"http://169.254.169.254":            "link-local",
		"http://[fe80::1]":                  "link-local",
		"http://[::ffff:169.254.169.254]/latest/": "link-local",
		"http://0.0.0.0:80":                       "link-local, multicast and unspecified",
		"http://host\n":                           "not an absolute http",
	} {
		err := checkURL(url)
		if want == "" {
			require.NoError(t, err, url)
		} else {
			require.ErrorContains(t, err, want, url)
		}
	}
}
