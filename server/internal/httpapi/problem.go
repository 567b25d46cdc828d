package httpapi

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"

	"holdfast/actions"
	"holdfast/runbooks"
	"holdfast/server/alert"
	"holdfast/server/change"
	"holdfast/server/chat"
	"holdfast/server/fleet"
	"holdfast/server/identity"
	"holdfast/server/incident"
	"holdfast/server/internal/httpapi/gen"
	"holdfast/server/observe"
	"holdfast/strict"
)

// problem is one row of the table below, or a refusal made here.
type problem struct {
	status int
	// kind is the stable end of the problem's type, "/problems/<kind>".
	kind  string
	title string
	// detail is for the caller; it never holds secrets.
	detail string
	fields []strict.FieldError
	// retryAfter is in seconds; 0 leaves the header out.
	retryAfter string
}

// problems maps every sentinel to its answer. The first match counts; what is in
// no row is a 500 with an id and no detail.
var problems = []struct {
	err error
	problem
}{
	{identity.ErrUnauthenticated, problem{status: 401, kind: "not-authenticated", title: "Not authenticated"}},
	{identity.ErrForbidden, problem{status: 403, kind: "forbidden", title: "Not allowed"}},
	{runbooks.ErrForbidden, problem{status: 403, kind: "forbidden", title: "Not allowed"}},
	{actions.ErrForbidden, problem{status: 403, kind: "forbidden", title: "Not allowed"}},
	{change.ErrSelfConfirm, problem{status: 403, kind: "self-confirm", title: "The requester cannot confirm their own change"}},
	{identity.ErrNotFound, problem{status: 404, kind: "not-found", title: "Not found"}},
	{incident.ErrNotFound, problem{status: 404, kind: "not-found", title: "Incident not found"}},
	{alert.ErrNotFound, problem{status: 404, kind: "not-found", title: "Alert not found"}},
	{change.ErrNotFound, problem{status: 404, kind: "not-found", title: "Change not found"}},
	{fleet.ErrNotFound, problem{status: 404, kind: "not-found", title: "Not found"}},
	{chat.ErrNotFound, problem{status: 404, kind: "not-found", title: "Not found"}},
	{runbooks.ErrUnknownRunbook, problem{status: 404, kind: "unknown-runbook", title: "Unknown runbook"}},
	{runbooks.ErrNotFound, problem{status: 404, kind: "not-found", title: "Runbook run not found"}},
	{actions.ErrNotFound, problem{status: 404, kind: "not-found", title: "Action run not found"}},
	{actions.ErrUnknownAction, problem{status: 404, kind: "unknown-action", title: "Unknown action"}},
	{identity.ErrLinkUsed, problem{status: 410, kind: "link-used", title: "This one-time link was used or has expired"}},
	{identity.ErrDuplicate, problem{status: 409, kind: "duplicate", title: "It exists already"}},
	{identity.ErrLastAdmin, problem{status: 409, kind: "last-admin", title: "Nobody could administer holdfast afterwards"}},
	{incident.ErrStillFiring, problem{status: 409, kind: "still-firing", title: "Alerts of this incident still fire"}},
	{incident.ErrResolved, problem{status: 409, kind: "resolved", title: "The incident is resolved"}},
	{incident.ErrStale, problem{status: 409, kind: "stale", title: "Somebody else changed it at the same moment"}},
	{change.ErrStale, problem{status: 409, kind: "stale", title: "Somebody else changed it at the same moment"}},
	{change.ErrConflict, problem{status: 409, kind: "overlap", title: "It overlaps another claim"}},
	{change.ErrWrongState, problem{status: 409, kind: "wrong-state", title: "Not possible in this state"}},
	{change.ErrOutdated, problem{status: 409, kind: "outdated", title: "The calendar changed since this was asked"}},
	{change.ErrDenied, problem{status: 409, kind: "denied", title: "Denied"}},
	{change.ErrRunMismatch, problem{status: 409, kind: "run-mismatch", title: "Another run holds this claim"}},
	{runbooks.ErrStale, problem{status: 409, kind: "stale", title: "Somebody else changed it at the same moment"}},
	{runbooks.ErrWrongState, problem{status: 409, kind: "wrong-state", title: "Not possible in this state"}},
	{runbooks.ErrDuplicate, problem{status: 409, kind: "duplicate", title: "It was asked before"}},
	{actions.ErrStale, problem{status: 409, kind: "stale", title: "Somebody else changed it at the same moment"}},
	{actions.ErrWrongState, problem{status: 409, kind: "wrong-state", title: "Not possible in this state"}},
	{actions.ErrPathLeased, problem{status: 409, kind: "path-leased", title: "Somebody holds this part of the policy"}},
	{actions.ErrOutdated, problem{status: 409, kind: "outdated", title: "The plan is out of date"}},
	{actions.ErrDuplicate, problem{status: 409, kind: "duplicate", title: "It was asked before"}},
	{fleet.ErrStale, problem{status: 412, kind: "stale", title: "The policy changed since you read it"}},
	{change.ErrInvalid, problem{status: 400, kind: "invalid", title: "Invalid change request"}},
	{alert.ErrInvalid, problem{status: 400, kind: "invalid", title: "Invalid notification"}},
	{incident.ErrInvalid, problem{status: 400, kind: "invalid", title: "Invalid request"}},
	{identity.ErrInvalid, problem{status: 400, kind: "invalid", title: "Invalid request"}},
	{runbooks.ErrInvalid, problem{status: 400, kind: "invalid", title: "Invalid runbook request"}},
	{observe.ErrBadQuery, problem{status: 400, kind: "invalid-query", title: "Invalid query"}},
	{actions.ErrInvalidParams, problem{status: 400, kind: "invalid", title: "Invalid parameters"}},
	{fleet.ErrInvalid, problem{status: 422, kind: "invalid-policy", title: "Invalid policy"}},
	{errNoMetrics, problem{status: 503, kind: "no-metrics", title: "No metrics are configured"}},
	{observe.ErrUnavailable, problem{status: 503, kind: "metrics-unavailable", title: "Prometheus does not answer", retryAfter: "5"}},
	{alert.ErrOverloaded, problem{status: 503, kind: "overloaded", title: "Too many deliveries at once", retryAfter: "2"}},
}

// requestError is a request that does not fit its description.
type requestError struct {
	status int
	title  string
	fields []strict.FieldError
}

func (e *requestError) add(path, message string) {
	e.fields = append(e.fields, strict.FieldError{Path: path, Message: message})
}

func (e *requestError) Error() string { return strict.Errors(e.fields).Error() }

func invalidRequest(err error) error {
	e := &requestError{}
	e.add("", firstLine(err.Error()))
	return e
}

func tooLarge(limit int64) error {
	e := &requestError{status: http.StatusRequestEntityTooLarge, title: "The body is too large"}
	e.add("", fmt.Sprintf("at most %d bytes are taken here, compressed and unpacked", limit))
	return e
}

// classify finds the answer to an error; ok is false for what nobody foresaw.
func classify(err error) (problem, bool) {
	if req, ok := errors.AsType[*requestError](err); ok {
		p := problem{status: http.StatusBadRequest, kind: "invalid", title: "Invalid request", fields: req.fields}
		if req.status != 0 {
			p.status, p.kind, p.title = req.status, "too-large", req.title
		}
		return p, true
	}
	for _, row := range problems {
		if errors.Is(err, row.err) {
			p := row.problem
			if fields, ok := errors.AsType[strict.Errors](err); ok {
				p.fields = fields
			} else if detail := err.Error(); detail != row.err.Error() {
				p.detail = detail
			}
			return p, true
		}
	}
	return problem{}, false
}

// fail answers with the problem document of an error.
func (a *handlers) fail(c *gin.Context, err error) {
	if c.Request.Context().Err() != nil && !c.Writer.Written() {
		c.Status(499) // the caller left; the status is for the log alone
		return
	}
	p, ok := classify(err)
	if !ok {
		if a.Unavailable(err) || errors.Is(err, context.DeadlineExceeded) || a.ready(c.Request.Context()) != nil {
			p = problem{status: http.StatusServiceUnavailable, kind: "unavailable", title: "The database does not answer", retryAfter: "2"}
		} else {
			p = problem{status: http.StatusInternalServerError, kind: "internal", title: "holdfast failed"}
		}
		a.unforeseen(c, p, err)
		return
	}
	a.problem(c, p)
}

// unforeseen logs the error under a short id and tells the caller only that id.
func (a *handlers) unforeseen(c *gin.Context, p problem, err error) {
	id := rand.Text()[:8]
	a.log.Error("request failed", "id", id, "route", c.FullPath(), "error", err)
	a.write(c, p, id)
}

func (a *handlers) problem(c *gin.Context, p problem) { a.write(c, p, "") }

func (a *handlers) write(c *gin.Context, p problem, id string) {
	if c.Writer.Written() {
		return
	}
	body := gen.Problem{Type: "/problems/" + p.kind, Title: p.title, Status: p.status, Detail: text(p.detail), Instance: text(id)}
	if len(p.fields) > 0 {
		type field = struct {
			Line    *int   `json:"line,omitempty"`
			Message string `json:"message"`
			Path    string `json:"path"`
		}
		fields := make([]field, 0, len(p.fields))
		for _, f := range p.fields {
			fields = append(fields, field{Path: f.Path, Message: f.Message, Line: positive(f.Line)})
		}
		body.Errors = &fields
	}
	if p.retryAfter != "" {
		c.Header("Retry-After", p.retryAfter)
	}
	if p.status == http.StatusUnauthorized {
		c.Header("WWW-Authenticate", `Bearer realm="holdfast"`)
	}
	c.Header("Content-Type", "application/problem+json")
	c.JSON(p.status, body)
}
