package servertest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/gpuguard/signals"
	"holdfast/server"
	"holdfast/server/observe"
	"holdfast/server/servertest"
)

// gauges is a source of metrics whose values a test sets, by a part of the query.
type gauges struct {
	mu     sync.Mutex
	values map[string]float64
}

func (g *gauges) set(part string, v float64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.values[part] = v
}

func (g *gauges) Query(_ context.Context, query string, _ time.Time) ([]signals.Sample, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for part, v := range g.values {
		if strings.Contains(query, part) {
			return []signals.Sample{{Labels: map[string]string{"service": "llm", "environment": "prod"}, Value: v, At: time.Now()}}, nil
		}
	}
	return nil, nil
}

func (g *gauges) QueryRange(ctx context.Context, query string, _ observe.Range) (out []signals.Series, err error) {
	now, err := g.Query(ctx, query, time.Time{})
	for _, v := range now {
		out = append(out, signals.Series{Labels: v.Labels, Points: []signals.Point{{At: v.At, Value: v.Value}}})
	}
	return out, err
}

func (g *gauges) Rules(ctx context.Context) ([]observe.RuleGroup, error) {
	now, err := g.Query(ctx, "rules", time.Time{})
	rule := observe.Rule{Name: "QueueLong", Query: "x", Alerting: true, State: observe.RuleFiring, Health: "ok", Labels: map[string]string{"service": "llm", "environment": "prod"}}
	for _, v := range now {
		rule.Alerts = append(rule.Alerts, observe.ActiveAlert{Labels: rule.Labels, State: observe.RuleFiring, ActiveAt: v.At, Value: v.Value})
	}
	return []observe.RuleGroup{{Name: "g", Rules: []observe.Rule{rule}}}, err
}

func (g *gauges) Targets(context.Context) ([]observe.Target, error) { return nil, nil }
func (g *gauges) Kind() observe.Kind                                { return observe.Remote }

// healthy are the numbers of a service that is well again.
func healthy() *gauges {
	return &gauges{values: map[string]float64{
		"service:errors:ratio": 0.012, "service:queue:requests": 3, "service:decode:": 1.04, "service:fragmentation:": 0.11, "service:output:": 0.93,
	}}
}

// asks waits until a step asks, and gives the run.
func asks(t *testing.T, s *servertest.System, run, step string) (r servertest.RunbookRun) {
	t.Helper()
	s.Eventually("the step "+step+" to ask", func() bool {
		r = s.RunbookRun(run)
		require.NotContains(t, []string{"failed", "cancelled"}, r.Status, "%+v", r)
		return r.Status == "waiting" && r.Steps[r.Current].Step.ID == step && len(r.Steps[r.Current].Answers) > 0
	})
	return r
}

// answer answers what a run asks, as carol.
func answer(t *testing.T, s *servertest.System, run, step, word string) {
	t.Helper()
	r := asks(t, s, run, step)
	a := s.AnswerRunbook("carol", run, step, r.Steps[r.Current].Attempt, word)
	require.Equal(t, http.StatusOK, a.Status, a.Body)
}

func started(t *testing.T, a servertest.Answer) (r servertest.RunbookRun) {
	t.Helper()
	require.Equal(t, http.StatusCreated, a.Status, a.Body)
	require.NoError(t, json.Unmarshal([]byte(a.Body), &r))
	return r
}

func TestTheSlowModelRunbookFromAlertToRestore(t *testing.T) {
	t.Parallel()
	servertest.Each(t, func(t *testing.T, database string) {
		s := servertest.New(t, servertest.Options{Database: database, Gateways: 2, Server: func(o *server.Options) { o.Metrics = healthy() }})
		receipt := s.PostAlert(servertest.Alert{Name: "DecodeSlow", Annotations: map[string]string{
			"runbook": "slow-model", "suggested_actions": "set_rate_limit:target=route:chat;requests_per_second=7",
		}})

		var detail struct {
			Runbooks []struct {
				Runbook string
				Params  map[string]string
				Missing []string
			}
		}
		s.Get("/api/v1/incidents/"+receipt.Incident, &detail)
		require.Len(t, detail.Runbooks, 1)
		proposed := detail.Runbooks[0]
		require.Equal(t, "slow-model", proposed.Runbook)
		require.Equal(t, "llm", proposed.Params["service"])
		require.Equal(t, "prod", proposed.Params["environment"])
		require.Equal(t, "llm", proposed.Params["dependency"])
		require.Equal(t, "route:chat", proposed.Params["target"], "what the alert proposes")
		require.Equal(t, "7", proposed.Params["surviving_rps"], "what the alert proposes")
		require.Empty(t, proposed.Missing)
		card := s.WaitCardSays("Runbook for this", "Slow model")
		require.Contains(t, string(card.RawBlocks), "/incidents/"+receipt.Incident+"?runbook=slow-model")

		run := started(t, s.StartRunbook("carol", "slow-model", receipt.Incident, "story-of-a-slow-model", proposed.Params))
		require.Equal(t, "Carol Chen", run.StartedBy)
		require.Equal(t, receipt.Incident, run.Incident)
		asks(t, s, run.ID, "limit")
		s.WaitCardSays("Slow model – step 1 of", "waits for an answer")
		require.NotContains(t, s.WaitCardSays("waits for an answer").Visible(), "Runbook for this", "what runs is not proposed again")
		requireSeen(t, s, "run it?")

		pressed := time.Now()
		answer(t, s, run.ID, "limit", "run")
		for i := range s.Gateways {
			s.Eventually("the limit at every gateway", func() bool {
				l := s.Gateways[i].Effective().Document.Routes["chat"].Limit
				return l != nil && l.RequestsPerSecond > 0 && l.RequestsPerSecond <= 7
			})
		}
		t.Logf("%s: press → limit at both gateways %d ms", database, time.Since(pressed).Milliseconds())
		r := asks(t, s, run.ID, "enough")
		t.Logf("%s: press → step passed %d ms", database, time.Since(pressed).Milliseconds())
		require.Equal(t, "passed", r.Steps[0].Status, "%+v", r.Steps[0])
		require.InDelta(t, 0.012, *r.Steps[0].Value, 0)
		require.Len(t, s.Runs(), 1)
		require.Equal(t, r.Steps[0].ActionRun, s.Runs()[0].ID)
		require.Equal(t, "Carol Chen", s.Runs()[0].Requester)
		require.Equal(t, receipt.Incident, s.Runs()[0].Incident)
		requireSeen(t, s, "passed: 1.2 % (want < 5 %)")

		answer(t, s, run.ID, "enough", "holds")
		answer(t, s, run.ID, "change", "none")
		answer(t, s, run.ID, "replicas", "unchanged")
		asks(t, s, run.ID, "release")
		revert := s.Do(servertest.Request{Method: http.MethodPost, Path: "/api/v1/action-runs/" + s.Runs()[0].ID + "/revert", Token: s.APIToken("carol")})
		require.Equal(t, http.StatusOK, revert.Status, revert.Body)
		answer(t, s, run.ID, "release", "reverted")
		s.Eventually("the higher limit at every gateway", func() bool {
			n := 0
			for _, g := range s.Gateways {
				if l := g.Effective().Document.Routes["chat"].Limit; l != nil && l.RequestsPerSecond > 0 && l.RequestsPerSecond <= 17 {
					n++
				}
			}
			return n == len(s.Gateways)
		})
		s.Eventually("the window to be watched", func() bool {
			r := s.RunbookRun(run.ID)
			return r.Steps[r.Current].Step.ID == "half-window" && r.Status == "running"
		})

		cancelled := s.Do(servertest.Request{Method: http.MethodPost, Path: "/api/v1/runbook-runs/" + run.ID + "/cancel", Token: s.APIToken("bob")})
		require.Equal(t, http.StatusOK, cancelled.Status, cancelled.Body)
		require.Contains(t, cancelled.Body, `"status":"cancelled"`)
		requireSeen(t, s, "cancelled by Bob Berger")
		require.Equal(t, "active", s.Runs()[0].Status, "leases stay")
		again := s.Do(servertest.Request{Method: http.MethodPost, Path: "/api/v1/runbook-runs/" + run.ID + "/cancel", Token: s.APIToken("bob")})
		require.Equal(t, http.StatusConflict, again.Status, again.Body)

		var timeline struct{ Items []struct{ Kind, Ref string } }
		s.Get("/api/v1/incidents/"+receipt.Incident+"/timeline?limit=200", &timeline)
		var lines int
		for _, e := range timeline.Items {
			if e.Kind == "runbook" {
				require.Equal(t, "runbook-run:"+run.ID, e.Ref)
				lines++
			}
		}
		require.Greater(t, lines, 10)
		requireChainWhole(t, s)
	})
}

func TestStartingAndAnsweringARunbookIsChecked(t *testing.T) {
	t.Parallel()
	s := servertest.New(t, servertest.Options{WithoutSlack: true, Gateways: 1, Server: func(o *server.Options) { o.Metrics = healthy() }})
	receipt := s.PostAlert(servertest.Alert{})
	params := map[string]string{"service": "llm", "environment": "prod", "dependency": "llm"}
	refused := func(what string, a servertest.Answer, status int, kind string, paths ...string) {
		t.Helper()
		require.Equal(t, status, a.Status, "%s: %s", what, a.Body)
		p, ok := a.Problem()
		require.True(t, ok, what)
		require.Equal(t, "/problems/"+kind, p.Type, what)
		var named []string
		for _, e := range p.Errors {
			named = append(named, e.Path)
		}
		require.Subset(t, named, paths, "%s: %s", what, a.Body)
	}
	refused("no such runbook", s.StartRunbook("carol", "slow-modle", "", "12345678", params), http.StatusNotFound, "unknown-runbook")
	refused("no such incident", s.StartRunbook("carol", "slow-model", "nowhere", "12345678", params), http.StatusNotFound, "not-found")
	refused("nothing filled in", s.StartRunbook("carol", "slow-model", "", "12345678", map[string]string{}), http.StatusBadRequest, "invalid", "params.service", "params.environment", "params.dependency")
	refused("not a number", s.StartRunbook("carol", "slow-model", "", "12345678", with(params, "surviving_rps", "NaN")), http.StatusBadRequest, "invalid", "params.surviving_rps")
	refused("not a parameter", s.StartRunbook("carol", "slow-model", "", "12345678", with(params, "servise", "llm")), http.StatusBadRequest, "invalid", "params.servise")
	refused("short key", s.StartRunbook("carol", "slow-model", "", "1234567", params), http.StatusBadRequest, "invalid", "Idempotency-Key")
	refused("a viewer", s.StartRunbook("mallory", "slow-model", "", "12345678", params), http.StatusForbidden, "forbidden")
	var page struct{ Items []servertest.RunbookRun }
	s.Get("/api/v1/runbook-runs", &page)
	require.Empty(t, page.Items, "nothing of that began")

	key := strings.Repeat("k", 200)
	run := started(t, s.StartRunbook("carol", "slow-model", receipt.Incident, key, params))
	second := s.StartRunbook("carol", "slow-model", receipt.Incident, key, params)
	require.Equal(t, http.StatusOK, second.Status, second.Body)
	require.Contains(t, second.Body, run.ID)
	refused("one key for something else", s.StartRunbook("carol", "slow-model", "", key, params), http.StatusConflict, "duplicate")
	other := started(t, s.StartRunbook("alice", "slow-model", receipt.Incident, key, params))
	require.NotEqual(t, run.ID, other.ID, "two people do not meet on one key")
	s.Get("/api/v1/runbook-runs?live=true&limit=1&incident="+receipt.Incident, &page)
	require.Equal(t, other.ID, page.Items[0].ID, "newest first")

	asks(t, s, run.ID, "limit")
	refused("another attempt", s.AnswerRunbook("carol", run.ID, "limit", 2, "run"), http.StatusConflict, "wrong-state")
	refused("another step", s.AnswerRunbook("carol", run.ID, "enough", 1, "holds"), http.StatusConflict, "wrong-state")
	refused("no such step", s.AnswerRunbook("carol", run.ID, "limbo", 1, "run"), http.StatusBadRequest, "invalid", "step")
	refused("no such answer", s.AnswerRunbook("carol", run.ID, "limit", 1, "maybe"), http.StatusBadRequest, "invalid", "answer")
	refused("a viewer", s.AnswerRunbook("mallory", run.ID, "limit", 1, "run"), http.StatusForbidden, "forbidden")
	refused("no such run", s.AnswerRunbook("carol", "nowhere", "limit", 1, "run"), http.StatusNotFound, "not-found")
	require.Empty(t, s.Runs(), "nothing of that did anything")
	require.Equal(t, http.StatusOK, s.AnswerRunbook("carol", run.ID, "limit", 1, "run").Status)
	refused("the second of two presses", s.AnswerRunbook("alice", run.ID, "limit", 1, "run"), http.StatusConflict, "wrong-state")

	var books struct {
		Items []struct {
			ID     string
			Params []struct {
				Name    string
				Choices []string
			}
		}
	}
	s.Get("/api/v1/runbooks", &books)
	choices := map[string][]string{}
	for _, b := range books.Items {
		for _, p := range b.Params {
			choices[b.ID+"."+p.Name] = p.Choices
		}
	}
	require.Equal(t, []string{"assistant", "checkout", "llm", "newsletter"}, choices["slow-model.service"], "from the catalogue")
	require.Equal(t, []string{"prod"}, choices["slow-model.environment"])
	require.Contains(t, choices["slow-model.dependency"], "llm", "from the policy in force")
	require.Contains(t, choices["slow-model.target"], "route:chat")
	missing := s.Do(servertest.Request{Method: http.MethodGet, Path: "/api/v1/runbooks/slow-modle", Token: s.APIToken("mallory")})
	refused("one that is not there", missing, http.StatusNotFound, "unknown-runbook")
}

func with(m map[string]string, name, value string) map[string]string {
	out := map[string]string{name: value}
	for k, v := range m {
		if k != name {
			out[k] = v
		}
	}
	return out
}

// drill touches two parts of the policy and has a step of every kind.
const drill = `id: drill
title: Drill
summary: A step of every kind.
params:
  - {name: dependency, kind: dependency, required: true, help: What is tripped., from_labels: [dependency]}
steps:
  - {id: told, phase: isolate, title: Told, kind: note, command: Read., expect: It is read., text: Here we go.}
  - {id: trip, phase: isolate, title: "Trip ${dependency}", kind: action, command: Trip it., expect: It is open., action: trip_breaker, params: {dependency: "${dependency}"}, ttl: 10m, automatic: true}
  - {id: ask, phase: locate, title: Ask, kind: decision, command: Look., expect: It is known., question: "Go on with ${dependency}?", choices: [{id: "go", label: Go on}]}
  - id: look
    phase: locate
    title: Look
    kind: check
    command: Look.
    expect: It is short.
    criterion: {query: 'service:queue:requests{service="${dependency}"}', is: "<", value: 20, unit: requests}
    timeout: 1m
  - {id: slow, phase: restore, title: Wait, kind: wait, command: Wait., expect: Time passes., wait: 1s}
  - {id: limit, phase: restore, title: Limit, kind: action, command: Limit it., expect: It is limited., action: set_rate_limit, params: {target: global, requests_per_second: "50"}, ttl: 10m}
`

func drillDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "drill.yaml"), []byte(drill), 0o600))
	return dir
}

// The server is stopped hard before, in and after every step; the run goes on
// where it was, and each action is done once.
func TestARunbookSurvivesAStopOfTheServerAtEveryStep(t *testing.T) {
	t.Parallel()
	servertest.Each(t, func(t *testing.T, database string) {
		s := servertest.New(t, servertest.Options{
			Database: database, Gateways: 1,
			Server: func(o *server.Options) { o.Metrics, o.RunbookDir = healthy(), drillDir(t) },
		})
		receipt := s.PostAlert(servertest.Alert{Annotations: map[string]string{"runbook_id": "drill"}})
		s.WaitCardSays("Runbook for this", "Drill")
		run := started(t, s.StartRunbook("carol", "drill", receipt.Incident, "stopped-at-every-step", map[string]string{"dependency": "llm"}))
		restarts, seen := 0, ""
		s.Eventually("the run to end", func() bool {
			r := s.RunbookRun(run.ID)
			state := fmt.Sprint(r.Status, r.Current)
			if r.Current < len(r.Steps) {
				state += r.Steps[r.Current].Status + r.Steps[r.Current].ActionRun
			}
			if state != seen {
				seen = state
				s.Restart()
				restarts++
			}
			if r.Status == "waiting" {
				step := r.Steps[r.Current]
				word := map[string]string{"decision": "go", "action": "run"}[step.Step.Kind]
				require.Contains(t, step.Answers, word, "%+v", step)
				// A stop may have swallowed the answer: it is given again for the same attempt.
				a := s.AnswerRunbook("carol", run.ID, step.Step.ID, step.Attempt, word)
				require.Contains(t, []int{http.StatusOK, http.StatusConflict}, a.Status, a.Body)
				s.Restart()
				restarts++
			}
			require.NotContains(t, []string{"failed", "cancelled"}, r.Status, "%+v", r)
			return r.Status == "succeeded"
		})
		r := s.RunbookRun(run.ID)
		for _, step := range r.Steps {
			require.Equal(t, "passed", step.Status, "%+v", step)
			require.Equal(t, 1, step.Attempt)
		}
		require.GreaterOrEqual(t, restarts, len(r.Steps))
		runs := s.Runs()
		require.Len(t, runs, 2, "no action twice")
		require.ElementsMatch(t, []string{r.Steps[1].ActionRun, r.Steps[5].ActionRun}, []string{runs[0].ID, runs[1].ID})
		requireSeen(t, s, "Here we go")
		s.Eventually("each line once in the thread", func() bool {
			n := 0
			for _, m := range s.Sim.Messages(servertest.Channel) {
				if strings.Contains(m.Visible(), "Drill") && strings.Contains(m.Visible(), "step 6/6") && strings.Contains(m.Visible(), "passed") {
					n++
				}
			}
			require.LessOrEqual(t, n, 1)
			return n == 1
		})
		// A decision is over with its answer and needs no line of its own.
		counts := map[string]int{}
		for _, e := range s.Audit() {
			if strings.HasPrefix(e.Verb, "runbook.") {
				counts[e.Verb]++
			}
		}
		require.Equal(t, map[string]int{"runbook.started": 1, "runbook.step": 5, "runbook.asked": 2, "runbook.answered": 2, "runbook.finished": 1}, counts)
		requireChainWhole(t, s)
		t.Logf("%s: %d hard stops", database, restarts)
	})
}

// Numbers that are none come out as null wherever metrics are read.
func TestC27_NoAnswerAboutMetricsIsA500(t *testing.T) {
	t.Parallel()
	odd := &gauges{values: map[string]float64{"": math.NaN()}}
	s := servertest.New(t, servertest.Options{WithoutSlack: true, Server: func(o *server.Options) { o.Metrics = odd }})
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64} {
		odd.set("", v)
		for _, path := range []string{
			"query?query=x", "query_range?query=x&start=2026-02-03T14:00:00Z&end=2026-02-03T14:00:00Z&step=1s",
			"signals", "signals?service=llm&environment=prod", "rules", "targets",
		} {
			a := s.Do(servertest.Request{Method: http.MethodGet, Path: "/api/v1/" + path, Token: s.APIToken("mallory")})
			require.Equal(t, http.StatusOK, a.Status, "C27 %s with %g: %s", path, v, a.Body)
			require.True(t, json.Valid([]byte(a.Body)), a.Body)
			if math.IsNaN(v) && path != "targets" {
				require.Contains(t, a.Body, `"value":null`, path)
				require.Contains(t, a.Body, `"service":"llm"`, path)
			}
		}
	}
	for _, path := range []string{
		"query", "query?query=x&time=now", "query_range?query=x&start=2026-02-03T14:00:00Z&end=2026-02-03T13:00:00Z&step=1s",
		"query_range?query=x&start=2026-02-03T14:00:00Z&end=2026-02-04T14:00:00Z&step=1s", "query_range?query=x&start=2026-02-03T14:00:00Z&end=2026-02-03T14:00:00Z&step=0s",
	} {
		a := s.Do(servertest.Request{Method: http.MethodGet, Path: "/api/v1/" + path, Token: s.APIToken("mallory")})
		require.Equal(t, http.StatusBadRequest, a.Status, "%s: %s", path, a.Body)
	}
}
