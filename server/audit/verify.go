package audit

import (
	"fmt"
	"iter"
)

// BrokenError names the first place at which a chain is not what was written.
type BrokenError struct {
	// Seq is the first bad place.
	Seq int64
	// Reason says what is wrong there.
	Reason string
}

// Error names the place and what is wrong.
func (e *BrokenError) Error() string {
	return fmt.Sprintf("audit chain broken at seq %d: %s", e.Seq, e.Reason)
}

// Verify reads a chain from Seq 1 on and returns its end. The error is
// *BrokenError when an entry was edited, deleted, inserted or moved; with a
// published head also when the end was cut off or the chain was written anew. A
// published head may be older than the chain. Errors of the sequence are
// returned as they are.
func Verify(chain iter.Seq2[Linked, error], published *Head) (Head, error) {
	v := Verifier{Published: published}
	for l, err := range chain {
		if err == nil {
			err = v.Add(l)
		}
		if err != nil {
			return v.Head(), err
		}
	}
	return v.Head(), v.Finish()
}

// Verifier checks a chain entry by entry, in order.
type Verifier struct {
	// Published is a head made known earlier; nil when there is none.
	Published *Head
	last      Link
}

// Head is the end of what was added so far.
func (v *Verifier) Head() Head {
	if v.last.Seq == 0 {
		return Head{Hash: Genesis}
	}
	return Head{Seq: v.last.Seq, Hash: v.last.Hash}
}

// Add checks the next entry of the chain.
func (v *Verifier) Add(l Linked) error {
	want := Next(v.last, l.Entry)
	switch {
	case l.Seq > want.Seq:
		return &BrokenError{want.Seq, fmt.Sprintf("missing: %d follows %d", l.Seq, v.last.Seq)}
	case l.Seq < want.Seq:
		return &BrokenError{want.Seq, fmt.Sprintf("out of order or inserted: %d follows %d", l.Seq, v.last.Seq)}
	case l.PrevHash != want.PrevHash:
		return &BrokenError{l.Seq, "does not follow the entry before it: one of the two was replaced, inserted or moved"}
	case l.Hash != want.Hash:
		return &BrokenError{l.Seq, "the entry is not what was written"}
	}
	v.last = want
	if p := v.Published; p != nil && p.Seq == want.Seq && p.Hash != want.Hash {
		return &BrokenError{want.Seq, "differs from the published head: the chain up to here was written anew"}
	}
	return nil
}

// Finish checks that the chain reaches as far as the published head.
func (v *Verifier) Finish() error {
	if p := v.Published; p != nil && v.last.Seq < p.Seq {
		return &BrokenError{v.last.Seq + 1, fmt.Sprintf("cut off: the published head is %d", p.Seq)}
	}
	return nil
}
