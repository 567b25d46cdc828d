package httpapi

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"holdfast/actions"
	"holdfast/server/alert"
	"holdfast/server/change"
	"holdfast/server/fleet"
	"holdfast/server/identity"
	"holdfast/server/incident"
	"holdfast/server/internal/httpapi/gen"
)

// text, number, moment and list leave empty values out of the answer.
func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func number(n int64) *int64 {
	if n == 0 {
		return nil
	}
	return &n
}

func positive(n int) *int {
	if n <= 0 {
		return nil
	}
	return &n
}

func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

func list[T any](v []T) *[]T {
	if len(v) == 0 {
		return nil
	}
	return &v
}

func value[T any](p *T) T {
	var zero T
	if p == nil {
		return zero
	}
	return *p
}

// convert maps a slice; the result is never nil, so that JSON shows [].
func convert[A, B any](in []A, f func(A) B) []B {
	out := make([]B, 0, len(in))
	for _, v := range in {
		out = append(out, f(v))
	}
	return out
}

// recode turns a value into a described one of the same JSON shape.
func recode[T any](v any) (T, error) {
	var out T
	b, err := json.Marshal(v)
	if err != nil {
		return out, fmt.Errorf("encode: %w", err)
	}
	if err := json.Unmarshal(b, &out); err != nil {
		return out, fmt.Errorf("decode: %w", err)
	}
	return out, nil
}

// object turns raw JSON into the generic object of the description.
func object(raw json.RawMessage) map[string]any {
	var m map[string]any
	if json.Unmarshal(raw, &m) != nil || m == nil {
		return map[string]any{}
	}
	return m
}

// numberCursor reads a cursor that is a number; empty is 0.
func numberCursor(c *gen.Cursor) (int64, error) {
	if c == nil || *c == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(*c, 10, 64)
	if err != nil || n < 0 {
		return 0, badField("cursor", "pass the \"next\" of the page before, as it was")
	}
	return n, nil
}

func pageLimit(l *gen.Limit) int {
	if l == nil {
		return 50
	}
	return *l
}

// nextNumber is the cursor after a full page.
func nextNumber(full bool, last int64) *string {
	if !full {
		return nil
	}
	return text(strconv.FormatInt(last, 10))
}

func badField(path, message string) error {
	e := &requestError{}
	e.add(path, message)
	return e
}

// duration reads a duration field; nil gives the fallback.
func duration(path string, s *string, fallback time.Duration) (time.Duration, error) {
	if s == nil || *s == "" {
		return fallback, nil
	}
	d, err := time.ParseDuration(*s)
	if err != nil {
		return 0, badField(path, strconv.Quote(*s)+` is not a duration: want text with a unit, such as "30m"`)
	}
	if d < 0 {
		return 0, badField(path, "want a duration of 0 or more")
	}
	return d, nil
}

func toIncident(in incident.Incident) gen.Incident {
	return gen.Incident{
		Id: in.ID, Number: in.Number, Title: in.Title, Severity: gen.Severity(in.Severity), Status: gen.IncidentStatus(in.Status),
		Service: text(in.Service), Environment: text(in.Environment), Summary: text(in.Summary),
		RunbookUrl: text(in.RunbookURL), SourceUrl: text(in.SourceURL),
		Firing: in.Firing, Resolved: in.Resolved, Truncated: in.Truncated,
		OpenedAt: in.OpenedAt.UTC(), AckedAt: moment(in.AckedAt), AckedBy: text(in.AckedBy), ResolvedAt: moment(in.ResolvedAt),
	}
}

func toEntry(e incident.Entry) gen.TimelineEntry {
	return gen.TimelineEntry{Id: e.ID, At: e.At.UTC(), Kind: gen.TimelineEntryKind(e.Kind), Actor: e.Actor, Text: e.Text, Ref: text(e.Ref)}
}

func toAlert(o alert.Occurrence) gen.Alert {
	a := gen.Alert{
		Id: o.ID, Fingerprint: o.Fingerprint, StartsAt: o.StartsAt.UTC(), EndsAt: moment(o.EndsAt), Status: gen.AlertStatus(o.Status),
		Severity: gen.Severity(o.Severity), Labels: o.Labels, Annotations: o.Annotations, GeneratorUrl: text(o.GeneratorURL),
		Incident: text(o.IncidentID), Source: text(o.Source), LastReceivedAt: o.LastReceivedAt.UTC(), Repeats: o.Repeats,
	}
	if a.Labels == nil {
		a.Labels = map[string]string{}
	}
	if a.Annotations == nil {
		a.Annotations = map[string]string{}
	}
	return a
}

func toChange(c change.Change) gen.Change {
	return gen.Change{
		Id: c.ID, Service: c.Service, Environment: c.Environment, Kind: gen.ChangeKind(c.Kind), Status: gen.ChangeStatus(c.Status),
		Start: c.Start.UTC(), End: c.End.UTC(), RunId: c.RunID, Summary: text(c.Summary), Url: text(c.URL), Requester: text(c.RequesterName),
		ActionRun: text(c.ActionRunID), Blockers: list(c.Blockers), ParamsHash: text(c.ParamsHash), ConfirmBy: moment(c.ConfirmBy),
		DecidedBy: text(c.DecidedBy), DecidedAt: moment(c.DecidedAt), FencingToken: number(c.FencingToken),
		ClaimedUntil: moment(c.ClaimedUntil), CreatedAt: c.CreatedAt.UTC(), FinishedAt: moment(c.FinishedAt),
	}
}

func toFreeze(f change.Freeze) gen.Freeze {
	return gen.Freeze{
		Id: f.ID, Reason: f.Reason, Services: list(f.Services), Environments: list(f.Environments),
		Kinds: list(convert(f.Kinds, func(k change.Kind) gen.ChangeKind { return gen.ChangeKind(k) })),
		Start: f.Start.UTC(), End: moment(f.End), CreatedBy: f.CreatedBy, CreatedAt: f.CreatedAt.UTC(),
	}
}

func (a *handlers) toDecision(d change.Decision, c change.Change) gen.ChangeDecision {
	out := gen.ChangeDecision{
		Decision: gen.Verdict(d.Verdict), ReasonCode: string(change.ReasonFree), ExpiresAt: d.ExpiresAt.UTC(), NextOpen: moment(d.NextOpen),
		Reasons:  convert(d.Reasons, func(r change.Reason) gen.Reason { return gen.Reason{Code: string(r.Code), Text: r.Text} }),
		Blockers: convert(d.Blockers, toChange),
	}
	if len(d.Reasons) > 0 {
		out.ReasonCode = string(d.Reasons[0].Code)
	}
	if c.ID == "" {
		return out
	}
	status := gen.ChangeStatus(c.Status)
	out.ChangeId, out.ChangeStatus, out.FencingToken = text(c.ID), &status, number(c.FencingToken)
	if c.Status == change.StatusHeld {
		out.ConfirmBy, out.ConfirmUrl = moment(c.ConfirmBy), text(a.PublicURL.JoinPath("changes", c.ID).String())
	}
	return out
}

func (a *handlers) toRun(r actions.Run) gen.ActionRun {
	out := gen.ActionRun{
		Id: r.ID, Action: r.Action, Title: a.title(r.Action), Params: object(r.Params), Summary: r.Plan.Summary, Incident: text(r.IncidentID),
		Requester: r.Requester.Name, Channel: text(r.Requester.Channel), Reason: r.Reason, Status: gen.ActionRunStatus(r.Status),
		Lineage: text(r.Lineage), Revision: number(r.Revision), RevertRevision: number(r.RevertRevision),
		AcceptedAt: r.AcceptedAt.UTC(), ExecutedAt: moment(r.ExecutedAt), EnforcedAt: moment(r.EnforcedAt), ExpiresAt: moment(r.ExpiresAt),
		EndedAt: moment(r.EndedAt), EndReason: text(string(r.EndReason)), EndDetail: text(r.EndDetail), EndedBy: text(r.EndedBy),
		Missing: append([]string{}, r.Missing...),
	}
	if r.Verification.Verdict != "" {
		out.Verification = &gen.Verification{Verdict: gen.VerificationVerdict(r.Verification.Verdict), Detail: text(r.Verification.Detail), At: moment(r.Verification.At)}
	}
	if diff, err := recode[[]gen.PolicyChange](r.Plan.Diff); err == nil {
		out.Diff = list(diff)
	}
	return out
}

func (a *handlers) title(action string) string {
	for _, s := range a.Actions.Specs() {
		if s.Name == action {
			return s.Title
		}
	}
	return strings.ReplaceAll(action, "_", " ")
}

func toPerson(p identity.Person) gen.Person {
	return gen.Person{
		Id: p.ID, Handle: p.Handle, Name: p.Name, Role: gen.Role(p.Role), Disabled: p.Disabled,
		SlackLinked: p.SlackUser != "", CreatedAt: moment(p.CreatedAt),
	}
}

func toToken(t identity.Token) gen.Token {
	return gen.Token{
		Id: t.ID, Kind: gen.TokenKind(t.Kind), Name: t.Name, Scopes: append([]string{}, t.Scopes...), Owner: text(t.OwnerID),
		CreatedAt: t.CreatedAt.UTC(), ExpiresAt: moment(t.ExpiresAt), LastUsedAt: moment(t.LastUsedAt), RevokedAt: moment(t.RevokedAt),
	}
}

func toRevision(r fleet.Revision) gen.Revision {
	return gen.Revision{Lineage: r.Lineage, Revision: r.Revision, At: r.At.UTC(), Cause: r.Cause, Actor: r.Actor}
}
