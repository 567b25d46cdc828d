package chat

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"holdfast/actions"
)

// maxReason bounds the typed reason of a form (runes).
const maxReason = 500

// SubmitForm commits a filled-in action form like a press: once per FormID,
// with the same checks. An error means that nothing was recorded.
func (s *Service) SubmitForm(ctx context.Context, f FormSubmission) (Answer, error) {
	spec, problem := s.checkForm(f)
	if problem != "" {
		s.clicks.WithLabelValues("refused").Inc()
		return Answer{Subject: f.Subject, Text: "Nothing was done: " + problem}, nil
	}
	var ans Answer
	err := s.store.InTx(ctx, func(tx Tx) (err error) {
		ans, err = s.submit(tx, f, spec)
		return err
	})
	if err != nil {
		return Answer{}, fmt.Errorf("accept a form: %w", err)
	}
	s.clicks.WithLabelValues(ans.result()).Inc()
	return ans, nil
}

// checkForm says what is wrong with a form before anything is looked up.
func (s *Service) checkForm(f FormSubmission) (spec actions.Spec, problem string) {
	if len(f.FormID) < 8 || len(f.FormID) > maxID || !strings.HasPrefix(f.Subject, "incident:") {
		return spec, "this form is not known any more."
	}
	spec, known := s.spec(f.Action)
	if !known {
		return spec, fmt.Sprintf("there is no action %q.", clip(f.Action, maxID))
	}
	if reason := strings.TrimSpace(f.Reason); reason == "" || utf8.RuneCountInString(reason) > maxReason {
		return spec, fmt.Sprintf("say why, in at most %d characters.", maxReason)
	}
	var values map[string]json.RawMessage
	if json.Unmarshal(f.Params, &values) != nil {
		return spec, "its values could not be read."
	}
	for _, p := range spec.Params {
		if _, given := values[p.Name]; p.Required && !given {
			return spec, fmt.Sprintf("%s needs %s.", spec.Title, p.Name)
		}
	}
	return spec, ""
}

func (s *Service) submit(tx Tx, f FormSubmission, spec actions.Spec) (Answer, error) {
	if err := tx.Lock("button:" + f.FormID); err != nil {
		return Answer{}, err
	}
	person, stranger, err := s.presser(tx, f.Team, f.User)
	if err != nil || stranger.Text != "" {
		return stranger, err
	}
	at, err := placeOf(tx, f.Subject)
	if err != nil {
		return Answer{}, err
	}
	before, err := tx.Button(f.FormID)
	if err == nil {
		return duplicateOf(tx, before, at)
	}
	if !errors.Is(err, ErrNotFound) {
		return Answer{}, err
	}
	// A form is a button that is used as it comes to be: one way for both.
	b := newButton(f.Subject, Button{
		Kind: ButtonAction, Slot: "form:" + f.FormID, Label: actions.TitleOf(spec, f.Params), Action: f.Action, Params: f.Params,
	}, tx.Now())
	b.ID = f.FormID
	if reason := stale(b, at, tx); reason != "" {
		return s.refuse(tx, person, b, at, reason)
	}
	if reason := s.lacks(person, b); reason != "" {
		return s.refuse(tx, person, b, at, reason)
	}
	b.UsedAt, b.UsedBy = tx.Now(), person.Name
	if err := tx.InsertButton(b); err != nil {
		return Answer{}, err
	}
	return s.take(tx, person, b, at, Click{
		ID: rand.Text(), ButtonID: b.ID, PersonID: person.ID, PersonName: person.Name, Team: f.Team, User: f.User,
		Status: ClickAccepted, Detail: strings.TrimSpace(f.Reason), ReceivedAt: tx.Now(), NextAt: tx.Now(),
	})
}
