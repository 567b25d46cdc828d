package deploytest

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"holdfast/actions"
	"holdfast/actions/actionstest"
	"holdfast/actions/builtin"
	"holdfast/deploy/prometheus"
	"holdfast/gpuguard/enginesim"
	"holdfast/gpuguard/policy"
	"holdfast/gpuguard/signals"
	"holdfast/internal/testenv"
	"holdfast/runbooks/library"
)

const (
	rulesDir     = root + "/deploy/prometheus/rules"
	ruleTestsDir = root + "/deploy/prometheus/tests"
)

// rule is one rule of a file.
type rule struct {
	File        string            `yaml:"-"`
	Record      string            `yaml:"record"`
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

func readRules(t *testing.T) []rule {
	t.Helper()
	files, err := filepath.Glob(rulesDir + "/*.yml")
	require.NoError(t, err)
	var all []rule
	for _, file := range files {
		var f struct {
			Groups []struct {
				Name  string `yaml:"name"`
				Rules []rule `yaml:"rules"`
			} `yaml:"groups"`
		}
		readYAML(t, file, &f)
		for _, g := range f.Groups {
			for _, r := range g.Rules {
				r.File = filepath.Base(file)
				all = append(all, r)
			}
		}
	}
	require.NotEmpty(t, all)
	return all
}

func readAlerts(t *testing.T) []rule {
	t.Helper()
	return slices.DeleteFunc(readRules(t), func(r rule) bool { return r.Alert == "" })
}

// expected is what a rule test wants of one alert at one time.
type expected struct {
	Alert  string `yaml:"alertname"`
	Alerts []struct {
		Labels      map[string]string `yaml:"exp_labels"`
		Annotations map[string]string `yaml:"exp_annotations"`
	} `yaml:"exp_alerts"`
}

func readExpected(t *testing.T) []expected {
	t.Helper()
	files, err := filepath.Glob(ruleTestsDir + "/*.test.yml")
	require.NoError(t, err)
	var all []expected
	for _, file := range files {
		var f struct {
			RuleFiles          []string `yaml:"rule_files"`
			EvaluationInterval string   `yaml:"evaluation_interval"`
			GroupEvalOrder     []string `yaml:"group_eval_order"`
			Tests              []struct {
				Name        string `yaml:"name"`
				Interval    string `yaml:"interval"`
				InputSeries []any  `yaml:"input_series"`
				Queries     []any  `yaml:"promql_expr_test"`
				Alerts      []struct {
					EvalTime string `yaml:"eval_time"`
					expected `yaml:",inline"`
				} `yaml:"alert_rule_test"`
			} `yaml:"tests"`
		}
		readYAML(t, file, &f)
		for _, test := range f.Tests {
			for _, a := range test.Alerts {
				all = append(all, a.expected)
			}
		}
	}
	require.NotEmpty(t, all)
	return all
}

func TestRulesAreEmbedded(t *testing.T) {
	t.Parallel()
	embedded, err := prometheus.Rules()
	require.NoError(t, err)
	entries, err := os.ReadDir(rulesDir)
	require.NoError(t, err)
	require.Len(t, embedded, len(entries))
	for i, e := range entries {
		require.Equal(t, e.Name(), embedded[i].Name)
		require.Equal(t, read(t, rulesDir+"/"+e.Name()), string(embedded[i].Data))
	}
}

func TestAlertsTellWhatToDo(t *testing.T) {
	t.Parallel()
	books, err := library.Load()
	require.NoError(t, err)
	names := map[string]bool{}
	for _, a := range readAlerts(t) {
		require.False(t, names[a.Alert], "%s is there twice", a.Alert)
		names[a.Alert] = true
		require.Contains(t, []string{"critical", "error", "warning", "info"}, a.Labels["severity"], a.Alert)
		for key := range a.Annotations {
			require.Contains(t, []string{"summary", "description", "runbook", "suggested_actions"}, key, a.Alert)
		}
		require.NotEmpty(t, a.Annotations["summary"], a.Alert)
		require.NotEmpty(t, a.Annotations["description"], a.Alert)
		id, given := a.Annotations["runbook"]
		if given {
			require.NotEmpty(t, books.Suggest(nil, a.Annotations), "%s: there is no runbook %q", a.Alert, id)
		}
		if a.File == "golden-signals.yml" {
			require.True(t, given, "%s has no runbook", a.Alert)
			require.NotEmpty(t, a.Annotations["suggested_actions"], a.Alert)
			require.NotEmpty(t, a.Labels["signal"], a.Alert)
		}
	}
}

// A critical alert calls a person within about a minute of the fault; [1m]
// windows leave it 15 s of patience. What is down or gone may take up to a minute.
func TestCriticalAlertsAreQuick(t *testing.T) {
	t.Parallel()
	for _, a := range readAlerts(t) {
		if a.Labels["severity"] == "critical" && a.File == "golden-signals.yml" {
			require.Equal(t, "15s", a.For, a.Alert)
		}
	}
}

// Each alert is tested to fire, and not to.
func TestEveryAlertIsTested(t *testing.T) {
	t.Parallel()
	fires, silent := map[string]bool{}, map[string]bool{}
	for _, e := range readExpected(t) {
		if len(e.Alerts) == 0 {
			silent[e.Alert] = true
			continue
		}
		fires[e.Alert] = true
	}
	for _, a := range readAlerts(t) {
		require.True(t, fires[a.Alert], "no test sees %s fire", a.Alert)
		require.True(t, silent[a.Alert], "no test sees %s stay silent", a.Alert)
	}
}

var (
	dependencyParam = regexp.MustCompile(`dependency=([a-z0-9-]+)`)
	routeParam      = regexp.MustCompile(`route:([a-z0-9-]+)`)
)

// The annotation as alerts carry it, filled in, names actions that can be
// planned: every item of it becomes a button.
func TestSuggestedActionsArePlanned(t *testing.T) {
	t.Parallel()
	done := map[string]bool{}
	for _, e := range readExpected(t) {
		for _, a := range e.Alerts {
			text := a.Annotations["suggested_actions"]
			if text == "" || done[e.Alert+text] {
				continue
			}
			done[e.Alert+text] = true
			doc := policyFor(a.Labels, text)
			registry, err := actions.NewRegistry(builtin.All()...)
			require.NoError(t, err)
			engine, err := actions.NewEngine(actions.Options{Store: actionstest.NewStore(doc, nil), Registry: registry})
			require.NoError(t, err)
			got, err := engine.Suggest(context.Background(), a.Labels, a.Annotations, 10)
			require.NoError(t, err)
			require.Len(t, got, strings.Count(text, ",")+1, "%s: %s", e.Alert, text)
		}
	}
	require.NotEmpty(t, done)
}

// policyFor is a policy with what an alert names.
func policyFor(labels map[string]string, suggested string) policy.Document {
	doc := actionstest.Document()
	doc.Dependencies[labels["service"]] = policy.Dependency{}
	for _, m := range dependencyParam.FindAllStringSubmatch(suggested, -1) {
		doc.Dependencies[m[1]] = policy.Dependency{}
	}
	for i, m := range routeParam.FindAllStringSubmatch(suggested, -1) {
		doc.Routes[m[1]] = policy.Route{Match: policy.Match{PathPrefix: fmt.Sprintf("/v1/%d", i)}, Pool: "llm"}
	}
	return doc
}

var outcomeMatcher = regexp.MustCompile(`outcome=~"([^"]*)"`)

// The outcomes that count as failed are the gateway's own: in the rules and in
// the code the same list.
func TestRulesCountTheOutcomesOfThePolicy(t *testing.T) {
	t.Parallel()
	failed := map[string]bool{}
	for _, o := range policy.Outcomes() {
		if o.Failed() {
			failed[string(o)] = true
		}
	}
	judged := maps.Clone(failed)
	judged[string(policy.OutcomeOK)], judged[string(policy.OutcomeClientFault)] = true, true
	want := map[string]map[string]bool{"service:failures:rate1m": failed, "service:judged:rate1m": judged}
	seen := 0
	for _, r := range readRules(t) {
		for _, m := range outcomeMatcher.FindAllStringSubmatch(r.Expr, -1) {
			seen++
			got := map[string]bool{}
			for o := range strings.SplitSeq(m[1], "|") {
				require.False(t, got[o], "%s: %s is there twice", r.Record, o)
				got[o] = true
			}
			require.Equal(t, want[r.Record], got, r.Record)
		}
	}
	require.Equal(t, 2, seen)
}

var engineMetric = regexp.MustCompile(`\b(?:vllm:|sglang:|tgi_|trtllm_|nv_|allocator_|enginesim_)\w+`)

// The rules and the aliases know the same names: a renamed metric is entered in
// both or the signal goes missing in one.
func TestRulesReadTheKnownNames(t *testing.T) {
	t.Parallel()
	aliases, err := signals.Known()
	require.NoError(t, err)
	var text strings.Builder
	for _, r := range readRules(t) {
		text.WriteString(r.Expr)
	}
	inRules := map[string]bool{}
	for _, name := range engineMetric.FindAllString(text.String(), -1) {
		inRules[name] = true
	}
	inAliases := map[string]bool{"enginesim_up": true} // of the simulated engine alone
	for signal, list := range aliases.Signals {
		for _, a := range list {
			for _, name := range a.Metrics() {
				inAliases[name] = true
				if signal != signals.QueueTime { // no rule reads it
					require.True(t, inRules[name], "the rules do not know %s", name)
				}
			}
			for k, v := range a.Labels {
				require.Contains(t, text.String(), fmt.Sprintf("%s{%s=%q}", a.Metric, k, v))
			}
		}
	}
	for name := range inRules {
		require.True(t, inAliases[name], "the aliases do not know %s", name)
	}
}

// The names come in the same order of preference.
func TestRulesPreferTheSameNames(t *testing.T) {
	t.Parallel()
	aliases, err := signals.Known()
	require.NoError(t, err)
	records := map[string]string{
		"service:queue:requests": signals.Queue, "service:running:requests": signals.Running, "service:decode:seconds_per_token": signals.Decode,
		"service:output:tokens_rate1m": signals.Tokens, "service:kv_use:ratio": signals.KVUse, "service:preemptions:rate1m": signals.Preemptions,
		"service:finished:rate1m": signals.Finished, "service:answer:tokens": signals.Answer,
	}
	for _, r := range readRules(t) {
		signal, ok := records[r.Record]
		if !ok {
			continue
		}
		delete(records, r.Record)
		var want []string
		for i := range 2 {
			for _, a := range aliases.Signals[signal] {
				if names := a.Metrics(); i < len(names) {
					want = append(want, names[i])
				}
			}
		}
		require.Equal(t, want, engineMetric.FindAllString(r.Expr, -1), r.Record)
	}
	require.Empty(t, records)
}

// What the rules read of the simulated engine, it exports: all of vLLM v1 and its own.
func TestRuleMetricsAreExported(t *testing.T) {
	t.Parallel()
	engine, err := enginesim.New(enginesim.DefaultOptions())
	require.NoError(t, err)
	exported := metricsOf(t, engine)
	aliases, err := signals.Known()
	require.NoError(t, err)
	names := []string{"enginesim_up"}
	for _, list := range aliases.Signals {
		for _, a := range list {
			if a.Engine == "enginesim" || a.Engine == "vllm" && !strings.Contains(a.Versions, "v0") {
				names = append(names, a.Metrics()...)
			}
		}
	}
	for _, name := range names {
		require.Regexp(t, `(?m)^`+regexp.QuoteMeta(name)+`[{ ]`, exported, name)
	}
}

// What the rules read of gateways and server is exported under that name.
func TestOwnMetricsAreExported(t *testing.T) {
	t.Parallel()
	exported := read(t, root+"/gpuguard/internal/telemetry/testdata/metrics.txt") +
		read(t, root+"/gpuguard/controlclient/metrics.go") + read(t, root+"/server/fleet/metrics.go")
	for _, r := range readRules(t) {
		for _, name := range regexp.MustCompile(`\b(?:gpuguard|holdfast)_\w+`).FindAllString(r.Expr, -1) {
			require.Contains(t, exported, strings.TrimSuffix(name, "_bucket"), r.Record+r.Alert)
		}
	}
}

// Health in the console and the alerts change at the same values.
func TestSignalThresholdsAreThoseOfTheAlerts(t *testing.T) {
	t.Parallel()
	alerts := readAlerts(t)
	for _, d := range signals.Golden() {
		for severity, threshold := range map[string]*float64{"warning": d.WarningAbove, "urgent": d.CriticalAbove} {
			if threshold == nil {
				continue
			}
			want := []string{"> " + strconv.FormatFloat(*threshold, 'g', -1, 64)}
			if d.Usual != nil {
				times := map[string]float64{"warning": d.Usual.WarningTimes, "urgent": d.Usual.CriticalTimes}[severity]
				relative := fmt.Sprintf("> %s * %s", strconv.FormatFloat(times, 'g', -1, 64), d.Usual.Series)
				if d.Usual.OnlyRaises {
					want = append(want, relative)
				} else {
					want = []string{relative}
				}
			}
			found := slices.ContainsFunc(alerts, func(a rule) bool {
				urgent := a.Labels["severity"] == "critical" || a.Labels["severity"] == "error"
				return a.Labels["signal"] == d.Name && urgent == (severity == "urgent") &&
					!slices.ContainsFunc(want, func(w string) bool { return !strings.Contains(a.Expr, d.Series+" "+w) })
			})
			require.True(t, found, "no %s alert on %s compares %v", severity, d.Name, want)
		}
	}
}

// Until a service has a history, the fixed thresholds are the multiples of the
// value that the rules start with.
func TestThresholdsStartWithTheUsualOfTheRules(t *testing.T) {
	t.Parallel()
	start := regexp.MustCompile(`\* 0 \+ ([0-9.]+)\s*$`)
	for _, d := range signals.Golden() {
		if d.Usual == nil {
			continue
		}
		for _, r := range readRules(t) {
			if r.Record != d.Usual.Series {
				continue
			}
			m := start.FindStringSubmatch(strings.TrimSpace(r.Expr))
			require.NotNil(t, m, r.Record)
			usual, err := strconv.ParseFloat(m[1], 64)
			require.NoError(t, err)
			require.InDelta(t, *d.WarningAbove, *d.Against(usual).WarningAbove, 1e-9, d.Name)
			require.InDelta(t, *d.CriticalAbove, *d.Against(usual).CriticalAbove, 1e-9, d.Name)
		}
	}
}

// Every series that signals name is recorded.
func TestSignalSeriesAreRecorded(t *testing.T) {
	t.Parallel()
	recorded := map[string]bool{}
	for _, r := range readRules(t) {
		recorded[r.Record] = true
	}
	for _, d := range signals.Golden() {
		require.True(t, recorded[d.Series], d.Series)
		if d.Usual != nil {
			require.True(t, recorded[d.Usual.Series], d.Usual.Series)
		}
	}
}

// Prometheus takes the queries of the signals, whatever a service is called.
func TestSignalQueriesParse(t *testing.T) {
	t.Parallel()
	promtool := testenv.Require(t, "promtool")
	type record struct {
		Record string `yaml:"record"`
		Expr   string `yaml:"expr"`
	}
	var records []record
	for _, d := range signals.Golden() {
		for _, service := range []string{"llm", `a"} or vector(1) or x{b="`, "back\\slash\n", "模型", "\xff"} {
			queries := []string{d.Query(service, "prod"), d.UsualQuery(service, service), d.QueryAll(), d.UsualQueryAll()}
			for _, q := range queries {
				if q != "" {
					records = append(records, record{fmt.Sprintf("check:%d", len(records)), q})
				}
			}
		}
	}
	groups := map[string]any{"groups": []any{map[string]any{"name": "queries", "rules": records}}}
	data, err := yaml.Marshal(groups)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "queries.yml")
	require.NoError(t, os.WriteFile(file, data, 0o600))
	execute(t, promtool, "check", "rules", file)
}
