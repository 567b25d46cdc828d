package controlclient

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

// events reads all events of text, arriving in pieces of one byte.
func events(text string) ([]event, error) {
	r := newEventReader(iotest.OneByteReader(strings.NewReader(text)), func() {})
	var out []event
	for {
		e, err := r.next()
		if err != nil {
			return out, err
		}
		out = append(out, e)
	}
}

func TestEventReader(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		in   string
		want []event
	}{
		"one":                 {"id: l:1\nevent: policy\ndata: {}\n\n", []event{{"policy", "l:1", []byte("{}")}}},
		"CRLF":                {"event: policy\r\ndata: {}\r\n\r\n", []event{{"policy", "", []byte("{}")}}},
		"no space":            {"event:policy\ndata:{}\n\n", []event{{"policy", "", []byte("{}")}}},
		"only one space goes": {"data:  x\n\n", []event{{"", "", []byte(" x")}}},
		"several data lines":  {"data: a\ndata:\ndata: b\n\n", []event{{"", "", []byte("a\n\nb")}}},
		"comments between":    {": hi\n\nevent: a\n: hi\ndata: 1\n\n: bye\n\n", []event{{"a", "", []byte("1")}}},
		"no data, no event":   {"event: a\nid: 1\n\ndata: x\n\n", []event{{"", "", []byte("x")}}},
		"unknown fields":      {"retry: 5\nfoo\ndata: x\n\n", []event{{"", "", []byte("x")}}},
		"two":                 {"data: 1\n\ndata: 2\n\n", []event{{"", "", []byte("1")}, {"", "", []byte("2")}}},
		"cut off":             {"data: 1\n\ndata: 2\n", []event{{"", "", []byte("1")}}},
		"split characters":    {"data: 你好\n\n", []event{{"", "", []byte("你好")}}},
		"empty":               {"", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := events(tc.in)
			require.ErrorIs(t, err, io.EOF)
			require.Empty(t, cmp.Diff(tc.want, got, cmp.AllowUnexported(event{})))
		})
	}
}

func TestEventReaderIsBounded(t *testing.T) {
	t.Parallel()
	endless := map[string]io.Reader{
		"one line":   io.MultiReader(strings.NewReader("data: "), repeat("x")),
		"many lines": repeat("data: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n"),
		"many names": repeat("event: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n"),
	}
	for name, in := range endless {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := newEventReader(in, func() {}).next()
			require.ErrorContains(t, err, "an event is larger than")
		})
	}
}

// repeat is an endless reader.
func repeat(s string) io.Reader { return &repeater{s: s} }

type repeater struct {
	s   string
	pos int
}

func (r *repeater) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = r.s[r.pos%len(r.s)]
		r.pos++
	}
	return len(p), nil
}

func TestCommentsAreHeard(t *testing.T) {
	t.Parallel()
	heard := 0
	r := newEventReader(strings.NewReader(": a\n\n: b\n\n"), func() { heard++ })
	_, err := r.next()
	require.ErrorIs(t, err, io.EOF)
	require.Equal(t, 4, heard)
}

func FuzzEventReader(f *testing.F) {
	f.Add("id: l:1\nevent: policy\ndata: {}\n\n")
	f.Add(": c\r\n\r\ndata\n\n")
	f.Fuzz(func(t *testing.T, in string) {
		got, err := events(in)
		if !errors.Is(err, io.EOF) {
			t.Fatalf("a short text ends with EOF: %v", err)
		}
		// Whole or in pieces, the events are the same.
		r := newEventReader(strings.NewReader(in), func() {})
		for _, want := range got {
			e, err := r.next()
			if err != nil || cmp.Diff(want, e, cmp.AllowUnexported(event{})) != "" {
				t.Fatalf("%v, want %v: %v", e, want, err)
			}
		}
	})
}
