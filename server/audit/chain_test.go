package audit_test

import (
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"holdfast/server/audit"
)

var t0 = time.Date(2026, 2, 3, 14, 0, 0, 123456000, time.UTC)

// wantFirst was worked out by another program from the description of Hash.
const wantFirst = "aad90d4a99beebc9f1e9307877420ad9f204a435697754be466765c8aa3ef2c1"

// chain makes n linked entries.
func chain(n int) []audit.Linked {
	var last audit.Link
	out := make([]audit.Linked, n)
	for i := range n {
		e := audit.Entry{
			ID: int64(100 - i), At: t0.Add(time.Duration(i) * time.Second), ActorID: "p1", ActorName: "Alice",
			Channel: "console", Verb: "action.run", Subject: fmt.Sprintf("run:%d", i), Decision: audit.Allowed,
			Reason: "because", Details: map[string]string{"a": "1", "b": "2"},
		}
		last = audit.Next(last, e)
		out[i] = audit.Linked{Entry: e, Link: last}
	}
	return out
}

func seq(list []audit.Linked) iter.Seq2[audit.Linked, error] {
	return func(yield func(audit.Linked, error) bool) {
		for _, l := range list {
			if !yield(l, nil) {
				return
			}
		}
	}
}

func headOf(list []audit.Linked) *audit.Head {
	last := list[len(list)-1]
	return &audit.Head{Seq: last.Seq, Hash: last.Hash}
}

func TestWholeChainVerifies(t *testing.T) {
	t.Parallel()
	list := chain(5)
	for _, published := range []*audit.Head{nil, headOf(list), headOf(list[:3]), {Hash: audit.Genesis}} {
		head, err := audit.Verify(seq(list), published)
		require.NoError(t, err)
		require.Equal(t, *headOf(list), head)
	}
	head, err := audit.Verify(seq(nil), nil)
	require.NoError(t, err)
	require.Equal(t, audit.Head{Hash: audit.Genesis}, head)
}

func TestVerifyNamesTheFirstBadPlace(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		tamper func([]audit.Linked) []audit.Linked
		seq    int64
		reason string
	}{
		{"edited", func(l []audit.Linked) []audit.Linked { l[2].Reason = "another"; return l }, 3, "not what was written"},
		{"edited and its hash redone", func(l []audit.Linked) []audit.Linked {
			l[2].Reason = "another"
			l[2].Hash = audit.Hash(l[2].Entry, 3, l[2].PrevHash)
			return l
		}, 4, "does not follow"},
		{"time moved by a microsecond", func(l []audit.Linked) []audit.Linked { l[0].At = l[0].At.Add(time.Microsecond); return l }, 1, "not what was written"},
		{"detail added", func(l []audit.Linked) []audit.Linked {
			l[4].Details = map[string]string{"a": "1", "b": "2", "c": "3"}
			return l
		}, 5, "not what was written"},
		{"deleted", func(l []audit.Linked) []audit.Linked { return slices.Delete(l, 1, 2) }, 2, "missing"},
		{"first deleted", func(l []audit.Linked) []audit.Linked { return l[1:] }, 1, "missing"},
		{"deleted and renumbered", func(l []audit.Linked) []audit.Linked {
			l = slices.Delete(l, 1, 2)
			for i := range l {
				l[i].Seq = int64(i + 1)
			}
			return l
		}, 2, "does not follow"},
		{"inserted", func(l []audit.Linked) []audit.Linked { return slices.Insert(l, 2, l[1]) }, 3, "inserted"},
		{"reordered", func(l []audit.Linked) []audit.Linked { l[1], l[2] = l[2], l[1]; return l }, 2, "missing"},
		{"swapped with their places kept", func(l []audit.Linked) []audit.Linked {
			l[1].Entry, l[2].Entry = l[2].Entry, l[1].Entry
			return l
		}, 2, "not what was written"},
		{"cut off", func(l []audit.Linked) []audit.Linked { return l[:3] }, 4, "cut off"},
		{"emptied", func([]audit.Linked) []audit.Linked { return nil }, 1, "cut off"},
		{"written anew", func(l []audit.Linked) []audit.Linked {
			l[1].Reason = "another"
			last := l[0].Link
			for i := 1; i < len(l); i++ {
				last = audit.Next(last, l[i].Entry)
				l[i].Link = last
			}
			return l
		}, 5, "written anew"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			list := chain(5)
			published := headOf(list)
			_, err := audit.Verify(seq(c.tamper(list)), published)
			var broken *audit.BrokenError
			require.ErrorAs(t, err, &broken)
			require.Equal(t, c.seq, broken.Seq)
			require.ErrorContains(t, err, c.reason)
			require.ErrorContains(t, err, fmt.Sprintf("seq %d", c.seq))
		})
	}
}

func TestErrorsOfTheSourceAreReturned(t *testing.T) {
	t.Parallel()
	wanted := fmt.Errorf("connection lost")
	_, err := audit.Verify(func(yield func(audit.Linked, error) bool) {
		_ = yield(chain(1)[0], nil) && yield(audit.Linked{}, wanted)
	}, nil)
	require.ErrorIs(t, err, wanted)
}

// The encoding is part of the promise: an export must verify with every later version.
func TestHashIsStable(t *testing.T) {
	t.Parallel()
	require.Equal(t, wantFirst, chain(1)[0].Hash)
	moved := chain(1)[0].Entry
	moved.At = moved.At.In(time.FixedZone("x", 3600)).Add(999 * time.Nanosecond)
	require.Equal(t, wantFirst, audit.Hash(moved, 1, audit.Genesis), "zone and nanoseconds do not count")
}

// Text that moves from one field to the next is another entry.
func TestFieldBordersCount(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String()
		a := audit.Entry{ActorID: text.Draw(t, "a"), ActorName: text.Draw(t, "b"), Details: map[string]string{text.Draw(t, "k"): text.Draw(t, "v")}}
		b := audit.Entry{ActorID: text.Draw(t, "a2"), ActorName: text.Draw(t, "b2"), Details: map[string]string{text.Draw(t, "k2"): text.Draw(t, "v2")}}
		same := a.ActorID == b.ActorID && a.ActorName == b.ActorName && fmt.Sprintf("%q", a.Details) == fmt.Sprintf("%q", b.Details)
		if (audit.Hash(a, 1, "") == audit.Hash(b, 1, "")) != same {
			t.Fatalf("%+v and %+v", a, b)
		}
		shifted := audit.Entry{ActorID: a.ActorID + a.ActorName, Details: a.Details}
		if a.ActorName != "" && audit.Hash(a, 1, "") == audit.Hash(shifted, 1, "") {
			t.Fatalf("the border between fields is lost: %+v", a)
		}
	})
}

// Any single change of any entry of any chain is found.
func TestAnyEditIsFound(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		list := chain(rapid.IntRange(1, 8).Draw(t, "n"))
		published := headOf(list)
		at := rapid.IntRange(0, len(list)-1).Draw(t, "at")
		edits := []func(*audit.Linked){
			func(l *audit.Linked) { l.ID++ },
			func(l *audit.Linked) { l.At = l.At.Add(-time.Microsecond) },
			func(l *audit.Linked) { l.ActorID += "x" },
			func(l *audit.Linked) { l.ActorName += "x" },
			func(l *audit.Linked) { l.Channel += "x" },
			func(l *audit.Linked) { l.Verb += "x" },
			func(l *audit.Linked) { l.Subject += "x" },
			func(l *audit.Linked) { l.Decision = audit.Denied },
			func(l *audit.Linked) { l.Reason += "x" },
			func(l *audit.Linked) { l.Details = nil },
			func(l *audit.Linked) { l.Hash = audit.Genesis },
			func(l *audit.Linked) { l.PrevHash = l.Hash },
			func(l *audit.Linked) { l.Seq++ },
		}
		rapid.SampledFrom(edits).Draw(t, "edit")(&list[at])
		if _, err := audit.Verify(seq(list), published); err == nil {
			t.Fatal("not found")
		}
	})
}
