package chat

import (
	"crypto/rand"
	"time"
)

// maxLabel is the longest button text (runes).
const maxLabel = 75

// keepFor is how long an action's button keeps its figures while the proposal
// moves with the traffic: a button must not change under the finger.
const keepFor = 10 * time.Minute

// ensure makes the live buttons of a subject the wanted ones, in their order:
// those that are there stay, others are made or retired.
func ensure(tx Tx, subject string, wanted []Button) ([]Button, error) {
	live, err := tx.LiveButtons(subject)
	if err != nil {
		return nil, err
	}
	bySlot := map[string]Button{}
	for _, b := range live {
		bySlot[b.Slot] = b
	}
	out := make([]Button, 0, len(wanted))
	for _, w := range wanted {
		have, there := bySlot[w.Slot]
		delete(bySlot, w.Slot)
		if there && keeps(have, w, tx.Now()) {
			out = append(out, have)
			continue
		}
		if there {
			if err := tx.RetireButton(have.ID); err != nil {
				return nil, err
			}
		}
		b := newButton(subject, w, tx.Now())
		if err := tx.InsertButton(b); err != nil {
			return nil, err
		}
		out = append(out, b)
	}
	for _, b := range live {
		if _, left := bySlot[b.Slot]; left {
			if err := tx.RetireButton(b.ID); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// keeps says whether a live button does what is wanted now.
func keeps(have, want Button, now time.Time) bool {
	if have.Kind != want.Kind || have.Action != want.Action || have.Hash != want.Hash {
		return false
	}
	same := string(have.Params) == string(want.Params) && have.Label == clip(want.Label, maxLabel)
	return same || (have.Kind == ButtonAction && now.Sub(have.CreatedAt) < keepFor)
}

func newButton(subject string, w Button, now time.Time) Button {
	w.ID, w.Subject, w.CreatedAt = rand.Text(), subject, now
	w.Label = clip(w.Label, maxLabel)
	if limit := now.Add(buttonTTL); w.ExpiresAt.IsZero() || w.ExpiresAt.After(limit) {
		w.ExpiresAt = limit
	}
	return w
}
