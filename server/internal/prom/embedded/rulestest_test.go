package embedded_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"

	promrules "holdfast/deploy/prometheus"
	"holdfast/server/internal/prom/embedded"
)

const deployed = "../../../../deploy/prometheus"

// unitTests is a file in the format of `promtool test rules`.
type unitTests struct {
	RuleFiles          []string       `yaml:"rule_files"`
	EvaluationInterval model.Duration `yaml:"evaluation_interval"`
	GroupEvalOrder     []string       `yaml:"group_eval_order"`
	Tests              []unitTest     `yaml:"tests"`
}

type unitTest struct {
	Name           string            `yaml:"name"`
	Interval       model.Duration    `yaml:"interval"`
	InputSeries    []inputSeries     `yaml:"input_series"`
	ExternalLabels map[string]string `yaml:"external_labels"`
	ExternalURL    string            `yaml:"external_url"`
	Alerts         []alertTest       `yaml:"alert_rule_test"`
	Expressions    []expressionTest  `yaml:"promql_expr_test"`
}

type inputSeries struct {
	Series string `yaml:"series"`
	Values string `yaml:"values"`
}

type alertTest struct {
	At       model.Duration  `yaml:"eval_time"`
	Name     string          `yaml:"alertname"`
	Expected []expectedAlert `yaml:"exp_alerts"`
}

type expectedAlert struct {
	Labels      map[string]string `yaml:"exp_labels"`
	Annotations map[string]string `yaml:"exp_annotations"`
}

type expressionTest struct {
	Expr     string           `yaml:"expr"`
	At       model.Duration   `yaml:"eval_time"`
	Expected []expectedSample `yaml:"exp_samples"`
}

type expectedSample struct {
	Labels string  `yaml:"labels"`
	Value  float64 `yaml:"value"`
}

// readTests reads a file; rule files are found from its folder.
func readTests(path string) (unitTests, error) {
	f, err := os.Open(path)
	if err != nil {
		return unitTests{}, err
	}
	defer f.Close()
	var u unitTests
	d := yaml.NewDecoder(f)
	d.KnownFields(true)
	if err := d.Decode(&u); err != nil {
		return u, fmt.Errorf("%s: %w", path, err)
	}
	u.EvaluationInterval = cmp.Or(u.EvaluationInterval, model.Duration(time.Minute))
	if len(u.RuleFiles) == 0 || len(u.Tests) == 0 {
		return u, fmt.Errorf("%s: names no rule files or has no tests", path)
	}
	for i, name := range u.RuleFiles {
		u.RuleFiles[i] = filepath.Join(filepath.Dir(path), name)
	}
	return u, nil
}

// run evaluates the rules over the input and returns every expectation that is
// not met. Like promtool it looks at alerts after the last evaluation at or before
// the time of a test, and at expressions once everything was evaluated.
func (u unitTests) run(t unitTest) (found error) {
	p := parser.NewParser(parser.Options{})
	load, err := promqltest.NewLazyLoader(t.input(u), promqltest.LazyLoaderOpts{
		EnableAtModifier: true, EnableNegativeOffset: true, Parser: p,
	})
	if err != nil {
		return err
	}
	defer func() { found = errors.Join(found, load.Close()) }()
	load.SubqueryInterval = time.Duration(u.EvaluationInterval)
	groups, err := u.groups(t, load, p)
	if err != nil {
		return err
	}
	var faults []error
	begin := time.Unix(0, 0).UTC()
	for at := time.Duration(0); at <= t.last(); at += time.Duration(u.EvaluationInterval) {
		load.WithSamplesTill(begin.Add(at), func(err error) {
			faults = append(faults, err)
			for _, g := range groups {
				g.Eval(load.Context(), begin.Add(at))
				for _, r := range g.Rules() {
					if r.LastError() != nil {
						faults = append(faults, fmt.Errorf("at %s: rule %s: %w", at, r.Name(), r.LastError()))
					}
				}
			}
		})
		for _, a := range t.Alerts {
			if want := time.Duration(a.At); at <= want && want < at+time.Duration(u.EvaluationInterval) {
				faults = append(faults, a.check(groups))
			}
		}
	}
	for _, x := range t.Expressions {
		faults = append(faults, x.check(load, p))
	}
	return errors.Join(faults...)
}

func (t unitTest) input(u unitTests) string {
	var b strings.Builder
	fmt.Fprintf(&b, "load %s\n", cmp.Or(t.Interval, u.EvaluationInterval))
	for _, s := range t.InputSeries {
		fmt.Fprintf(&b, "  %s %s\n", s.Series, s.Values)
	}
	return b.String()
}

func (t unitTest) last() time.Duration {
	last := model.Duration(0)
	for _, a := range t.Alerts {
		last = max(last, a.At)
	}
	for _, x := range t.Expressions {
		last = max(last, x.At)
	}
	return time.Duration(last)
}

// groups loads the rules, in the order in which the file wants them evaluated.
func (u unitTests) groups(t unitTest, load *promqltest.LazyLoader, p parser.Parser) ([]*rules.Group, error) {
	m := rules.NewManager(&rules.ManagerOptions{
		QueryFunc: rules.EngineQueryFunc(load.QueryEngine(), load.Storage()), AppendableV2: load.Storage(),
		Context: load.Context(), Parser: p,
		NotifyFunc: func(context.Context, string, ...*rules.Alert) {},
	})
	byKey, errs := m.LoadGroups(time.Duration(cmp.Or(t.Interval, u.EvaluationInterval)), labels.FromMap(t.ExternalLabels), t.ExternalURL, nil, false, u.RuleFiles...)
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	for _, name := range u.GroupEvalOrder {
		if !slices.ContainsFunc(slices.Collect(maps.Values(byKey)), func(g *rules.Group) bool { return g.Name() == name }) {
			return nil, fmt.Errorf("group_eval_order names %q, which no rule file has", name)
		}
	}
	groups := slices.Collect(maps.Values(byKey))
	slices.SortFunc(groups, func(a, b *rules.Group) int {
		return cmp.Or(cmp.Compare(slices.Index(u.GroupEvalOrder, a.Name()), slices.Index(u.GroupEvalOrder, b.Name())),
			strings.Compare(a.Name(), b.Name()))
	})
	for _, g := range groups {
		for _, r := range g.AlertingRules() {
			r.SetRestored(true) // or the series ALERTS is not written
		}
	}
	return groups, nil
}

// check compares the firing alerts of one name.
func (a alertTest) check(groups []*rules.Group) error {
	var got, want []string
	known := false
	for _, g := range groups {
		for _, r := range g.AlertingRules() {
			if r.Name() != a.Name {
				continue
			}
			known = true
			for _, active := range r.ActiveAlerts() {
				if active.State == rules.StateFiring {
					got = append(got, active.Labels.String()+" "+active.Annotations.String())
				}
			}
		}
	}
	if !known {
		return fmt.Errorf("there is no alert %q", a.Name)
	}
	for _, e := range a.Expected {
		set := maps.Clone(e.Labels)
		if set == nil {
			set = map[string]string{}
		}
		set["alertname"] = a.Name
		want = append(want, labels.FromMap(set).String()+" "+labels.FromMap(e.Annotations).String())
	}
	return differ(fmt.Sprintf("%s at %s", a.Name, a.At), want, got)
}

func (x expressionTest) check(load *promqltest.LazyLoader, p parser.Parser) error {
	vector, err := rules.EngineQueryFunc(load.QueryEngine(), load.Queryable())(load.Context(), x.Expr, time.Unix(0, 0).UTC().Add(time.Duration(x.At)))
	if err != nil {
		return fmt.Errorf("%s at %s: %w", x.Expr, x.At, err)
	}
	var got, want []string
	for _, s := range vector {
		got = append(got, sampleText(s))
	}
	for _, e := range x.Expected {
		metric, err := p.ParseMetric(e.Labels)
		if err != nil {
			return fmt.Errorf("%s at %s: labels %q: %w", x.Expr, x.At, e.Labels, err)
		}
		want = append(want, sampleText(promql.Sample{Metric: metric, F: e.Value}))
	}
	return differ(fmt.Sprintf("%s at %s", x.Expr, x.At), want, got)
}

func sampleText(s promql.Sample) string { return fmt.Sprintf("%s %v", s.Metric, s.F) }

func differ(what string, want, got []string) error {
	slices.Sort(want)
	slices.Sort(got)
	if slices.Equal(want, got) {
		return nil
	}
	return fmt.Errorf("%s\n  want %s\n  got  %s", what, strings.Join(want, "\n       "), strings.Join(got, "\n       "))
}

// shortest is the test with the fewest evaluations.
func (u unitTests) shortest() []unitTest {
	return []unitTest{slices.MinFunc(u.Tests, func(a, b unitTest) int { return cmp.Compare(a.last(), b.last()) })}
}

// The rules fire when they should and only then: the same files that promtool
// runs where it is installed. Evaluation is Prometheus' own code on one goroutine,
// so the race detector, with which all of it takes minutes, sees one test of each
// file. The others run with go test -run TestRules, without -race.
func TestRulesAsPromtoolTestsThem(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(deployed + "/tests/*.test.yml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		u, err := readTests(file)
		require.NoError(t, err)
		tests := u.Tests
		if raceDetector {
			tests = u.shortest()
			t.Logf("%s: %d of %d tests with the race detector", filepath.Base(file), len(tests), len(u.Tests))
		}
		for i, test := range tests {
			t.Run(filepath.Base(file)+"/"+cmp.Or(test.Name, fmt.Sprint(i)), func(t *testing.T) {
				t.Parallel()
				require.NoError(t, u.run(test))
			})
		}
	}
}

// Every rule file that is shipped is one that the engine takes.
func TestShippedRulesAreAccepted(t *testing.T) {
	t.Parallel()
	files, err := promrules.Rules()
	require.NoError(t, err)
	require.NotEmpty(t, files)
	o := embedded.Options{Dir: "unused", Deliver: (&inbox{}).deliver}
	for _, f := range files {
		o.Rules = append(o.Rules, embedded.RuleFile{Name: f.Name, Data: f.Data})
	}
	_, err = embedded.New(o)
	require.NoError(t, err)
}

// A runner that accepts everything would be worth nothing.
func TestTheRunnerFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "rules.yml"), []byte(alertRule("Queue", "service:queue:requests > 100", "10s")), 0o600))
	const head = "rule_files: [rules.yml]\nevaluation_interval: 5s\n"
	const test = head + "tests:\n  - interval: 5s\n    input_series:\n      - {series: 'queue{service=\"llm\"}', values: 1 120x10}\n"
	for name, tt := range map[string]struct{ file, want string }{
		"right": {test + `    alert_rule_test:
      - {eval_time: 10s, alertname: Queue}
      - eval_time: 17s
        alertname: Queue
        exp_alerts:
          - exp_labels: {service: llm, severity: critical}
            exp_annotations: {summary: "llm queues 120", runbook: slow-model}
    promql_expr_test:
      - {expr: "service:queue:requests", eval_time: 5s, exp_samples: [{labels: 'service:queue:requests{service="llm"}', value: 120}]}
      - {expr: "0/0", eval_time: 5s, exp_samples: [{labels: '{}', value: .nan}]}
`, ""},
		"an alert that does not fire": {test + "    alert_rule_test: [{eval_time: 10s, alertname: Queue, exp_alerts: [{exp_labels: {service: llm}}]}]\n", "Queue at 10s"},
		"an alert that should not":    {test + "    alert_rule_test: [{eval_time: 15s, alertname: Queue}]\n", "got  {alertname=\"Queue\""},
		"an annotation":               {test + "    alert_rule_test: [{eval_time: 15s, alertname: Queue, exp_alerts: [{exp_labels: {service: llm, severity: critical}}]}]\n", "runbook="},
		"a name that is misspelt":     {test + "    alert_rule_test: [{eval_time: 15s, alertname: Qeue}]\n", `no alert "Qeue"`},
		"a value":                     {test + "    promql_expr_test: [{expr: queue, eval_time: 5s, exp_samples: [{labels: 'queue{service=\"llm\"}', value: 121}]}]\n", "want {__name__=\"queue\""},
		"an expression":               {test + "    promql_expr_test: [{expr: 'sum(', eval_time: 5s}]\n", "parse error"},
		"an unknown key":              {test + "    alert_rule_tests: []\n", "alert_rule_tests not found"},
		"a group that is not there":   {"group_eval_order: [x]\n" + test, `names "x"`},
		"input that is not a series":  {head + "tests:\n  - input_series: [{series: 'a{', values: 1}]\n", "parse error"},
		"no tests":                    {head, "has no tests"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(dir, strings.ReplaceAll(name, " ", "-")+".test.yml")
			require.NoError(t, os.WriteFile(path, []byte(tt.file), 0o600))
			u, err := readTests(path)
			if err == nil {
				err = u.run(u.Tests[0])
			}
			if tt.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tt.want)
		})
	}
}
