package yamlfile

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"holdfast/strict"
)

type config struct {
	Name    string            `json:"name"`
	Size    int64             `json:"size"`
	Big     uint64            `json:"big"`
	Share   float64           `json:"share"`
	On      bool              `json:"on"`
	When    time.Time         `json:"when"`
	People  []person          `json:"people"`
	Labels  map[string]string `json:"labels"`
	Section section           `json:"section"`
}

type person struct {
	Role string `json:"role"`
}

type section struct {
	Deep map[string]person `json:"deep"`
}

func TestDecodeYAML(t *testing.T) {
	t.Parallel()
	var got config
	f, err := Decode("x.yaml", []byte(`
# a comment
name: "on"
size: 0x1F
big: 18446744073709551615
share: 1e-1
on: true
when: 2026-03-01T14:00:00+08:00
people: [{role: admin}, {role: yes}]
labels:
  multi: |
    two
    lines
  "true": "1"
section: {deep: {a.b: {role: x}}}
`), &got)
	require.NoError(t, err)
	require.Equal(t, "2026-03-01T06:00:00Z", got.When.UTC().Format(time.RFC3339))
	got.When = time.Time{}
	require.Equal(t, config{
		Name: "on", Size: 31, Big: 1<<64 - 1, Share: 0.1, On: true,
		People:  []person{{"admin"}, {"yes"}},
		Labels:  map[string]string{"multi": "two\nlines\n", "true": "1"},
		Section: section{map[string]person{"a.b": {"x"}}},
	}, got)
	require.True(t, json.Valid(f.JSON()))
	require.Equal(t, "x.yaml", f.Name())
}

func TestDecodeYAMLProblems(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		in   string
		want []string
	}{
		"unknown key":            {"name: a\nnmae: b\n", []string{`x.yaml:2: nmae: unknown key: did you mean "name"?`}},
		"several, by line":       {"size: a\npeople:\n  - role: x\n  - rol: y\non: 1\n", []string{"x.yaml:1: size: want a number, got text", `x.yaml:4: people[1].rol: unknown key: did you mean "role"?`, "x.yaml:5: on: want true or false, got a number"}},
		"number where text is":   {"name: 123\n", []string{"x.yaml:1: name: want text, got a number: put it in quotes"}},
		"list where text is":     {"name: [a]\n", []string{"x.yaml:1: name: want text, got a list"}},
		"duplicate key":          {"name: a\nsize: 1\nname: b\n", []string{"x.yaml:3: name: is given twice: first on line 1"}},
		"alias":                  {"labels: &l\n  a: b\npeople:\n  - *l\n", []string{"x.yaml:1: labels: has an anchor (&l)", "x.yaml:4: people[0]: is an alias (*l)"}},
		"anchored scalar":        {"name: &n a\n", []string{"x.yaml:1: name: has an anchor (&n)"}},
		"merge key":              {"section:\n  <<: {deep: {}}\n", []string{"x.yaml:2: section: has a merge key (<<)"}},
		"number as key":          {"labels:\n  1: a\n", []string{"x.yaml:2: labels: has the key 1 that is not text: put it in quotes"}},
		"bool as key":            {"labels: {true: a}\n", []string{"x.yaml:1: labels: has the key true that is not text"}},
		"list as key":            {"? [a]\n: b\n", []string{"has a key that is not text"}},
		"no value":               {"name:\nsize: ~\n", []string{"x.yaml:1: name: has no value", "x.yaml:2: size: has no value"}},
		"tag":                    {"name: !secret a\n", []string{"x.yaml:1: name: has the tag !secret"}},
		"tag on a map":           {"section: !x {}\n", []string{"x.yaml:1: section: has the tag !x"}},
		"binary":                 {"name: !!binary aGk=\n", []string{"x.yaml:1: name: has the tag !!binary"}},
		"infinite":               {"share: .inf\n", []string{"x.yaml:1: share: .inf is not a number that can be used"}},
		"two documents":          {"name: a\n---\nname: b\n", []string{"x.yaml:2: has a second document"}},
		"broken second document": {"name: a\n---\n\t}\n", []string{"x.yaml:"}},
		"empty":                  {"", []string{"x.yaml:1: is empty"}},
		"only a comment":         {"# nothing\n", []string{"x.yaml:1: is empty"}},
		"only a start":           {"---\n", []string{"x.yaml:1: is empty"}},
		"broken":                 {"name: a\n  b: c\n", []string{"x.yaml:2: is not YAML: mapping values are not allowed"}},
		"unclosed":               {"people: [\n", []string{"is not YAML"}},
		"not UTF-8":              {"name: \xff\n", []string{"is not YAML"}},
		"root is a list":         {"- a\n", []string{"x.yaml:1: want an object, got a list"}},
		"too deep":               {strings.Repeat("[", 70) + strings.Repeat("]", 70), []string{"is nested deeper than 64 levels"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var dst config
			_, err := Decode("x.yaml", []byte(tc.in), &dst)
			var errs strict.Errors
			require.ErrorAs(t, err, &errs)
			require.Len(t, errs, len(tc.want), "%v", err)
			for i, fe := range errs {
				require.Contains(t, fe.Error(), tc.want[i])
				require.Equal(t, "x.yaml", fe.File)
			}
		})
	}
}

func TestLocate(t *testing.T) {
	t.Parallel()
	f, err := Parse("x.yaml", []byte("name: a\npeople:\n  - role: x\n  -\n    role: y\nsection:\n  deep:\n    a.b: {role: z}\n"))
	require.NoError(t, err)
	for path, line := range map[string]int{
		"":                            1,
		"name":                        1,
		"people":                      2,
		"people[0]":                   3,
		"people[1].role":              5,
		"people[1].missing":           5,
		"people[7].role":              2,
		"section.deep":                7,
		`section.deep["a.b"]`:         8,
		`section.deep["a.b"].missing`: 8,
		`section.deep["c.d"].role`:    7,
		"nowhere.at.all":              1,
	} {
		require.Equal(t, line, f.Line(path), path)
	}
	got := f.Locate(strict.Errors{
		{Path: "section.deep", Message: "late"},
		{Path: "name", Message: "early"},
		{Path: "name", Message: "other", File: "y.yaml", Line: 3},
	})
	require.Equal(t, "x.yaml:1: name: early\ny.yaml:3: name: other\nx.yaml:7: section.deep: late", got.Error())

	require.NoError(t, f.LocateErr(nil))
	other := errors.New("other")
	require.Equal(t, other, f.LocateErr(other))
}

func TestLoad(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "c.yaml")
	require.NoError(t, os.WriteFile(path, []byte("name: a\n"), 0o600))
	var got config
	f, err := Load(path, &got)
	require.NoError(t, err)
	require.Equal(t, "a", got.Name)
	require.Equal(t, 1, f.Line("name"))

	_, err = Load(filepath.Join(dir, "none.yaml"), &got)
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = Load(dir, &got)
	require.ErrorContains(t, err, dir)

	big := filepath.Join(dir, "big.yaml")
	require.NoError(t, os.WriteFile(big, make([]byte, strict.MaxBytes+1), 0o600))
	_, err = Load(big, &got)
	require.ErrorContains(t, err, "big.yaml: is larger than")
}

// JSON is YAML: what is written as JSON means the same through both readers.
func TestJSONReadsTheSame(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[ -~äß漢\n]{0,12}`)
		want := config{
			Name: word.Draw(t, "name"), Size: rapid.Int64().Draw(t, "size"), Big: rapid.Uint64().Draw(t, "big"),
			Share: rapid.Float64Range(-1e300, 1e300).Draw(t, "share"), On: rapid.Bool().Draw(t, "on"),
			People: []person{{word.Draw(t, "role")}},
			Labels: rapid.MapOfN(word, word, 1, 3).Draw(t, "labels"),
		}
		want.Section.Deep = map[string]person{}
		data, err := json.Marshal(want)
		require.NoError(t, err)
		var got config
		_, err = Decode("x.json", data, &got)
		require.NoError(t, err)
		require.Equal(t, want, got)
	})
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		"name: a\npeople:\n  - role: x\n", "a: &x 1\nb: *x\n", "<<: {}\n", "---\n---\n", "? [a]\n: b\n", "!!binary x", "a: .nan\n", "- - - -\n", "{\"name\": \"a\"}", "a: 0o17\nb: 1_000\nc: 0b1\n", "\ufeffname: a\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var dst config
		file, err := Decode("x.yaml", data, &dst)
		if err == nil {
			if !json.Valid(file.JSON()) {
				t.Fatalf("not JSON: %q", file.JSON())
			}
			return
		}
		var errs strict.Errors
		if !errors.As(err, &errs) || len(errs) == 0 {
			t.Fatalf("not a list of problems: %v", err)
		}
		for _, fe := range errs {
			if fe.File != "x.yaml" {
				t.Fatalf("without a file: %v", fe)
			}
		}
	})
}
