package alert

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var ten = time.Date(2026, 2, 3, 10, 0, 0, 0, time.UTC)

func firing(at time.Time) Incoming {
	return Incoming{Fingerprint: "00000000000000aa", Status: StatusFiring, StartsAt: at, Labels: map[string]string{"alertname": "A"}}
}

func resolved(start, end time.Time) Incoming {
	in := firing(start)
	in.Status, in.EndsAt = StatusResolved, end
	return in
}

func TestNext(t *testing.T) {
	t.Parallel()
	open := first(firing(ten), ten)
	closed := end(open, ten.Add(time.Minute))
	now := ten.Add(time.Hour)
	for _, tt := range []struct {
		name          string
		known, latest *Occurrence
		in            Incoming
		want          effect
		status        Status
		ends          time.Time
	}{
		{"first firing", nil, nil, firing(ten), effectNew, StatusFiring, time.Time{}},
		{"R26: resolved before firing", nil, nil, resolved(ten, ten.Add(time.Minute)), effectClosed, StatusResolved, ten.Add(time.Minute)},
		{"resolved without an end ends now", nil, nil, resolved(ten, time.Time{}), effectClosed, StatusResolved, now},
		{"repeat", &open, nil, firing(ten), effectDuplicate, StatusFiring, time.Time{}},
		{"end", &open, nil, resolved(ten, ten.Add(time.Minute)), effectResolved, StatusResolved, ten.Add(time.Minute)},
		{"end before the start", &open, nil, resolved(ten, ten.Add(-time.Minute)), effectResolved, StatusResolved, ten.Add(time.Microsecond)},
		{"C23: stale firing", &closed, nil, firing(ten), effectStale, StatusResolved, ten.Add(time.Minute)},
		{"second end", &closed, nil, resolved(ten, ten.Add(2*time.Minute)), effectDuplicate, StatusResolved, ten.Add(time.Minute)},
		{"an earlier end counts", &closed, nil, resolved(ten, ten.Add(30*time.Second)), effectDuplicate, StatusResolved, ten.Add(30 * time.Second)},
		{"new episode", nil, &closed, firing(ten.Add(2 * time.Minute)), effectNew, StatusFiring, time.Time{}},
		{"start within the known episode", nil, &closed, firing(ten.Add(30 * time.Second)), effectStale, StatusResolved, ten.Add(time.Minute)},
		{"start at its end", nil, &closed, firing(ten.Add(time.Minute)), effectStale, StatusResolved, ten.Add(time.Minute).Add(time.Microsecond)},
		{"R26: firing with an older start", nil, &closed, firing(ten.Add(-time.Minute)), effectStale, StatusResolved, ten},
		{"older start while a newer fires", nil, &open, firing(ten.Add(-time.Minute)), effectStale, StatusResolved, ten},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, e := next(tt.known, tt.latest, tt.in, now)
			require.Equal(t, tt.want, e)
			require.Equal(t, tt.status, got.Status)
			require.Equal(t, tt.ends, got.EndsAt)
			require.Equal(t, now, got.LastReceivedAt)
			if tt.status == StatusResolved {
				require.Positive(t, got.EndsAt.Sub(got.StartsAt))
			}
		})
	}
}

func TestC25_AnnotationsUpdateOneMember(t *testing.T) {
	t.Parallel()
	in := firing(ten)
	in.Annotations = map[string]string{"value": "5"}
	o, e := next(nil, nil, in, ten)
	require.Equal(t, effectNew, e)
	in.Annotations = map[string]string{"value": "6"}
	o, e = next(&o, nil, in, ten.Add(time.Minute))
	require.Equal(t, effectUpdated, e)
	require.Equal(t, "6", o.Annotations["value"])
	require.Equal(t, 1, o.Repeats)
}

func TestC26_RepeatsKeepAnAlertFromBecomingQuiet(t *testing.T) {
	t.Parallel()
	o, _ := next(nil, nil, firing(ten), ten)
	for i := 1; i <= 20; i++ {
		now := ten.Add(time.Duration(i) * 30 * time.Second)
		var e effect
		o, e = next(&o, nil, firing(ten), now)
		require.Equal(t, effectDuplicate, e)
		require.Equal(t, now, o.LastReceivedAt)
		require.False(t, o.Quiet(now, 5*time.Minute))
	}
	require.Equal(t, 20, o.Repeats)
	last := o.LastReceivedAt
	require.False(t, o.Quiet(last.Add(5*time.Minute), 5*time.Minute))
	require.True(t, o.Quiet(last.Add(5*time.Minute+time.Microsecond), 5*time.Minute))
	require.False(t, end(o, last).Quiet(last.Add(time.Hour), 5*time.Minute), "what is over is not quiet")
}

// memory holds occurrences for a batch.
type memory struct {
	Tx
	now  time.Time
	rows map[key]Occurrence
}

func (m *memory) Now() time.Time { return m.now }

func (m *memory) Occurrence(fingerprint string, startsAt time.Time) (Occurrence, error) {
	if o, ok := m.rows[keyOf(fingerprint, startsAt)]; ok {
		return o, nil
	}
	return Occurrence{}, ErrNotFound
}

func (m *memory) LatestOccurrence(fingerprint string) (Occurrence, error) {
	var latest Occurrence
	for _, o := range m.rows {
		if o.Fingerprint == fingerprint && !o.StartsAt.Before(latest.StartsAt) {
			latest = o
		}
	}
	if latest.Fingerprint == "" {
		return latest, ErrNotFound
	}
	return latest, nil
}

func (m *memory) SaveOccurrence(o *Occurrence) error {
	if o.ID == 0 {
		o.ID = int64(len(m.rows) + 1)
	}
	m.rows[keyOf(o.Fingerprint, o.StartsAt)] = *o
	return nil
}

// deliver takes notifications, each a batch of its own.
func deliver(t *rapid.T, notifications [][]Incoming) *memory {
	m := &memory{now: ten.Add(24 * time.Hour), rows: map[key]Occurrence{}}
	for _, alerts := range notifications {
		m.now = m.now.Add(time.Second)
		b := newBatch(m, Notification{GroupKey: "g"})
		for _, in := range alerts {
			if err := b.take(in); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.adopt(""); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// endState is what must not depend on the order: the statuses, and the ends that
// a source reported.
func endState(m *memory, reported map[key]bool) map[string]string {
	out := map[string]string{}
	for k, o := range m.rows {
		text := string(o.Status)
		if reported[k] {
			text += " until " + o.EndsAt.Format(time.RFC3339Nano)
		}
		out[fmt.Sprintf("%s %d", k.fingerprint, k.startsAt)] = text
	}
	return out
}

func TestPropertyOrderAndRepetitionDoNotMatter(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var ordered []Incoming
		reported := map[key]bool{}
		for f := range rapid.IntRange(1, 3).Draw(t, "fingerprints") {
			at := ten
			episodes := rapid.IntRange(1, 4).Draw(t, "episodes")
			for range episodes {
				in := firing(at)
				in.Fingerprint = fmt.Sprintf("%016x", f)
				over := in
				at = at.Add(time.Duration(rapid.IntRange(1, 5).Draw(t, "minutes")) * time.Minute)
				over.Status, over.EndsAt = StatusResolved, at
				ordered = append(ordered, in)
				if rapid.Bool().Draw(t, "end is delivered") {
					ordered = append(ordered, over)
					reported[keyOf(in.Fingerprint, in.StartsAt)] = true
				}
				at = at.Add(time.Duration(rapid.IntRange(1, 5).Draw(t, "pause")) * time.Minute)
			}
		}
		inOrder := make([][]Incoming, len(ordered))
		for i, in := range ordered {
			inOrder[i] = []Incoming{in}
		}
		want := endState(deliver(t, inOrder), reported)

		twice := append(slices.Clone(ordered), rapid.SliceOf(rapid.SampledFrom(ordered)).Draw(t, "repeated")...)
		shuffled := rapid.Permutation(twice).Draw(t, "order")
		var mixed [][]Incoming
		for len(shuffled) > 0 {
			n := rapid.IntRange(1, len(shuffled)).Draw(t, "together")
			mixed = append(mixed, shuffled[:n])
			shuffled = shuffled[n:]
		}
		if diff := cmp.Diff(want, endState(deliver(t, mixed), reported)); diff != "" {
			t.Fatalf("another order ends differently (-ordered +mixed):\n%s", diff)
		}
	})
}
