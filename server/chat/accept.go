package chat

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"holdfast/actions"
	"holdfast/server/audit"
	"holdfast/server/change"
	"holdfast/server/identity"
	"holdfast/server/incident"
	"holdfast/server/outbox"
)

// verbClick is the audit verb of a press.
const verbClick = "chat.click"

// maxID bounds ids that come from outside (bytes).
const maxID = 64

// Accept commits a press, or says privately why not, in one transaction: who it
// is by the link table, whether they may now, whether the button still stands,
// and whether it was used before. When it answers Accepted, the press takes
// effect exactly once, whatever is killed afterwards. An error means that
// nothing was recorded and the press may be repeated.
func (s *Service) Accept(ctx context.Context, p Press) (Answer, error) {
	var ans Answer
	err := s.store.InTx(ctx, func(tx Tx) (err error) {
		ans, err = s.accept(tx, p)
		return err
	})
	if err != nil {
		return Answer{}, fmt.Errorf("accept a press: %w", err)
	}
	s.clicks.WithLabelValues(ans.result()).Inc()
	return ans, nil
}

func (a Answer) result() string {
	switch {
	case a.Accepted:
		return "accepted"
	case a.OpenForm:
		return "form"
	case a.Duplicate:
		return "duplicate"
	default:
		return "refused"
	}
}

func (s *Service) accept(tx Tx, p Press) (Answer, error) {
	if p.ButtonID == "" || len(p.ButtonID) > maxID {
		return Answer{Text: unknownButton}, nil
	}
	// Presses of one button queue up here, so that exactly one is the first.
	if err := tx.Lock("button:" + p.ButtonID); err != nil {
		return Answer{}, err
	}
	person, stranger, err := s.presser(tx, p.Team, p.User)
	if err != nil || stranger.Text != "" {
		return stranger, err
	}
	b, err := tx.Button(p.ButtonID)
	if errors.Is(err, ErrNotFound) {
		return Answer{Text: unknownButton}, tx.Audit(clickRow(person, "button", audit.Denied, "unknown button"))
	}
	if err != nil {
		return Answer{}, err
	}
	at, err := placeOf(tx, b.Subject)
	if err != nil {
		return Answer{}, err
	}
	if !b.UsedAt.IsZero() {
		return duplicateOf(tx, b, at)
	}
	if reason := stale(b, at, tx); reason != "" {
		return s.refuse(tx, person, b, at, reason)
	}
	if reason := s.lacks(person, b); reason != "" {
		return s.refuse(tx, person, b, at, reason)
	}
	if b.Kind == ButtonMore {
		return Answer{OpenForm: true, Subject: b.Subject}, nil
	}
	first, err := tx.UseButton(b.ID, person.Name)
	if err != nil {
		return Answer{}, err
	}
	if !first {
		return duplicateOf(tx, b, at)
	}
	click := Click{
		ID: rand.Text(), ButtonID: b.ID, PersonID: person.ID, PersonName: person.Name,
		Team: p.Team, User: p.User, Channel: p.Channel, MessageTS: p.MessageTS,
		Status: ClickAccepted, ReceivedAt: tx.Now(), NextAt: tx.Now(),
	}
	return s.take(tx, person, b, at, click)
}

const unknownButton = "This button is not known any more. Nothing was done."

// take commits the click, takes the button off the card and says so in the thread.
func (s *Service) take(tx Tx, person identity.Person, b Button, at place, click Click) (Answer, error) {
	if err := tx.InsertClick(click); err != nil {
		return Answer{}, err
	}
	e := clickRow(person, b.Subject, audit.Allowed, "")
	e.Details = map[string]string{"button": string(b.Kind), "label": b.Label, "click": click.ID}
	if err := tx.Audit(e); err != nil {
		return Answer{}, err
	}
	if err := refreshCard(tx, at.card); err != nil {
		return Answer{}, err
	}
	if err := tell(tx, at.card, fmt.Sprintf("%s asked for %q.", person.Name, b.Label)); err != nil {
		return Answer{}, err
	}
	return Answer{Accepted: true, Subject: b.Subject, Text: fmt.Sprintf("Accepted: %s. The card and its thread show what becomes of it.", b.Label)}, nil
}

// refuse says why, redraws the card so that the button goes, and audits.
func (s *Service) refuse(tx Tx, person identity.Person, b Button, at place, reason string) (Answer, error) {
	if err := refreshCard(tx, at.card); err != nil {
		return Answer{}, err
	}
	e := clickRow(person, b.Subject, audit.Denied, reason)
	e.Details = map[string]string{"button": string(b.Kind), "label": b.Label}
	return Answer{Subject: b.Subject, Text: "Refused: " + reason + " Nothing was done."}, tx.Audit(e)
}

// presser finds the person behind a chat user. Unknown ones get a private
// one-time link; disabled ones are refused.
func (s *Service) presser(tx Tx, team, user string) (identity.Person, Answer, error) {
	person, err := tx.PersonBySlack(team, user)
	switch {
	case errors.Is(err, identity.ErrNotFound):
		ans, err := s.invite(tx, team, user)
		return person, ans, err
	case err != nil:
		return person, Answer{}, err
	case person.Disabled:
		ans := Answer{Text: "Refused: your account is disabled. Nothing was done."}
		return person, ans, tx.Audit(clickRow(person, "person:"+person.ID, audit.Denied, "disabled"))
	default:
		return person, Answer{}, nil
	}
}

// invite makes the one-time link; only the hash of its code is stored.
func (s *Service) invite(tx Tx, team, user string) (Answer, error) {
	code, hash := identity.NewCode()
	link := identity.Link{Hash: hash, Purpose: identity.LinkSlack, SlackTeam: team, SlackUser: user, ExpiresAt: tx.Now().Add(linkTTL)}
	if err := tx.InsertLink(link); err != nil {
		return Answer{}, err
	}
	e := audit.Entry{
		ActorID: "slack:" + clip(team, maxID) + ":" + clip(user, maxID), ActorName: "unknown Slack user", Channel: string(identity.ChannelSlack),
		Verb: verbClick, Subject: "slack", Decision: audit.Denied, Reason: ErrUnknownPerson.Error(),
	}
	return Answer{Text: fmt.Sprintf(
		"Nothing was done: holdfast does not know who you are yet. Connect your account within 15 minutes, then press again: %s/link/slack?code=%s",
		s.publicURL, code)}, tx.Audit(e)
}

// place is where a button stands.
type place struct {
	// card is the subject of the card it is on.
	card string
	// incident is set for buttons of incidents and their runs, change for those of changes.
	incident *incident.Incident
	change   *change.Change
}

func placeOf(tx Tx, subject string) (place, error) {
	kind, id, _ := strings.Cut(subject, ":")
	switch kind {
	case "change":
		c, err := tx.Change(id)
		return place{card: subject, change: &c}, err
	case "run":
		run, err := tx.Run(id)
		if err != nil {
			return place{}, err
		}
		id = run.IncidentID
	}
	in, err := tx.Incident(id)
	return place{card: incidentSubject(id), incident: &in}, err
}

// stale says why a button that was not used cannot be pressed any more.
func stale(b Button, at place, tx Tx) string {
	switch {
	case at.incident != nil && at.incident.Status == incident.StatusResolved:
		return "this incident is resolved."
	case at.change != nil && at.change.Status != change.StatusHeld:
		return fmt.Sprintf("this change is %s already.", at.change.Status)
	case !b.RetiredAt.IsZero():
		return "this button is out of date; the card is being drawn again."
	case !b.ExpiresAt.IsZero() && !tx.Now().Before(b.ExpiresAt):
		return "this button has expired; the card is being drawn again."
	default:
		return ""
	}
}

// lacks says which role is missing, as known now.
func (s *Service) lacks(person identity.Person, b Button) string {
	need := s.needs(b)
	if person.Role.AtLeast(need) {
		return ""
	}
	have := string(person.Role)
	if have == "" {
		have = "none"
	}
	return fmt.Sprintf("%q needs the role %s and you have %s.", b.Label, need, have)
}

// needs is the least role for a button. What is done checks again.
func (s *Service) needs(b Button) identity.Role {
	switch b.Kind {
	case ButtonConfirm, ButtonReject:
		return identity.RoleApprover
	case ButtonAction, ButtonRevert, ButtonRenew:
		if spec, ok := s.spec(b.Action); ok {
			return identity.Role(spec.Role)
		}
		return identity.RoleAdmin
	default:
		return identity.RoleResponder
	}
}

// duplicateOf says who was first and when (C31, R20).
func duplicateOf(tx Tx, b Button, at place) (Answer, error) {
	ans := Answer{Duplicate: true, Subject: b.Subject, Text: fmt.Sprintf("Already asked by %s at %s.", b.UsedBy, clock(b.UsedAt))}
	click, err := tx.ClickByButton(b.ID)
	switch {
	case errors.Is(err, ErrNotFound):
	case err != nil:
		return Answer{}, err
	case click.Status == ClickDone:
		ans.Text = fmt.Sprintf("Already done: asked by %s at %s.", click.PersonName, clock(click.ReceivedAt))
	case click.Status == ClickRefused:
		ans.Text = fmt.Sprintf("%s asked for this at %s and it was refused: %s", click.PersonName, clock(click.ReceivedAt), click.Detail)
	default:
		ans.Text = fmt.Sprintf("Already running: asked by %s at %s.", click.PersonName, clock(click.ReceivedAt))
	}
	return ans, refreshCard(tx, at.card)
}

// tell posts one line into the thread of a card.
func tell(tx Tx, card, text string) error {
	if id, ok := strings.CutPrefix(card, "incident:"); ok {
		return incident.Tell(tx, id, text)
	}
	return send(tx, card, outbox.KindThread, card, outbox.Text{Text: clip(text, 1000)})
}

// whisper tells one chat user something; it does not queue behind a thread.
func whisper(tx Tx, c Click, card, text string) error {
	return send(tx, "user:"+c.Team+":"+c.User, outbox.KindEphemeral, card,
		outbox.Text{Text: clip(text, 1000), Team: c.Team, User: c.User, Channel: c.Channel})
}

func send(tx Tx, key, kind, subject string, text outbox.Text) error {
	payload, err := json.Marshal(text)
	if err != nil {
		return fmt.Errorf("write a message: %w", err)
	}
	return tx.Enqueue(outbox.Message{Topic: outbox.TopicChat, Key: key, Kind: kind, Subject: subject, Payload: payload})
}

// actorOf is the person as the action engine sees them.
func actorOf(p identity.Person) actions.Actor {
	return actions.Actor{PersonID: p.ID, Name: p.Name, Channel: string(identity.ChannelSlack)}
}
