package store_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/actions"
	"holdfast/actions/actionstest"
	"holdfast/actions/builtin"
	"holdfast/gpuguard/policy"
	"holdfast/gpuguard/signals"
	"holdfast/runbooks"
	"holdfast/server/fleet"
	"holdfast/server/identity"
	"holdfast/server/internal/store"
	"holdfast/server/internal/store/storetest"
	"holdfast/server/outbox"
)

// runbookVictimEnv makes this test binary a server that runs a runbook until it
// is killed or the run has ended.
const runbookVictimEnv = "HOLDFAST_STORE_RUNBOOK_VICTIM"

// killedBook has two of every kind of step that goes on by itself, four actions
// on four parts of the policy, one of them pressed, and a decision.
const killedBook = `id: killed
title: Killed
summary: A run whose server dies again and again.
steps:
  - {id: a, phase: isolate, title: A, kind: action, command: c, expect: e, action: trip_breaker, params: {dependency: llm}, ttl: 10m, automatic: true}
  - {id: b, phase: isolate, title: B, kind: note, command: c, expect: e, text: b}
  - {id: c, phase: isolate, title: C, kind: check, command: c, expect: e, criterion: {query: x, is: "<", value: 5}, timeout: 1m}
  - {id: d, phase: locate, title: D, kind: decision, command: c, expect: e, question: "Well?", choices: [{id: on, label: Go on}]}
  - {id: e, phase: locate, title: E, kind: action, command: c, expect: e, action: set_rate_limit, params: {target: "route:chat", requests_per_second: "5"}, ttl: 10m}
  - {id: f, phase: locate, title: F, kind: wait, command: c, expect: e, wait: 1s}
  - {id: g, phase: restore, title: G, kind: action, command: c, expect: e, action: trip_breaker, params: {dependency: milvus}, ttl: 10m, automatic: true, criterion: {query: x, is: "<", value: 5}}
  - {id: h, phase: restore, title: H, kind: action, command: c, expect: e, action: set_rate_limit, params: {target: "route:search", requests_per_second: "5"}, ttl: 10m, automatic: true}
  - {id: i, phase: restore, title: I, kind: note, command: c, expect: e, text: i}
`

var killedActor = actions.Actor{PersonID: "p1", Name: "Alice", Channel: "console"}

// one answers every query with 1.
type one struct{}

func (one) Query(context.Context, string, time.Time) ([]signals.Sample, error) {
	return []signals.Sample{{Value: 1, At: time.Now()}}, nil
}

// runbookServer is the part of a server that moves runbooks, with a gateway.
type runbookServer struct {
	fleet    *fleet.Service
	actions  *actions.Engine
	runbooks *runbooks.Engine
}

func newRunbookServer(s *store.Store) (*runbookServer, error) {
	f, err := fleet.New(fleet.Options{Store: s.Fleet()})
	if err != nil {
		return nil, err
	}
	registry, err := actions.NewRegistry(builtin.All()...)
	if err != nil {
		return nil, err
	}
	a, err := actions.NewEngine(actions.Options{Store: s.Actions(), Registry: registry, PollEvery: 5 * time.Millisecond, VerifyAfter: time.Millisecond, VerifyEvery: 5 * time.Millisecond, RetryAfter: 20 * time.Millisecond})
	if err != nil {
		return nil, err
	}
	lib, err := runbooks.LoadFS(fstest.MapFS{"killed.yaml": {Data: []byte(killedBook)}})
	if err != nil {
		return nil, err
	}
	b, err := runbooks.NewEngine(runbooks.Options{Store: s.Runbooks(), Actions: a, Library: lib, Metrics: one{}, PollEvery: 5 * time.Millisecond, CheckEvery: 5 * time.Millisecond, RetryAfter: 20 * time.Millisecond})
	return &runbookServer{f, a, b}, err
}

// ack is a gateway that takes the newest policy and reports it.
func (s *runbookServer) ack(ctx context.Context) error {
	e, err := s.fleet.Effective(ctx)
	if err != nil {
		return err
	}
	state := policy.State{Breakers: map[string]policy.BreakerState{}, Limits: map[string]policy.Limit{}}
	for name, d := range e.Document.Dependencies {
		state.Breakers[name] = policy.BreakerState{State: "closed"}
		if d.Breaker.Forced == policy.ForcedOpen {
			state.Breakers[name] = policy.BreakerState{State: "forced_open"}
		}
	}
	for name, r := range e.Document.Routes {
		if r.Limit != nil {
			state.Limits[policy.RouteLimitPath(name)] = *r.Limit
		}
	}
	for _, o := range e.Overrides {
		state.ActiveOverrides = append(state.ActiveOverrides, o.ID)
	}
	ctx = identity.WithPrincipal(ctx, identity.Principal{
		Kind: identity.PrincipalToken, TokenKind: identity.TokenGateway, TokenID: "t1", Name: "gateways", Channel: identity.ChannelGateway,
	})
	return s.fleet.Ack(ctx, policy.Ack{Gateway: "gw-1", Instance: "i1", Lineage: e.Lineage, Revision: e.Revision, Result: policy.AckApplied, State: state})
}

// move does what there is to do once: the gateway's part and the person's.
func (s *runbookServer) move(ctx context.Context, id string) (runbooks.Run, error) {
	if err := s.ack(ctx); err != nil {
		return runbooks.Run{}, err
	}
	run, err := s.runbooks.Find(ctx, id)
	if err != nil || run.Status != runbooks.StatusWaiting {
		return run, err
	}
	words := run.Answers(run.Current)
	if len(words) == 0 {
		return run, nil
	}
	_, err = s.runbooks.Answer(ctx, id, runbooks.AnswerRequest{
		Step: run.Runbook.Steps[run.Current].ID, Attempt: run.Steps[run.Current].Attempt, Answer: words[0], Actor: killedActor,
	})
	if errors.Is(err, runbooks.ErrWrongState) {
		err = nil
	}
	return run, err
}

// runbookVictim runs the runbook and says on its output when the run moved. It
// ends with 0 when the run has ended.
func runbookVictim(url string) {
	err := func() error {
		ctx := context.Background()
		db, err := store.Open(ctx, store.Options{URL: url})
		if err != nil {
			return err
		}
		s, err := newRunbookServer(db)
		if err != nil {
			return err
		}
		s.actions.Start(ctx)
		s.runbooks.Start(ctx)
		run, err := s.runbooks.Launch(ctx, runbooks.StartRequest{Runbook: "killed", Actor: killedActor, Key: "one-key-for-all", IncidentID: "i1"})
		if err != nil && !errors.Is(err, runbooks.ErrDuplicate) {
			return err
		}
		for seen := int64(0); ; {
			if run, err = s.move(ctx, run.ID); err != nil {
				return err
			}
			if run.Version != seen {
				seen = run.Version
				fmt.Println(run.Version, run.Status, run.Current) //nolint:forbidigo // the parent process reads it
			}
			if !run.Live() && run.Version > 0 {
				return nil
			}
		}
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// A server that is killed with kill -9 between any two steps loses nothing and
// repeats nothing: each step ends once, each action is done once.
func TestAKilledServerRepeatsNoStepOfARunbook(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		s, err := newRunbookServer(db.Store)
		require.NoError(t, err)
		_, err = s.fleet.Init(t.Context(), actionstest.Document())
		require.NoError(t, err)
		inTx(t, db, func(tx *store.Tx) {
			in := newIncident("i1", "g1")
			require.NoError(t, tx.InsertIncident(&in))
			require.NoError(t, tx.SavePerson(identity.Person{ID: "p1", Handle: "alice", Name: "Alice", Role: identity.RoleResponder}))
		})
		kills, ended := 0, false
		for !ended {
			require.Less(t, kills, 200, "it never ends")
			ended = runVictim(t, db)
			kills++
		}
		t.Logf("%s: killed %d times", db.Kind, kills-1)

		runs, err := s.runbooks.List(t.Context(), runbooks.Filter{})
		require.NoError(t, err)
		require.Len(t, runs, 1)
		run := runs[0]
		require.Equal(t, runbooks.StatusSucceeded, run.Status, "%+v", run.Steps)
		var asked []string
		for i, step := range run.Steps {
			require.Equal(t, runbooks.StepPassed, step.Status, "step %d: %+v", i, step)
			require.Equal(t, 1, step.Attempt)
			if step.ActionRun != "" {
				asked = append(asked, step.ActionRun)
			}
		}
		done, err := s.actions.List(t.Context(), time.Time{}, 100)
		require.NoError(t, err)
		ids := make([]string, len(done))
		for i, a := range done {
			ids[i] = a.ID
			require.Equal(t, "Alice", a.Requester.Name)
		}
		slices.Sort(ids)
		slices.Sort(asked)
		require.Len(t, ids, 4)
		require.Equal(t, asked, ids, "no action twice, and none that no step knows of")
		head, err := s.fleet.Head(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 5, head.Revision, "the base and one revision for each action")

		chainAll(t, db)
		verbs := map[string]int{}
		for _, e := range export(t, db, 1) {
			if strings.HasPrefix(e.Verb, "runbook.") {
				verbs[e.Verb]++
			}
		}
		require.Equal(t, map[string]int{"runbook.started": 1, "runbook.step": 8, "runbook.asked": 2, "runbook.answered": 2, "runbook.finished": 1}, verbs)
		_, err = db.VerifyAudit(t.Context())
		require.NoError(t, err)
		lines := map[string]int{}
		for _, line := range deliverAll(t, db.Outbox()) {
			if strings.HasPrefix(line, outbox.KindThread) {
				lines[line]++
			}
		}
		for line, n := range lines {
			require.Equal(t, 1, n, line)
		}
	})
}

// runVictim lets a server run until it has said a few things, and kills it;
// true when the run ended before that.
func runVictim(t *testing.T, db *storetest.DB) bool {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), runbookVictimEnv+"="+victimURL(t, db))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	left := 1 + rand.N(3)
	for scan := bufio.NewScanner(out); scan.Scan(); {
		if left--; left == 0 {
			// At any moment of what follows, not always right behind a commit.
			timer := time.NewTimer(rand.N(10 * time.Millisecond))
			<-timer.C
			require.NoError(t, cmd.Process.Kill())
		}
	}
	return cmd.Wait() == nil
}
