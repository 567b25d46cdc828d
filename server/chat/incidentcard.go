package chat

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"holdfast/actions"
	"holdfast/runbooks"
	"holdfast/server/alert"
	"holdfast/server/incident"
)

const (
	// shownAlerts and maxAlertLine bound the alerts on a card.
	shownAlerts  = 5
	maxAlertLine = 300
	// shownActions is how many proposed actions get a button of their own.
	shownActions = 2
	// maxRunButtons bounds revert and renew buttons.
	maxRunButtons = 5
	// shownRunbooks is how many proposed runbooks are linked, maxRunbookRuns how
	// many live ones are looked at.
	shownRunbooks  = 2
	maxRunbookRuns = 10
	// endedShown is how long an ended run stays on the card.
	endedShown = time.Hour
)

// IncidentCard makes the content of an incident's card and sees to it that its
// buttons exist. ErrNotFound when there is no such incident.
func (s *Service) IncidentCard(ctx context.Context, incidentID string) (IncidentCard, error) {
	// Proposals read the database themselves, so they come before the transaction.
	proposals, err := s.proposals(ctx, incidentID)
	if err != nil {
		return IncidentCard{}, fmt.Errorf("card of incident %s: %w", incidentID, err)
	}
	var card IncidentCard
	err = s.store.InTx(ctx, func(tx Tx) (err error) {
		card, err = s.incidentCard(tx, incidentID, proposals)
		return err
	})
	if err != nil {
		return IncidentCard{}, fmt.Errorf("card of incident %s: %w", incidentID, absent(err))
	}
	return card, nil
}

// absent gives look-ups of other packages this package's ErrNotFound.
func absent(err error) error {
	if errors.Is(err, incident.ErrNotFound) {
		return fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	return err
}

func (s *Service) incidentCard(tx Tx, incidentID string, proposals []Suggestion) (IncidentCard, error) {
	subject := incidentSubject(incidentID)
	if err := tx.Lock("card:" + subject); err != nil {
		return IncidentCard{}, err
	}
	in, err := tx.Incident(incidentID)
	if err != nil {
		return IncidentCard{}, err
	}
	card := IncidentCard{Incident: in, URL: s.publicURL + "/incidents/" + in.ID, Now: tx.Now()}
	occurrences, err := tx.IncidentOccurrences(incidentID, shownAlerts)
	if err != nil {
		return IncidentCard{}, err
	}
	for _, o := range occurrences {
		card.Alerts = append(card.Alerts, alertLine(o))
	}
	runs, err := tx.IncidentRuns(incidentID)
	if err != nil {
		return IncidentCard{}, err
	}
	card.Runs = shownRuns(runs, tx.Now())
	live, err := tx.RunbookRuns(runbooks.Filter{IncidentID: incidentID, Live: true, Limit: maxRunbookRuns})
	if err != nil {
		return IncidentCard{}, err
	}
	for _, r := range live {
		card.RunbookRuns = append(card.RunbookRuns, RunbookRun{Run: r, URL: s.publicURL + "/runbooks/runs/" + r.ID})
	}
	card.Runbooks = s.proposedRunbooks(card, occurrences)
	if card.Pending, err = tx.PendingClicks(subject); err != nil {
		return IncidentCard{}, err
	}
	pressed, err := pressedSlots(tx, card.Pending)
	if err != nil {
		return IncidentCard{}, err
	}
	if card.Buttons, err = ensure(tx, subject, s.wanted(in, runs, pressed, proposals)); err != nil {
		return IncidentCard{}, err
	}
	card.RunButtons, err = s.runButtons(tx, in, runs, pressed)
	return card, err
}

// proposedRunbooks are those that the firing alerts of an open incident name and
// that do not run for it already.
func (s *Service) proposedRunbooks(card IncidentCard, occurrences []alert.Occurrence) []RunbookLink {
	if card.Incident.Status == incident.StatusResolved {
		return nil
	}
	known := map[string]bool{}
	for _, r := range card.RunbookRuns {
		known[r.Run.Runbook.ID] = true
	}
	var links []RunbookLink
	for _, o := range occurrences {
		if o.Status != alert.StatusFiring {
			continue
		}
		for _, p := range s.runbooks.Suggest(o.Labels, o.Annotations) {
			if known[p.Runbook] || len(links) == shownRunbooks {
				continue
			}
			known[p.Runbook] = true
			links = append(links, RunbookLink{Title: p.Title, URL: card.URL + "?" + url.Values{"runbook": {p.Runbook}}.Encode()})
		}
	}
	return links
}

// wanted are the buttons of an incident by its state, at most four: Acknowledge
// while nobody has it in hand, proposed actions that are neither asked for nor
// running, and the way to all actions.
func (s *Service) wanted(in incident.Incident, runs []actions.Run, pressed map[string]bool, proposals []Suggestion) []Button {
	if in.Status == incident.StatusResolved {
		return nil
	}
	subject := incidentSubject(in.ID)
	var list []Button
	if in.Status == incident.StatusOpen && !pressed[subject+" ack"] {
		list = append(list, Button{Kind: ButtonAck, Slot: "ack", Label: "Acknowledge", Style: "primary"})
	}
	running := map[string]bool{}
	for _, r := range runs {
		if r.Live() {
			running[slotOf(r.Action, r.Params)] = true
		}
	}
	shown := 0
	for _, p := range proposals {
		slot := slotOf(p.Action, p.Params)
		spec, known := s.spec(p.Action)
		if shown == shownActions || !known || running[slot] || pressed[subject+" "+slot] {
			continue
		}
		shown++
		list = append(list, actionButton(spec, p, slot))
	}
	return append(list, Button{Kind: ButtonMore, Slot: "more", Label: "More…"})
}

func actionButton(spec actions.Spec, p Suggestion, slot string) Button {
	b := Button{Kind: ButtonAction, Slot: slot, Label: p.Title, Action: p.Action, Params: p.Params}
	if spec.Dangerous {
		b.Style, b.Confirm = "danger", spec.Summary
	}
	return b
}

// slotOf names the slot of an action with its parameters, figures left out: a
// limit whose proposed rate has moved is still the same button.
func slotOf(action string, params json.RawMessage) string {
	var values map[string]any
	if json.Unmarshal(params, &values) == nil {
		maps.DeleteFunc(values, func(_ string, v any) bool {
			_, figure := v.(float64)
			return figure
		})
		if named, err := json.Marshal(values); err == nil {
			params = named
		}
	}
	sum := sha256.Sum256(params)
	return "action:" + action + ":" + hex.EncodeToString(sum[:4])
}

// pressedSlots are the buttons whose click is committed and not done yet, as
// "subject slot": they are off the card before the work begins (C31).
func pressedSlots(tx Tx, pending []Click) (map[string]bool, error) {
	pressed := map[string]bool{}
	for _, c := range pending {
		b, err := tx.Button(c.ButtonID)
		if err != nil {
			return nil, err
		}
		slot := b.Slot
		if b.Kind == ButtonAction {
			slot = slotOf(b.Action, b.Params)
		}
		pressed[b.Subject+" "+slot] = true
	}
	return pressed, nil
}

// runButtons ensures revert and renew of the runs: reverts come first when
// there is not room for all, because taking back is what must not be missing.
func (s *Service) runButtons(tx Tx, in incident.Incident, runs []actions.Run, pressed map[string]bool) ([]Button, error) {
	room := maxRunButtons
	if in.Status == incident.StatusResolved {
		room = 0
	}
	wanted := map[string][]Button{}
	add := func(r actions.Run, b Button) {
		if subject := runSubject(r.ID); room > 0 && !pressed[subject+" revert"] && !pressed[subject+" "+b.Slot] {
			wanted[subject] = append(wanted[subject], b)
			room--
		}
	}
	for _, r := range runs {
		if r.Live() && r.Status != actions.StatusReverting {
			add(r, Button{Kind: ButtonRevert, Slot: "revert", Label: "Revert", Style: "primary", Action: r.Action})
		}
	}
	for _, r := range runs {
		if r.Status == actions.StatusActive {
			add(r, Button{Kind: ButtonRenew, Slot: "renew", Label: "Renew for " + s.renewFor(r).String(), Action: r.Action})
		}
	}
	var all []Button
	for _, r := range runs {
		if !r.Live() && tx.Now().Sub(r.EndedAt) > buttonTTL {
			continue // its buttons have expired
		}
		list, err := ensure(tx, runSubject(r.ID), wanted[runSubject(r.ID)])
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	return all, nil
}

// renewFor is how long Renew holds the lease from the press on.
func (s *Service) renewFor(r actions.Run) time.Duration {
	if spec, ok := s.spec(r.Action); ok {
		return spec.DefaultTTL
	}
	return r.TTL
}

// shownRuns are the live runs and those that ended lately, newest first.
func shownRuns(runs []actions.Run, now time.Time) []actions.Run {
	var shown []actions.Run
	for _, r := range runs {
		if r.Live() || now.Sub(r.EndedAt) < endedShown {
			shown = append(shown, r)
		}
	}
	return shown
}

// alertLine shows the labels of an occurrence, its name first.
func alertLine(o alert.Occurrence) string {
	parts := make([]string, 0, len(o.Labels))
	if name := o.Labels["alertname"]; name != "" {
		parts = append(parts, name)
	}
	for _, k := range slices.Sorted(maps.Keys(o.Labels)) {
		if k != "alertname" {
			parts = append(parts, k+"="+o.Labels[k])
		}
	}
	return clip(strings.Join(parts, " "), maxAlertLine)
}

// proposals asks for actions that fit the incident's alerts, a few more than are
// shown, because some may be running or asked for already. Without them the
// card still says what is wrong, so their failure is logged only.
func (s *Service) proposals(ctx context.Context, incidentID string) ([]Suggestion, error) {
	var in incident.Incident
	var occurrences []alert.Occurrence
	err := s.store.View(ctx, func(tx Tx) (err error) {
		if in, err = tx.Incident(incidentID); err != nil {
			return err
		}
		occurrences, err = tx.IncidentOccurrences(incidentID, shownAlerts)
		return err
	})
	if err != nil || in.Status == incident.StatusResolved {
		return nil, absent(err)
	}
	sources := make([]alert.Occurrence, 0, len(occurrences)+1)
	sources = append(sources, occurrences...)
	if in.Service != "" {
		sources = append(sources, alert.Occurrence{Labels: map[string]string{"service": in.Service}})
	}
	var found []Suggestion
	seen := map[string]bool{}
	for _, o := range sources {
		list, err := s.runner.Suggest(ctx, o.Labels, o.Annotations, 2*shownActions)
		if err != nil {
			s.log.WarnContext(ctx, "no actions could be proposed", "incident", incidentID, "error", err)
			return found, ctx.Err()
		}
		for _, p := range list {
			if slot := slotOf(p.Action, p.Params); !seen[slot] {
				seen[slot] = true
				found = append(found, p)
			}
		}
		if len(found) >= 2*shownActions {
			break
		}
	}
	return found, nil
}
