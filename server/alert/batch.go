package alert

import (
	"errors"
	"slices"
	"time"
)

// batch is the work of one delivery: occurrences are read once, changed in
// memory and written once, so that a repetition inside a delivery is seen.
type batch struct {
	tx     Tx
	source string
	group  string
	now    time.Time
	known  map[key]*Occurrence
	latest map[string]*Occurrence
	// order keeps the writes in the order of the delivery.
	order []key
	dirty map[key]bool
	count map[effect]int
	// fresh began and ended ended in this delivery.
	fresh, ended []key
	// notes are what people should know about how it was read.
	notes []string
}

type key struct {
	fingerprint string
	startsAt    int64
}

func keyOf(fingerprint string, startsAt time.Time) key { return key{fingerprint, startsAt.UnixMicro()} }

func newBatch(tx Tx, n Notification) *batch {
	return &batch{
		tx: tx, source: n.Source, group: n.GroupKey, now: tx.Now(),
		known: map[key]*Occurrence{}, latest: map[string]*Occurrence{},
		dirty: map[key]bool{}, count: map[effect]int{},
	}
}

// take runs the state machine over one alert.
func (b *batch) take(in Incoming) error {
	k := keyOf(in.Fingerprint, in.StartsAt)
	known, err := b.find(k, in)
	if err != nil {
		return err
	}
	var latest optional
	if known.Occurrence == nil {
		if latest, err = b.newest(in.Fingerprint); err != nil {
			return err
		}
	}
	o, e := next(known.Occurrence, latest.Occurrence, in, b.now)
	if known.Occurrence == nil {
		o.GroupKey, o.Source = b.group, b.source
		if old, ok := superseded(latest.Occurrence, in); ok {
			b.put(old)
			b.ended = append(b.ended, keyOf(old.Fingerprint, old.StartsAt))
		}
	}
	b.put(o)
	b.note(k, e, in)
	return nil
}

func (b *batch) note(k key, e effect, in Incoming) {
	b.count[e]++
	switch e {
	case effectNew:
		b.fresh = append(b.fresh, k)
		if _, note := severityOf(in.Labels); note != "" {
			b.addNote(note)
		}
	case effectResolved:
		b.ended = append(b.ended, k)
	case effectClosed, effectUpdated, effectDuplicate, effectStale:
	}
}

const maxNotes = 5

func (b *batch) addNote(note string) {
	if len(b.notes) < maxNotes && !slices.Contains(b.notes, note) {
		b.notes = append(b.notes, note)
	}
}

// find gives the occurrence of the same fingerprint and start, or none.
func (b *batch) find(k key, in Incoming) (optional, error) {
	if o, ok := b.known[k]; ok {
		return optional{o}, nil
	}
	return found(b.tx.Occurrence(in.Fingerprint, in.StartsAt))
}

// optional is an occurrence or none.
type optional struct{ *Occurrence }

// found turns an absent row into none.
func found(o Occurrence, err error) (optional, error) {
	if errors.Is(err, ErrNotFound) {
		return optional{}, nil
	}
	return optional{&o}, err
}

// newest gives the newest start of a fingerprint, or none.
func (b *batch) newest(fingerprint string) (optional, error) {
	if o, asked := b.latest[fingerprint]; asked {
		return optional{o}, nil
	}
	latest, err := found(b.tx.LatestOccurrence(fingerprint))
	if err != nil {
		return latest, err
	}
	if latest.Occurrence != nil {
		if seen, ok := b.known[keyOf(fingerprint, latest.StartsAt)]; ok {
			latest.Occurrence = seen
		}
	}
	b.latest[fingerprint] = latest.Occurrence
	return latest, nil
}

func (b *batch) put(o Occurrence) {
	k := keyOf(o.Fingerprint, o.StartsAt)
	if !b.dirty[k] {
		b.dirty[k] = true
		b.order = append(b.order, k)
	}
	b.known[k] = &o
	// Without having asked for the newest, this one may be an older one.
	if latest, asked := b.latest[o.Fingerprint]; asked && (latest == nil || !o.StartsAt.Before(latest.StartsAt)) {
		b.latest[o.Fingerprint] = &o
	}
}

// stillFresh are the occurrences that began in this delivery and were not ended by it.
func (b *batch) stillFresh() []Occurrence {
	var out []Occurrence
	for _, k := range b.fresh {
		if o := b.known[k]; o.Status == StatusFiring {
			out = append(out, *o)
		}
	}
	return out
}

// adopt gives the occurrences that are new to an incident, "" for none, and writes all.
func (b *batch) adopt(incidentID string) error {
	for _, k := range b.order {
		o := b.known[k]
		if o.ID == 0 {
			o.IncidentID = incidentID
		}
		if err := b.tx.SaveOccurrence(o); err != nil {
			return err
		}
	}
	return nil
}

// foreign are the groups of other routes that members of this delivery belong to.
func (b *batch) foreign() []string {
	var groups []string
	for _, k := range b.order {
		if o := b.known[k]; o.IncidentID != "" && o.GroupKey != b.group && !slices.Contains(groups, o.GroupKey) {
			groups = append(groups, o.GroupKey)
		}
	}
	return groups
}

// incidents are the ids of the incidents whose members changed.
func (b *batch) incidents() []string {
	var ids []string
	seen := map[string]bool{}
	for _, k := range b.order {
		if id := b.known[k].IncidentID; id != "" && !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	return ids
}
