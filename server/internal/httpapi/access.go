package httpapi

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"holdfast/server/identity"
)

// access says who may call an operation. Services check again with the subject
// at hand; this table is the outer wall, and deny is its default.
type access struct {
	// public operations need nobody.
	public bool
	// role lets people, and api tokens with their owner's role, in.
	role identity.Role
	// tokens lets these kinds of service token in.
	tokens []identity.TokenKind
	// source is the scope a hook token must fit; another source's token is as good as none (R28).
	source string
}

var accessTable = map[string]access{
	"receiveAlertmanager": {tokens: []identity.TokenKind{identity.TokenHook}, source: "alertmanager"},

	"checkChange":   {role: identity.RoleResponder, tokens: ci},
	"claimChange":   {role: identity.RoleResponder, tokens: ci},
	"listChanges":   {role: identity.RoleViewer, tokens: ci},
	"getChange":     {role: identity.RoleViewer, tokens: ci},
	"confirmChange": {role: identity.RoleApprover},
	"rejectChange":  {role: identity.RoleApprover},
	"startChange":   {role: identity.RoleResponder, tokens: ci},
	"finishChange":  {role: identity.RoleResponder, tokens: ci},
	"extendChange":  {role: identity.RoleResponder, tokens: ci},
	"cancelChange":  {role: identity.RoleResponder, tokens: ci},
	"listFreezes":   {role: identity.RoleViewer, tokens: ci},
	"createFreeze":  {role: identity.RoleApprover},
	"deleteFreeze":  {role: identity.RoleApprover},
	"listServices":  {role: identity.RoleViewer, tokens: ci},

	"listAlerts":          {role: identity.RoleViewer},
	"listIncidents":       {role: identity.RoleViewer},
	"getIncident":         {role: identity.RoleViewer},
	"getTimeline":         {role: identity.RoleViewer},
	"addNote":             {role: identity.RoleResponder},
	"acknowledgeIncident": {role: identity.RoleResponder},
	"resolveIncident":     {role: identity.RoleResponder},

	"listActions": {role: identity.RoleViewer},
	"planAction":  {role: identity.RoleViewer},
	// Each action names its own role; the engine checks it now and again when it is done.
	"runAction": {role: identity.RoleResponder},
	"listRuns":  {role: identity.RoleViewer},
	"getRun":    {role: identity.RoleViewer},
	"revertRun": {role: identity.RoleResponder},
	"renewRun":  {role: identity.RoleResponder},

	"queryMetrics":      {role: identity.RoleViewer},
	"queryMetricsRange": {role: identity.RoleViewer},
	"listSignals":       {role: identity.RoleViewer},
	"listRules":         {role: identity.RoleViewer},
	"listTargets":       {role: identity.RoleViewer},

	"listRunbooks":    {role: identity.RoleViewer},
	"getRunbook":      {role: identity.RoleViewer},
	"listRunbookRuns": {role: identity.RoleViewer},
	"getRunbookRun":   {role: identity.RoleViewer},
	// What a step does needs its own role as well: the action engine checks it.
	"startRunbook":  {role: identity.RoleResponder},
	"answerRunbook": {role: identity.RoleResponder},
	"cancelRunbook": {role: identity.RoleResponder},

	"getPolicy":      {role: identity.RoleViewer},
	"putPolicy":      {role: identity.RoleAdmin},
	"listRevisions":  {role: identity.RoleViewer},
	"confirmLineage": {role: identity.RoleAdmin},
	"streamPolicy":   {tokens: []identity.TokenKind{identity.TokenGateway}},
	"ackPolicy":      {tokens: []identity.TokenKind{identity.TokenGateway}},
	"listGateways":   {role: identity.RoleViewer},

	"listAudit": {role: identity.RoleApprover},

	"getMe":         {role: identity.RoleViewer, tokens: []identity.TokenKind{identity.TokenCI, identity.TokenHook, identity.TokenGateway}},
	"createSession": {public: true},
	"deleteSession": {role: identity.RoleViewer},
	"linkSlack":     {role: identity.RoleViewer},

	"listPeople":      {role: identity.RoleViewer},
	"createPerson":    {role: identity.RoleAdmin},
	"updatePerson":    {role: identity.RoleAdmin},
	"createLoginLink": {role: identity.RoleAdmin},
	"listTokens":      {role: identity.RoleAdmin},
	"createToken":     {role: identity.RoleViewer},
	"revokeToken":     {role: identity.RoleViewer},

	"streamEvents": {role: identity.RoleViewer},
}

var ci = []identity.TokenKind{identity.TokenCI}

// permit checks the caller in the context.
func (r access) permit(ctx context.Context) error {
	if r.public {
		return nil
	}
	p, ok := identity.From(ctx)
	if !ok {
		return identity.ErrUnauthenticated
	}
	if p.Kind == identity.PrincipalToken && p.TokenKind != identity.TokenAPI {
		return r.permitToken(p)
	}
	if r.role == identity.RoleNone || !p.Role.AtLeast(r.role) {
		return fmt.Errorf("%w: this needs %s", identity.ErrForbidden, r.needs())
	}
	return nil
}

func (r access) permitToken(p identity.Principal) error {
	if !slices.Contains(r.tokens, p.TokenKind) {
		if r.source != "" {
			return fmt.Errorf("%w: this hook needs a token of kind hook", identity.ErrUnauthenticated)
		}
		return fmt.Errorf("%w: a token of kind %s cannot do this; it needs %s", identity.ErrForbidden, p.TokenKind, r.needs())
	}
	if r.source != "" && !p.HasScope("source", r.source) {
		return fmt.Errorf("%w: this token is for another source", identity.ErrUnauthenticated)
	}
	return nil
}

func (r access) needs() string {
	switch {
	case r.role != identity.RoleNone && len(r.tokens) > 0:
		return fmt.Sprintf("the role %s, or a token of kind %v", r.role, r.tokens)
	case r.role != identity.RoleNone:
		return fmt.Sprintf("the role %s", r.role)
	default:
		return fmt.Sprintf("a token of kind %v", r.tokens)
	}
}

// checkAccessTable compares the table with the described operations.
func checkAccessTable(operations []string) error {
	var errs []error
	for _, op := range operations {
		if _, ok := accessTable[op]; !ok {
			errs = append(errs, fmt.Errorf("operation %q has no entry in the access table", op))
		}
	}
	for op := range accessTable {
		if !slices.Contains(operations, op) {
			errs = append(errs, fmt.Errorf("the access table names %q, which is not described", op))
		}
	}
	return errors.Join(errs...)
}
