package servertest_test

import (
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"

	"holdfast/server/api"
	"holdfast/server/identity"
	"holdfast/server/servertest"
)

// operation is one operation of the description.
type operation struct {
	id, method, path string
	// body says that it takes one.
	body bool
	spec *openapi3.Operation
}

// operations reads them from the description that the server is generated from.
func operations(t *testing.T) []operation {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(api.OpenAPI)
	require.NoError(t, err)
	var ops []operation
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			ops = append(ops, operation{op.OperationID, method, path, op.RequestBody != nil, op})
		}
	}
	slices.SortFunc(ops, func(a, b operation) int { return strings.Compare(a.id, b.id) })
	return ops
}

// expectation says who gets through the outer wall of an operation: the least
// role, and the kinds of service token. Written by hand, apart from the server's
// own table: the two must agree.
type expectation struct {
	role   identity.Role
	tokens string
	// wall is the answer to service tokens of other kinds; 403 unless set.
	wall int
	// public says that nobody need log in.
	public bool
}

const (
	viewer    = identity.RoleViewer
	responder = identity.RoleResponder
	approver  = identity.RoleApprover
	admin     = identity.RoleAdmin
	nobody    = identity.RoleNone
)

var expected = map[string]expectation{
	"receiveAlertmanager": {tokens: "hook", wall: http.StatusUnauthorized},

	"checkChange": {role: responder, tokens: "ci"}, "claimChange": {role: responder, tokens: "ci"},
	"listChanges": {role: viewer, tokens: "ci"}, "getChange": {role: viewer, tokens: "ci"},
	"confirmChange": {role: approver}, "rejectChange": {role: approver},
	"startChange": {role: responder, tokens: "ci"}, "finishChange": {role: responder, tokens: "ci"},
	"extendChange": {role: responder, tokens: "ci"}, "cancelChange": {role: responder, tokens: "ci"},
	"listFreezes": {role: viewer, tokens: "ci"}, "createFreeze": {role: approver}, "deleteFreeze": {role: approver},
	"listServices": {role: viewer, tokens: "ci"},

	"listAlerts": {role: viewer}, "listIncidents": {role: viewer}, "getIncident": {role: viewer}, "getTimeline": {role: viewer},
	"addNote": {role: responder}, "acknowledgeIncident": {role: responder}, "resolveIncident": {role: responder},

	"listActions": {role: viewer}, "planAction": {role: viewer}, "runAction": {role: responder},
	"listRuns": {role: viewer}, "getRun": {role: viewer}, "revertRun": {role: responder}, "renewRun": {role: responder},

	"queryMetrics": {role: viewer}, "queryMetricsRange": {role: viewer}, "listSignals": {role: viewer}, "listRules": {role: viewer}, "listTargets": {role: viewer},

	"listRunbooks": {role: viewer}, "getRunbook": {role: viewer}, "listRunbookRuns": {role: viewer}, "getRunbookRun": {role: viewer},
	"startRunbook": {role: responder}, "answerRunbook": {role: responder}, "cancelRunbook": {role: responder},

	"getPolicy": {role: viewer}, "putPolicy": {role: admin}, "listRevisions": {role: viewer}, "confirmLineage": {role: admin},
	"streamPolicy": {tokens: "gateway"}, "ackPolicy": {tokens: "gateway"}, "listGateways": {role: viewer},

	"listAudit": {role: approver},

	"getMe": {role: viewer, tokens: "ci hook gateway"}, "createSession": {public: true}, "deleteSession": {role: viewer}, "linkSlack": {role: viewer},
	"listPeople": {role: viewer}, "createPerson": {role: admin}, "updatePerson": {role: admin}, "createLoginLink": {role: admin},
	"listTokens": {role: admin}, "createToken": {role: viewer}, "revokeToken": {role: viewer},

	"streamEvents": {role: viewer},
}

// caller is one way to ask.
type caller struct {
	name, token, cookie string
	// role is the role of a person; kind the kind of a service token that is not an api token.
	role identity.Role
	kind identity.TokenKind
	// invalid callers are nobody.
	invalid bool
}

func callers(s *servertest.System) []caller {
	garbage := strings.Repeat("x", 40)
	unknown, _ := identity.NewToken(identity.TokenCI, "never-entered", nil, "")
	revoked := s.Token(identity.TokenAPI, "alice", 0)
	s.Revoke(revoked)
	expired := s.Token(identity.TokenAPI, "alice", time.Millisecond)
	list := []caller{
		{name: "no token", invalid: true},
		{name: "garbage token", token: garbage, invalid: true},
		{name: "token nobody entered", token: unknown, invalid: true},
		{name: "revoked token of an admin", token: revoked, invalid: true},
		{name: "expired token of an admin", token: expired, invalid: true},
		{name: "garbage cookie", cookie: garbage, invalid: true},
		{name: "hook token", token: s.Tokens.Hook, kind: identity.TokenHook},
		{name: "ci token", token: s.Tokens.CI, kind: identity.TokenCI},
		{name: "gateway token", token: s.Tokens.Gateway, kind: identity.TokenGateway},
	}
	for _, role := range []identity.Role{viewer, responder, approver, admin} {
		handle := servertest.People[role].Handle
		list = append(list,
			caller{name: "api token of " + string(role), token: s.APIToken(handle), role: role},
			caller{name: "session of " + string(role), cookie: s.LoginCookie(handle), role: role})
	}
	return list
}

// class is what a caller must get: 401, 403, or through the wall (0).
func (e expectation) class(c caller) int {
	switch {
	case e.public:
		// A bad credential is never ignored, even where none is needed.
		if c.token != "" && c.invalid {
			return http.StatusUnauthorized
		}
		return 0
	case c.invalid:
		return http.StatusUnauthorized
	case c.kind != "" && !slices.Contains(strings.Fields(e.tokens), string(c.kind)):
		if e.wall != 0 {
			return e.wall
		}
		return http.StatusForbidden
	case c.kind != "":
		return 0
	case e.role == nobody || !c.role.AtLeast(e.role):
		return http.StatusForbidden
	default:
		return 0
	}
}

var pathParameter = regexp.MustCompile(`\{[^}]+\}`)

// probe is a request that passes the wall without doing anything: its subject
// does not exist, or its body says nothing.
func (o operation) probe(c caller) servertest.Request {
	path := pathParameter.ReplaceAllString(o.path, "no_such_thing")
	r := servertest.Request{Method: o.method, Path: path, Token: c.token, Cookie: c.cookie, Header: http.Header{}}
	if o.body {
		r.Body = `{}`
	}
	switch o.id {
	case "runAction", "startRunbook":
		r.Header.Set("Idempotency-Key", "matrix-of-roles")
	case "putPolicy":
		r.Header.Set("If-Match", `"0"`)
	case "streamPolicy":
		r.Path += "?gateway=gw-1"
	}
	return r
}

func TestR38_EveryOperationLetsInWhomItShould(t *testing.T) {
	t.Parallel()
	s := servertest.New(t, servertest.Options{WithoutSlack: true})
	ops := operations(t)
	ids := map[string]bool{}
	for _, o := range ops {
		ids[o.id] = true
		_, known := expected[o.id]
		require.True(t, known, "operation %s is described and nobody said here who may call it", o.id)
	}
	for id := range maps.Keys(expected) {
		require.True(t, ids[id], "operation %s is expected here and not described", id)
	}
	list := callers(s)
	asked := 0
	for _, o := range ops {
		for _, c := range list {
			want := expected[o.id].class(c)
			if want == 0 && (strings.HasPrefix(o.id, "stream") || o.id == "deleteSession" || o.id == "confirmLineage") {
				continue // it would last, log the caller out, or change something: tested elsewhere
			}
			a := s.Do(o.probe(c))
			asked++
			what := fmt.Sprintf("%s (%s %s) by %s: %d %s", o.id, o.method, o.path, c.name, a.Status, a.Body)
			if want != 0 {
				require.Equal(t, want, a.Status, what)
				_, ok := a.Problem()
				require.True(t, ok, "no problem document: %s", what)
				continue
			}
			require.NotEqual(t, http.StatusUnauthorized, a.Status, what)
			if o.id != "createToken" && o.id != "revokeToken" { // the owner decides there
				require.NotEqual(t, http.StatusForbidden, a.Status, what)
			}
			require.Less(t, a.Status, 500, what)
		}
	}
	t.Logf("%d operations × %d callers: %d requests", len(ops), len(list), asked)
	require.Empty(t, s.Runs())
}

func TestR38_NobodyConfirmsTheirOwnChangeOnAnotherChannel(t *testing.T) {
	t.Parallel()
	s := servertest.New(t, servertest.Options{})
	claim := func(run, token string) servertest.Answer {
		return s.Do(servertest.Request{
			Method: http.MethodPost, Path: "/api/v1/changes/claim", Token: token,
			Body: map[string]any{"service": "checkout", "environment": "prod", "run_id": run, "duration": "30m"},
		})
	}
	require.Contains(t, claim("run-1", s.Tokens.CI).Body, `"allow"`)
	held := claim("run-2", s.APIToken("bob"))
	require.Contains(t, held.Body, `"confirm"`)
	s.Press("Confirm", servertest.Bob)
	s.WaitWhisper(servertest.Bob, "refused")
	require.NotEmpty(t, auditRows(s, "Bob Berger", "denied"))
	// Somebody else can, on the same card.
	s.Press("Confirm", servertest.Alice)
	s.WaitCardSays("claimed", "Alice Andersson")
}
