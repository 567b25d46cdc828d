package chat

import (
	"context"
	"errors"
	"fmt"

	"holdfast/server/change"
)

// ChangeCard makes the content of the card of a held change and sees to it that
// its buttons exist while it waits. ErrNotFound when there is no such change.
func (s *Service) ChangeCard(ctx context.Context, changeID string) (ChangeCard, error) {
	var card ChangeCard
	err := s.store.InTx(ctx, func(tx Tx) (err error) {
		card, err = s.changeCard(tx, changeID)
		return err
	})
	if errors.Is(err, change.ErrNotFound) {
		err = fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	if err != nil {
		return ChangeCard{}, fmt.Errorf("card of change %s: %w", changeID, err)
	}
	return card, nil
}

func (s *Service) changeCard(tx Tx, changeID string) (ChangeCard, error) {
	subject := changeSubject(changeID)
	if err := tx.Lock("card:" + subject); err != nil {
		return ChangeCard{}, err
	}
	c, err := tx.Change(changeID)
	if err != nil {
		return ChangeCard{}, err
	}
	card := ChangeCard{Change: c, URL: s.publicURL + "/changes/" + c.ID, Now: tx.Now()}
	for _, id := range c.Blockers {
		b, err := tx.Change(id)
		if errors.Is(err, change.ErrNotFound) {
			continue
		}
		if err != nil {
			return ChangeCard{}, err
		}
		card.Blockers = append(card.Blockers, b)
	}
	pending, err := tx.PendingClicks(subject)
	if err != nil {
		return ChangeCard{}, err
	}
	card.Buttons, err = ensure(tx, subject, decisionButtons(c, len(pending) > 0, !tx.Now().Before(c.ConfirmBy)))
	return card, err
}

// decisionButtons let a held change be confirmed or rejected. A confirmation is
// bound to the exact request by its hash.
func decisionButtons(c change.Change, pressed, lapsed bool) []Button {
	if c.Status != change.StatusHeld || pressed || lapsed {
		return nil
	}
	return []Button{
		{
			Kind: ButtonConfirm, Slot: "confirm", Label: "Confirm", Style: "primary", Hash: c.ParamsHash, ExpiresAt: c.ConfirmBy,
			Confirm: fmt.Sprintf("Let %s of %s in %s go ahead although other changes are near.", c.Kind, c.Service, c.Environment),
		},
		{Kind: ButtonReject, Slot: "reject", Label: "Reject", Style: "danger", Hash: c.ParamsHash, ExpiresAt: c.ConfirmBy},
	}
}
