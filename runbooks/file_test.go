package runbooks_test

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"holdfast/actions"
	"holdfast/actions/builtin"
	"holdfast/gpuguard/signals"
	"holdfast/runbooks"
	"holdfast/strict"
)

var update = flag.Bool("update", false, "write the golden files anew")

// everyKind has a step of each kind and every key there is.
const everyKind = `id: all
title: Everything
summary: All there is.
owner: inference
params:
  - {name: dependency, kind: dependency, required: true, help: Which one., from_labels: [dependency, service]}
  - {name: rate, kind: number, default: "40", help: How many., unit: requests/s}
  - {name: hint, kind: text, help: Anything.}
steps:
  - id: limit
    phase: isolate
    title: Limit to ${rate}
    kind: action
    command: Limit it.
    expect: Fewer errors.
    action: set_rate_limit
    params: {target: global, requests_per_second: "${rate}"}
    ttl: 10m
    automatic: true
    criterion: {query: 'errors{dependency="${dependency}"} + ${rate}', is: "<", value: 0.05, unit: ratio}
    timeout: 2m
    on_failure: continue
  - id: look
    phase: locate
    title: Look
    kind: check
    command: Look at it.
    expect: Fine.
    criterion: {query: up, is: ">=", value: 1}
  - id: choose
    phase: locate
    title: Choose
    kind: decision
    command: Choose.
    expect: A choice.
    question: Is it ${dependency}?
    choices:
      - {id: yes-it-is, label: It is, goto: rest}
      - {id: no-it-is-not, label: It is not}
    timeout: 5m
    on_failure: stop
  - id: tell
    phase: locate
    title: Tell
    kind: note
    command: Read.
    expect: Nothing.
    text: Told ${hint}.
  - id: rest
    phase: restore
    title: Rest
    kind: wait
    command: Wait.
    expect: Warm.
    wait: 90s
`

func TestParseReadsEveryKey(t *testing.T) {
	t.Parallel()
	got, err := runbooks.Parse("all.yaml", []byte(everyKind))
	require.NoError(t, err)
	require.Len(t, got.Version, 64)
	want := runbooks.Runbook{
		ID: "all", Version: got.Version, Title: "Everything", Summary: "All there is.", Owner: "inference",
		Params: []runbooks.Param{
			{Name: "dependency", Kind: "dependency", Required: true, Help: "Which one.", FromLabels: []string{"dependency", "service"}},
			{Name: "rate", Kind: "number", Default: "40", Help: "How many.", Unit: "requests/s"},
			{Name: "hint", Kind: "text", Help: "Anything."},
		},
		Steps: []runbooks.Step{
			{
				ID: "limit", Phase: runbooks.PhaseIsolate, Title: "Limit to ${rate}", Kind: runbooks.StepAction, Command: "Limit it.", Expect: "Fewer errors.",
				Criterion: &signals.Criterion{Query: `errors{dependency="${dependency}"} + ${rate}`, Is: signals.Below, Value: 0.05, Unit: "ratio"},
				Timeout:   2 * time.Minute, OnFailure: runbooks.FailContinue, Action: "set_rate_limit",
				Params: map[string]string{"target": "global", "requests_per_second": "${rate}"}, TTL: 10 * time.Minute, Automatic: true,
			},
			{
				ID: "look", Phase: runbooks.PhaseLocate, Title: "Look", Kind: runbooks.StepCheck, Command: "Look at it.", Expect: "Fine.",
				Criterion: &signals.Criterion{Query: "up", Is: signals.AtLeast, Value: 1}, Timeout: time.Minute, OnFailure: runbooks.FailAsk,
			},
			{
				ID: "choose", Phase: runbooks.PhaseLocate, Title: "Choose", Kind: runbooks.StepDecision, Command: "Choose.", Expect: "A choice.",
				Timeout: 5 * time.Minute, OnFailure: runbooks.FailStop, Question: "Is it ${dependency}?",
				Choices: []runbooks.Choice{{ID: "yes-it-is", Label: "It is", Goto: "rest"}, {ID: "no-it-is-not", Label: "It is not"}},
			},
			{ID: "tell", Phase: runbooks.PhaseLocate, Title: "Tell", Kind: runbooks.StepNote, Command: "Read.", Expect: "Nothing.", OnFailure: runbooks.FailAsk, Text: "Told ${hint}."},
			{ID: "rest", Phase: runbooks.PhaseRestore, Title: "Rest", Kind: runbooks.StepWait, Command: "Wait.", Expect: "Warm.", OnFailure: runbooks.FailAsk, Wait: 90 * time.Second},
		},
	}
	require.Empty(t, cmp.Diff(want, got))
}

func TestTheVersionFollowsTheContent(t *testing.T) {
	t.Parallel()
	first, err := runbooks.Parse("a.yaml", []byte(everyKind))
	require.NoError(t, err)
	commented, err := runbooks.Parse("b.yaml", []byte("# a comment\n"+everyKind))
	require.NoError(t, err)
	require.Equal(t, first.Version, commented.Version, "comments and file names are not content")
	for _, change := range []string{"wait: 91s", "wait: 90s\n    # x"} {
		other, err := runbooks.Parse("a.yaml", []byte(strings.Replace(everyKind, "wait: 90s", change, 1)))
		require.NoError(t, err)
		require.Equal(t, change != "wait: 91s", first.Version == other.Version, change)
	}
}

func TestARunbookSurvivesJSON(t *testing.T) {
	t.Parallel()
	book, err := runbooks.Parse("all.yaml", []byte(everyKind))
	require.NoError(t, err)
	raw, err := json.Marshal(book)
	require.NoError(t, err)
	require.Contains(t, string(raw), `"timeout":"2m0s"`)
	var back runbooks.Runbook
	require.NoError(t, json.Unmarshal(raw, &back))
	require.Empty(t, cmp.Diff(book, back), "durations are kept: stores freeze runbooks as JSON")
}

// edit replaces the first of two texts in everyKind.
func edit(old, replacement string) string { return strings.Replace(everyKind, old, replacement, 1) }

func TestParseRefusesWithLineAndKey(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		in   string
		want []string
	}{
		"unknown key":                   {edit("owner:", "onwer:"), []string{`x.yaml:4: onwer: unknown key: did you mean "owner"?`}},
		"unknown key of a step":         {edit("command: Look at it.", "comand: Look at it."), []string{"x.yaml:23: steps[1].command: is missing", `x.yaml:27: steps[1].comand: unknown key: did you mean "command"?`}},
		"wrong type is said once":       {edit("title: Look", "title: [Look]"), []string{"x.yaml:25: steps[1].title: want text, got a list"}},
		"number as parameter":           {edit(`"${rate}"}`, `40}`), []string{"x.yaml:17: steps[0].params.requests_per_second: want text, got a number: put it in quotes"}},
		"bare duration":                 {edit("ttl: 10m", "ttl: 600"), []string{"x.yaml:18: steps[0].ttl: want a duration as text with a unit"}},
		"broken duration":               {edit("ttl: 10m", "ttl: ten"), []string{`x.yaml:18: steps[0].ttl: "ten" is not a duration`}},
		"duration too long":             {edit("wait: 90s", "wait: 25h"), []string{"x.yaml:55: steps[4].wait: is 25h0m0s: want 1s to 24h0m0s"}},
		"duration too short":            {edit("timeout: 5m", "timeout: -1s"), []string{"x.yaml:40: steps[2].timeout: is -1s"}},
		"no id":                         {edit("id: all\n", ""), []string{"x.yaml:1: id: is missing"}},
		"odd id":                        {edit("id: look", "id: Look"), []string{`x.yaml:23: steps[1].id: is "Look": want lower-case`}},
		"id twice":                      {edit("id: look", "id: limit"), []string{`x.yaml:23: steps[1].id: "limit" is the id of steps[0] as well`}},
		"id of the end":                 {edit("id: look", "id: end"), []string{`x.yaml:23: steps[1].id: is "end", which stands for the end`}},
		"no steps":                      {"id: a\ntitle: A\nsummary: S\nsteps: []\n", []string{"x.yaml:4: steps: are 0: want 1 to 50"}},
		"phase back":                    {edit("phase: restore", "phase: isolate"), []string{`x.yaml:50: steps[4].phase: is "isolate" after "locate": the order is isolate, locate, restore`}},
		"unknown phase":                 {edit("phase: restore", "phase: restor"), []string{`x.yaml:50: steps[4].phase: is "restor": did you mean "restore"?`}},
		"unknown kind of step":          {edit("kind: wait", "kind: sleep"), []string{`x.yaml:52: steps[4].kind: is "sleep": want one of action, check, decision, note, wait`}},
		"no criterion":                  {edit("    criterion: {query: up, is: \">=\", value: 1}\n", ""), []string{"x.yaml:23: steps[1].criterion: is missing: a step of kind check needs it"}},
		"no action":                     {edit("    action: set_rate_limit\n", ""), []string{"x.yaml:10: steps[0].action: is missing"}},
		"no choices":                    {edit("    choices:\n      - {id: yes-it-is, label: It is, goto: rest}\n      - {id: no-it-is-not, label: It is not}\n", ""), []string{"x.yaml:30: steps[2].choices: is missing"}},
		"key of another kind":           {edit("wait: 90s", "wait: 90s\n    timeout: 3s\n    text: x\n    automatic: true"), []string{"x.yaml:56: steps[4].timeout: has no use in a step of kind wait", "x.yaml:57: steps[4].text: has no use", "x.yaml:58: steps[4].automatic: has no use"}},
		"on_failure of a note":          {edit("text: Told", "on_failure: stop\n    text: Told"), []string{"x.yaml:48: steps[3].on_failure: has no use in a step of kind note"}},
		"unknown on_failure":            {edit("on_failure: stop", "on_failure: retry"), []string{`x.yaml:41: steps[2].on_failure: is "retry": want one of ask, stop, continue`}},
		"comparison":                    {edit(`is: ">="`, `is: "="`), []string{`x.yaml:29: steps[1].criterion.is: is "="`}},
		"no value":                      {edit(`, value: 1}`, `}`), []string{"x.yaml:29: steps[1].criterion.value: is missing"}},
		"no query":                      {edit("query: up", `query: " "`), []string{"x.yaml:29: steps[1].criterion.query: is missing"}},
		"unknown reference":             {edit("title: Limit to ${rate}", "title: Limit to ${rat}"), []string{`x.yaml:12: steps[0].title: no parameter is named "rat": did you mean "rate"?`}},
		"unknown reference, query":      {edit("query: up", "query: 'up{a=\"${nothing}\"}'"), []string{`x.yaml:29: steps[1].criterion.query: no parameter is named "nothing"`}},
		"unknown reference, parameter":  {edit("target: global", "target: 'route:${nothing}'"), []string{`x.yaml:17: steps[0].params.target: no parameter is named "nothing"`}},
		"unknown reference, label":      {edit("label: It is not", "label: 'It is ${nothing}'"), []string{"x.yaml:39: steps[2].choices[1].label: no parameter"}},
		"broken reference":              {edit("Told ${hint}.", "Told ${hint."), []string{`x.yaml:48: steps[3].text: has a "${" that begins no reference`}},
		"empty value in a query":        {edit("query: up", "query: 'up{a=\"${hint}\"}'"), []string{"x.yaml:29: steps[1].criterion.query: uses ${hint}, which may be empty"}},
		"empty value in a target":       {edit("target: global", "target: 'route:${hint}'"), []string{"x.yaml:17: steps[0].params.target: uses ${hint}, which may be empty"}},
		"name outside quotes":           {edit("query: up", "query: 'up + ${dependency}'"), []string{"x.yaml:29: steps[1].criterion.query: has ${dependency} outside of quotes"}},
		"name in single quotes":         {edit("query: up", "query: \"up{a='${dependency}'}\""), []string{"x.yaml:29: steps[1].criterion.query: has ${dependency} in single quotes"}},
		"name in backquotes":            {edit("query: up", "query: 'up{a=`${dependency}`}'"), []string{"has ${dependency} in single quotes, in backquotes"}},
		"number in a comment":           {edit("query: up", "query: \"up # ${rate}\""), []string{"in a comment: put it in double quotes"}},
		"goto back":                     {edit("goto: rest", "goto: limit"), []string{`x.yaml:38: steps[2].choices[0].goto: "limit" is not a later step: a run never goes back`}},
		"goto itself":                   {edit("goto: rest", "goto: choose"), []string{"steps[2].choices[0].goto: \"choose\" is not a later step"}},
		"goto nowhere":                  {edit("goto: rest", "goto: rset"), []string{`x.yaml:38: steps[2].choices[0].goto: no step has the id "rset": want "end" or a later step, such as "rest"`}},
		"choice twice":                  {edit("id: no-it-is-not", "id: yes-it-is"), []string{`x.yaml:39: steps[2].choices[1].id: "yes-it-is" is given twice`}},
		"reserved choice":               {edit("id: no-it-is-not", "id: skip"), []string{`x.yaml:39: steps[2].choices[1].id: is "skip", which every step has already`}},
		"long label":                    {edit("label: It is not", "label: "+strings.Repeat("x", 76)), []string{"x.yaml:39: steps[2].choices[1].label: is 76 characters long: at most 75 fit"}},
		"two lines where one is wanted": {edit("title: Look", `title: "Look\nhere"`), []string{"x.yaml:25: steps[1].title: has line breaks"}},
		"parameter twice":               {edit("name: rate", "name: dependency"), []string{`x.yaml:7: params[1].name: "dependency" is given twice`, "no parameter is named \"rate\"", "no parameter is named \"rate\"", "no parameter is named \"rate\""}},
		"odd parameter":                 {edit("{name: hint", "{name: Hint"), []string{`x.yaml:8: params[2].name: is "Hint"`, "no parameter is named \"hint\": did you mean \"Hint\"?"}},
		"unknown kind of parameter":     {edit("kind: number", "kind: float"), []string{`x.yaml:7: params[1].kind: is "float": want one of text, number`}},
		"default of another kind":       {edit(`default: "40"`, `default: forty`), []string{`x.yaml:7: params[1].default: is "forty": want a number`}},
		"default of a required one":     {edit(`required: true`, `required: true, default: llm`), []string{"x.yaml:6: params[0].default: is given for a required parameter"}},
		"no help":                       {edit("help: Anything.", `help: ""`), []string{"x.yaml:8: params[2].help: is missing"}},
		"odd label":                     {edit("from_labels: [dependency,", "from_labels: [a-b,"), []string{`x.yaml:6: params[0].from_labels[0]: is "a-b", which is no name of a label`}},
		"anchors":                       {edit("owner: inference", "owner: &o inference"), []string{"x.yaml:4: owner: has an anchor"}},
		"two documents":                 {everyKind + "---\nid: b\n", []string{"has a second document"}},
		"a list":                        {"- a\n", []string{"x.yaml:1: want an object, got a list"}},
		"empty":                         {"", []string{"x.yaml:1: is empty"}},
		"not YAML":                      {"id: a\n b: c\n", []string{"x.yaml:2: is not YAML"}},
		"several problems, in their order": {
			edit("summary: All there is.", "sumary: x") + "    color: red\n",
			[]string{"x.yaml:1: summary: is missing", `x.yaml:3: sumary: unknown key: did you mean "summary"?`, "x.yaml:56: steps[4].color: unknown key"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := runbooks.Parse("x.yaml", []byte(tt.in))
			var errs strict.Errors
			require.ErrorAs(t, err, &errs)
			require.Len(t, errs, len(tt.want), "%v", err)
			for i, want := range tt.want {
				require.Contains(t, errs[i].Error(), want)
			}
		})
	}
}

// What a person sees who made many mistakes at once.
func TestProblemsAreReadable(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(filepath.Join("testdata", "broken.yaml"))
	require.NoError(t, err)
	_, err = runbooks.Parse("broken.yaml", data)
	require.Error(t, err)
	golden := filepath.Join("testdata", "broken.golden")
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(err.Error()+"\n"), 0o600))
	}
	want, readErr := os.ReadFile(golden)
	require.NoError(t, readErr)
	require.Equal(t, string(want), err.Error()+"\n")
}

func TestNoMoreProblemsThanAPersonReads(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("id: a\ntitle: A\nsummary: S\nsteps:\n")
	for range 50 {
		b.WriteString("  - {kind: check}\n")
	}
	_, err := runbooks.Parse("x.yaml", []byte(b.String()))
	var errs strict.Errors
	require.ErrorAs(t, err, &errs)
	require.Len(t, errs, strict.MaxErrors+1)
	require.Contains(t, errs[strict.MaxErrors].Error(), "more than 100 problems")
}

func specs(t testing.TB) []actions.Spec {
	t.Helper()
	registry, err := actions.NewRegistry(builtin.All()...)
	require.NoError(t, err)
	return registry.Specs()
}

// load makes a library of files given by name and text.
func load(t testing.TB, files ...string) *runbooks.Library {
	t.Helper()
	fsys := fstest.MapFS{}
	for i := 0; i < len(files); i += 2 {
		fsys[files[i]] = &fstest.MapFile{Data: []byte(files[i+1])}
	}
	lib, err := runbooks.LoadFS(fsys)
	require.NoError(t, err)
	return lib
}

func TestCheckRefusesWhatDoesNotFitTheActions(t *testing.T) {
	t.Parallel()
	query := func(q string) error {
		if strings.Contains(q, "((") {
			return errors.New("1:3: unclosed left parenthesis")
		}
		return nil
	}
	tests := map[string]struct {
		in   string
		want string
	}{
		"fits":                     {everyKind, ""},
		"unknown action":           {edit("action: set_rate_limit", "action: set_rate_limits"), `a.yaml:16: steps[0].action: no action is named "set_rate_limits": did you mean "set_rate_limit"?`},
		"unknown parameter":        {edit("target: global,", "target: global, color: red,"), "a.yaml:17: steps[0].params.color: set_rate_limit has no parameter of that name"},
		"missing parameter":        {edit("target: global, ", ""), "a.yaml:17: steps[0].params: lack target, which set_rate_limit needs"},
		"no parameters":            {edit("    params: {target: global, requests_per_second: \"${rate}\"}\n", ""), "steps[0].params: lack"},
		"not a number":             {edit(`"${rate}"}`, "many}"), `a.yaml:17: steps[0].params.requests_per_second: is "many": want a number`},
		"a name where a number is": {edit(`"${rate}"}`, `"${dependency}"}`), `steps[0].params.requests_per_second: is "sample": want a number`},
		"odd target":               {edit("target: global", "target: everything"), `steps[0].params.target: is "everything": want "global"`},
		"lease too long":           {edit("ttl: 10m", "ttl: 5h"), "a.yaml:18: steps[0].ttl: is 5h0m0s: set_rate_limit takes at most 4h0m0s"},
		"not PromQL":               {edit("query: up", "query: ((up"), "a.yaml:29: steps[1].criterion.query: is not PromQL: 1:3: unclosed left parenthesis"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := load(t, "a.yaml", tt.in).Check(runbooks.Checks{Specs: specs(t), CheckQuery: query})
			if tt.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tt.want)
		})
	}
}

func TestLibrary(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	write("b.yaml", strings.Replace(everyKind, "id: all", "id: beta", 1))
	write("a.yml", strings.Replace(everyKind, "id: all", "id: alpha", 1))
	write("README.md", "no runbook")
	require.NoError(t, os.Mkdir(filepath.Join(dir, "sub.yaml"), 0o700))
	lib, err := runbooks.LoadDir(dir)
	require.NoError(t, err)
	require.Len(t, lib.Runbooks(), 2)
	require.Equal(t, "alpha", lib.Runbooks()[0].ID)
	_, err = lib.Runbook("betta")
	require.ErrorIs(t, err, runbooks.ErrUnknownRunbook)
	require.ErrorContains(t, err, `did you mean "beta"?`)

	joined, err := runbooks.Join(lib, load(t, "c.yaml", everyKind))
	require.NoError(t, err)
	require.Len(t, joined.Runbooks(), 3)
	_, err = runbooks.Join(lib, lib)
	require.ErrorContains(t, err, `"alpha" is the id of `+filepath.Join(dir, "a.yml")+":1 as well")

	write("c.yaml", strings.Replace(everyKind, "id: all", "# twice\nid: beta", 1))
	write("d.yaml", "id: delta\n")
	_, err = runbooks.LoadDir(dir)
	require.ErrorContains(t, err, filepath.Join(dir, "c.yaml")+`:2: id: "beta" is the id of `+filepath.Join(dir, "b.yaml")+":1 as well")
	require.ErrorContains(t, err, filepath.Join(dir, "d.yaml")+":1: title: is missing", "the problems of all files")
	_, err = runbooks.LoadDir(filepath.Join(dir, "absent"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestSuggest(t *testing.T) {
	t.Parallel()
	lib := load(t, "a.yaml", everyKind, "b.yaml", strings.Replace(everyKind, "id: all", "id: beta", 1))
	tests := map[string]struct {
		labels, annotations map[string]string
		want                []runbooks.Suggestion
	}{
		"nothing named": {map[string]string{"service": "llm"}, map[string]string{"summary": "all"}, nil},
		"unknown id":    {nil, map[string]string{"runbook": "gamma"}, nil},
		"by label, the better one first": {
			map[string]string{"dependency": "llm", "service": "other"},
			map[string]string{"runbook": "all"},
			[]runbooks.Suggestion{{Runbook: "all", Params: map[string]string{"dependency": "llm", "rate": "40"}, Missing: []string{}}},
		},
		"a label that cannot be one": {
			map[string]string{"dependency": "LLM (main)", "service": "llm"},
			map[string]string{"runbook_id": "all"},
			[]runbooks.Suggestion{{Runbook: "all", Params: map[string]string{"dependency": "llm", "rate": "40"}, Missing: []string{}}},
		},
		"what the alert proposes for the action": {
			map[string]string{"dependency": "llm"},
			map[string]string{"runbook": "all", "suggested_actions": "set_rate_limit:target=global;requests_per_second=7, trip_breaker:dependency=other"},
			[]runbooks.Suggestion{{Runbook: "all", Params: map[string]string{"dependency": "llm", "rate": "7"}, Missing: []string{}}},
		},
		"what the alert proposes and cannot be": {
			map[string]string{"dependency": "llm"},
			map[string]string{"runbook": "all", "suggested_actions": "set_rate_limit:requests_per_second=many"},
			[]runbooks.Suggestion{{Runbook: "all", Params: map[string]string{"dependency": "llm", "rate": "40"}, Missing: []string{}}},
		},
		"a list, with both annotations, each once": {
			nil,
			map[string]string{"runbook": " beta , gamma,all,beta", "runbook_id": "all"},
			[]runbooks.Suggestion{
				{Runbook: "beta", Params: map[string]string{"rate": "40"}, Missing: []string{"dependency"}},
				{Runbook: "all", Params: map[string]string{"rate": "40"}, Missing: []string{"dependency"}},
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := lib.Suggest(tt.labels, tt.annotations)
			require.NotNil(t, got)
			require.Len(t, got, len(tt.want))
			for i := range got {
				require.NotEmpty(t, got[i].Why)
				require.Equal(t, "Everything", got[i].Title)
				got[i].Why, got[i].Title = "", ""
				require.Equal(t, tt.want[i], got[i])
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(everyKind))
	for _, seed := range []string{"", "id: a", "steps: [{kind: action}]", "steps:\n  - criterion: {query: '${x', value: .inf}", edit("query: up", "query: '\"${rate}'"), edit("goto: rest", "goto: end")} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		book, err := runbooks.Parse("f.yaml", data)
		if err != nil {
			var errs strict.Errors
			require.ErrorAs(t, err, &errs)
			require.NotEmpty(t, errs)
			for _, e := range errs {
				require.Equal(t, "f.yaml", e.File)
				require.NotEmpty(t, e.Message)
			}
			require.Empty(t, book.ID, "nothing is half read")
			return
		}
		raw, err := json.Marshal(book)
		require.NoError(t, err)
		again, err := runbooks.Parse("f.json", withoutVersion(t, raw))
		require.NoError(t, err, "what was read can be written and read again: %s", raw)
		require.Equal(t, book.Version, again.Version)
	})
}

// withoutVersion makes a file of a runbook: the version is computed, and on_failure
// is not written for what cannot fail.
func withoutVersion(t *testing.T, raw []byte) []byte {
	var m map[string]any
	require.NoError(t, json.Unmarshal(raw, &m))
	delete(m, "version")
	steps, _ := m["steps"].([]any)
	for _, s := range steps {
		if step, ok := s.(map[string]any); ok && (step["kind"] == "note" || step["kind"] == "wait") {
			delete(step, "on_failure")
		}
	}
	out, err := json.Marshal(m)
	require.NoError(t, err)
	return out
}
