package strict

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// ratio reads itself and refuses what is out of range.
type ratio float64

func (r *ratio) UnmarshalJSON(b []byte) error {
	var f float64
	if err := json.Unmarshal(b, &f); err != nil || f < 0 || f > 1 {
		return errors.New("want a ratio from 0 to 1")
	}
	*r = ratio(f)
	return nil
}

// section reads itself strictly, so that its problems have paths of their own.
type section struct{ inner inner }

func (s *section) UnmarshalJSON(b []byte) error { return DecodeJSON(b, &s.inner) }

type inner struct {
	Size int `json:"size"`
}

type base struct {
	Shared string `json:"shared,omitempty"`
}

type everything struct {
	base
	Name    string            `json:"name"`
	On      bool              `json:"on,omitempty"`
	Count   int8              `json:"count,omitzero"`
	Whole   uint16            `json:"whole"`
	Share   float64           `json:"share"`
	Map     map[string]*inner `json:"map"`
	List    []inner           `json:"list"`
	Pair    [2]int            `json:"pair"`
	Pointer *inner            `json:"pointer"`
	Raw     json.RawMessage   `json:"raw"`
	When    time.Time         `json:"when"`
	Ratio   ratio             `json:"ratio"`
	Addr    netip.Addr        `json:"addr"`
	Any     any               `json:"any"`
	Bytes   []byte            `json:"bytes"`
	Section section           `json:"section"`
	Hidden  string            `json:"-"`
	Plain   string
}

func TestDecodeEverything(t *testing.T) {
	t.Parallel()
	var got everything
	err := DecodeJSON([]byte(`{
		"shared": "s", "name": "n\u00e9\n", "on": true, "count": -8, "whole": 65535, "share": 0.25,
		"map": {"a": {"size": 1}}, "list": [{"size": 2}, {}], "pair": [3, 4], "pointer": {"size": 5},
		"raw": {"kept" : [1, null]}, "when": "2026-03-01T14:00:00+08:00", "ratio": 0.5, "addr": "::1",
		"any": {"x": [1, null, "t"]}, "bytes": "aGk=", "section": {"size": 6}, "Plain": "p"
	}`), &got)
	require.NoError(t, err)
	want := everything{
		base: base{Shared: "s"}, Name: "né\n", On: true, Count: -8, Whole: 65535, Share: 0.25,
		Map: map[string]*inner{"a": {1}}, List: []inner{{2}, {}}, Pair: [2]int{3, 4}, Pointer: &inner{5},
		Raw: json.RawMessage(`{"kept" : [1, null]}`), When: got.When, Ratio: 0.5, Addr: netip.IPv6Loopback(),
		Any: map[string]any{"x": []any{1.0, nil, "t"}}, Bytes: []byte("hi"), Section: section{inner{6}}, Plain: "p",
	}
	require.Equal(t, "2026-03-01T06:00:00Z", got.When.UTC().Format(time.RFC3339))
	require.Empty(t, cmp.Diff(want, got, cmp.AllowUnexported(everything{}, section{}), cmp.Comparer(func(a, b netip.Addr) bool { return a == b })))
}

func TestDecodeProblems(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		in   string
		want []string // "path: message"
	}{
		"unknown key with a near name":  {`{"nmae": "x"}`, []string{`nmae: unknown key: did you mean "name"?`}},
		"unknown key in another style":  {`{"POIN_TER": {}}`, []string{`POIN_TER: unknown key: did you mean "pointer"?`}},
		"unknown key with nothing near": {`{"list": [{"zzzzzzzz": 1}]}`, []string{`list[0].zzzzzzzz: unknown key: known here are "size"`}},
		"key in other case":             {`{"Name": "x"}`, []string{`Name: unknown key: did you mean "name"?`}},
		"hidden field":                  {`{"Hidden": "x", "-": 1}`, []string{"Hidden: unknown key", "-: unknown key"}},
		"text for number":               {`{"share": "high"}`, []string{"share: want a number, got text"}},
		"number for text":               {`{"name": 7}`, []string{"name: want text, got a number"}},
		"text for bool":                 {`{"on": "yes"}`, []string{"on: want true or false, got text"}},
		"bool for list":                 {`{"list": true}`, []string{"list: want a list, got true"}},
		"list for object":               {`{"pointer": []}`, []string{"pointer: want an object, got a list"}},
		"object for text":               {`{"name": {}}`, []string{"name: want text, got an object"}},
		"fraction for whole":            {`{"whole": 1.5}`, []string{"whole: want a whole number, got 1.5"}},
		"exponent for whole":            {`{"whole": 1e2}`, []string{"whole: want a whole number, got 1e2"}},
		"negative for unsigned":         {`{"whole": -1}`, []string{"whole: want a number of 0 or more, got -1"}},
		"too large":                     {`{"count": 128, "whole": 65536, "share": 1e999}`, []string{"count: 128 is out of range", "whole: 65536 is out of range", "share: 1e999 is out of range"}},
		"null":                          {`{"name": null, "pointer": null, "list": [null], "raw": null, "any": null}`, []string{"name: is null: give a value or leave the key out", "pointer: is null: give a value or leave the key out", "list[0]: is null: give a value or leave the key out"}},
		"null document":                 {`null`, []string{": is null: give a value or leave the key out"}},
		"duplicate key":                 {`{"name": "a", "name": "b"}`, []string{"name: is given twice"}},
		"duplicate key by escape":       {`{"name": "a", "n\u0061me": "b"}`, []string{"name: is given twice"}},
		"duplicate key in raw":          {`{"raw": {"k": {"a": 1, "a": 2}}}`, []string{"raw.k.a: is given twice"}},
		"own error gets the path":       {`{"ratio": 1.5}`, []string{"ratio: want a ratio from 0 to 1"}},
		"own problems get the path":     {`{"section": {"sise": 1}}`, []string{`section.sise: unknown key: did you mean "size"?`}},
		"own text error":                {`{"addr": "home"}`, []string{"addr: ParseAddr"}},
		"wrong kind for own text":       {`{"addr": 1}`, []string{"addr: want text, got a number"}},
		"time without zone":             {`{"when": "2026-03-01T14:00:00"}`, []string{`when: "2026-03-01T14:00:00" is not a time: want a time with date and zone`}},
		"time as number":                {`{"when": 1}`, []string{"when: want a time with date and zone"}},
		"not base64":                    {`{"bytes": "***"}`, []string{"bytes: is not base64"}},
		"array of wrong length":         {`{"pair": [1]}`, []string{"pair: want a list of 2, got 1"}},
		"key that needs quotes":         {`{"map": {"a.b": {"size": "x"}}}`, []string{`map["a.b"].size: want a number, got text`}},
		"all problems at once, in order": {
			`{"whole": "a", "list": [{"size": 1}, {"size": "b"}], "extra": 1, "name": 2}`,
			[]string{"whole: want a number", "list[1].size: want a number", "extra: unknown key", "name: want text"},
		},
		"empty":           {"", []string{": document is empty"}},
		"white space":     {" \n", []string{": document is not JSON"}},
		"trailing data":   {"{}\n{}", []string{": document is not JSON: invalid character '{' after top-level value at line 2, column 1"}},
		"broken":          {"{\n  \"name\": }", []string{": document is not JSON: invalid character '}' looking for beginning of value at line 2, column 11"}},
		"cut off":         {`{"name": "x`, []string{": document is not JSON: unexpected end of JSON input"}},
		"not UTF-8":       {"{\"name\": \"\xff\"}", []string{": document has a byte at line 1, column 11 that is not UTF-8"}},
		"wrong root kind": {"[]", []string{": want an object, got a list"}},
		"too deep":        {strings.Repeat("[", 100) + strings.Repeat("]", 100), []string{"is nested deeper than 64 levels"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var dst everything
			err := DecodeJSON([]byte(tc.in), &dst)
			var errs Errors
			require.ErrorAs(t, err, &errs)
			require.Len(t, errs, len(tc.want), "%v", err)
			for i, fe := range errs {
				require.Contains(t, fe.Path+": "+fe.Message, tc.want[i])
			}
		})
	}
}

func TestDecodeKeepsDefaults(t *testing.T) {
	t.Parallel()
	dst := everything{Name: "default", Pointer: &inner{Size: 9}, Map: map[string]*inner{"old": {1}}}
	require.NoError(t, DecodeJSON([]byte(`{"pointer": {}, "map": {"new": {}}}`), &dst))
	require.Equal(t, "default", dst.Name)
	require.Equal(t, 9, dst.Pointer.Size)
	require.Len(t, dst.Map, 2)
}

func TestDecodeBounds(t *testing.T) {
	t.Parallel()
	var dst map[string]int
	err := DecodeJSON(make([]byte, MaxBytes+1), &dst)
	require.ErrorContains(t, err, "at most 8388608 are read")

	var b strings.Builder
	b.WriteString("{")
	for i := range 5000 {
		fmt.Fprintf(&b, "\"k%d\": \"text\",", i)
	}
	b.WriteString("\"last\": 1}")
	var errs Errors
	require.ErrorAs(t, DecodeJSON([]byte(b.String()), &dst), &errs)
	require.Len(t, errs, MaxErrors+1)
	require.Contains(t, errs[MaxErrors].Message, "the rest is not shown")
}

func TestDecodeIntoNothing(t *testing.T) {
	t.Parallel()
	require.ErrorContains(t, DecodeJSON([]byte("{}"), everything{}), "non-nil pointer")
	require.ErrorContains(t, DecodeJSON([]byte("{}"), (*everything)(nil)), "non-nil pointer")
	require.ErrorContains(t, DecodeJSON([]byte("{}"), nil), "non-nil pointer")
	var channel struct {
		C chan int       `json:"c"`
		M map[int]string `json:"m"`
		E error          `json:"e"`
	}
	require.ErrorContains(t, DecodeJSON([]byte(`{"c": 1}`), &channel), "no way to fill chan int")
	require.ErrorContains(t, DecodeJSON([]byte(`{"m": {}}`), &channel), "no way to fill map[int]string")
	require.ErrorContains(t, DecodeJSON([]byte(`{"e": "x"}`), &channel), "no way to fill error")
}

// What encoding/json writes from a struct is read back as it was.
func TestDecodeReadsWhatMarshalWrites(t *testing.T) {
	t.Parallel()
	type value struct {
		Text  string             `json:"text"`
		Whole int64              `json:"whole"`
		Share float64            `json:"share"`
		Flags map[string]bool    `json:"flags,omitempty"`
		Parts []inner            `json:"parts,omitempty"`
		More  map[string][]inner `json:"more,omitempty"`
	}
	gen := rapid.Custom(func(t *rapid.T) value {
		text := rapid.String()
		parts := rapid.SliceOfN(rapid.Map(rapid.Int(), func(i int) inner { return inner{i} }), 1, 3)
		return value{
			Text: text.Draw(t, "text"), Whole: rapid.Int64().Draw(t, "whole"),
			Share: rapid.Float64Range(-math.MaxFloat64, math.MaxFloat64).Draw(t, "share"),
			Flags: rapid.MapOfN(text, rapid.Bool(), 1, 3).Draw(t, "flags"),
			Parts: parts.Draw(t, "parts"),
			More:  rapid.MapOfN(text, parts, 1, 3).Draw(t, "more"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		want := gen.Draw(t, "value")
		data, err := json.Marshal(want)
		require.NoError(t, err)
		var got value
		require.NoError(t, DecodeJSON(data, &got))
		require.Equal(t, want, got)
	})
}

func FuzzDecodeJSON(f *testing.F) {
	for _, seed := range []string{
		`{"name":"a","list":[{"size":1}],"map":{"a.b":{"size":2}},"raw":[null],"when":"2026-03-01T14:00:00Z"}`,
		`{"name":null}`, `[[[[`, `{"a":1,"a":2}`, `"\ud800"`, `-0.0e-1`, "\xff", ``, `{"section":{"size":{}}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var dst everything
		err := DecodeJSON(data, &dst)
		if err == nil {
			if !json.Valid(data) {
				t.Fatalf("accepted what is not JSON: %q", data)
			}
			var again everything
			if err := json.Unmarshal(data, &again); err != nil {
				t.Fatalf("accepted what encoding/json refuses: %v", err)
			}
			return
		}
		var errs Errors
		if !errors.As(err, &errs) || len(errs) == 0 || len(errs) > MaxErrors+1 {
			t.Fatalf("not a bounded list of problems: %v", err)
		}
	})
}
