package notify_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"holdfast/server/alert"
	"holdfast/server/internal/prom/notify"
)

// intake stands where the server's intake does; it can refuse.
type intake struct {
	mu     sync.Mutex
	refuse error
	got    []alert.Notification
	bodies [][]byte
	asked  int
}

func (i *intake) deliver(_ context.Context, body []byte) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.asked++
	if i.refuse != nil {
		return i.refuse
	}
	n, err := alert.ParseAlertmanager(body, "embedded")
	if err != nil {
		return err
	}
	i.got, i.bodies = append(i.got, n), append(i.bodies, body)
	return nil
}

func (i *intake) refuses(err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.refuse = err
}

// taken returns what arrived since the last call.
func (i *intake) taken() []alert.Notification {
	i.mu.Lock()
	defer i.mu.Unlock()
	got := i.got
	i.got = nil
	return got
}

// quiet says whether nothing arrived since the last call of taken.
func (i *intake) quiet() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return len(i.got) == 0
}

// rig is a Sender that runs in a bubble of synctest.
type rig struct {
	t      testing.TB
	intake intake
	sender *notify.Sender
	stop   func()
	path   string
}

func newRig(t testing.TB) *rig {
	return &rig{t: t, path: filepath.Join(t.TempDir(), "alerts.json")}
}

func (r *rig) start() {
	r.t.Helper()
	s, err := notify.New(notify.Options{
		Journal: r.path, Rules: map[string]string{"r1": "QueueGrowing", "r2": "DecodeSlow", "r3": "QueueGrowing"},
		Deliver: r.intake.deliver, Settle: 20 * time.Second, ExternalURL: "https://holdfast.example",
	})
	require.NoError(r.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { s.Run(ctx); close(done) }()
	r.sender, r.stop = s, func() { cancel(); <-done }
}

// pass lets time go by in the bubble.
func pass(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // the clock of synctest: it costs no time
}

// evaluate reports one evaluation of a rule and lets the sender act on it.
func (r *rig) evaluate(rule string, firing ...notify.Alert) {
	r.sender.Evaluated(notify.Evaluation{Rule: rule, At: time.Now(), Firing: firing})
	synctest.Wait()
}

func labels(pairs ...string) map[string]string {
	m := map[string]string{"alertname": "QueueGrowing", "service": "llm", "environment": "prod"}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return m
}

func fires(set map[string]string) notify.Alert {
	return notify.Alert{Labels: set, Annotations: map[string]string{"summary": "120 requests are queued"}, StartsAt: time.Now()}
}

// statuses of the alerts by one label.
func statuses(n alert.Notification, label string) map[string]alert.Status {
	out := map[string]alert.Status{}
	for _, a := range n.Alerts {
		out[a.Labels[label]] = a.Status
	}
	return out
}

func TestAFiringAlertIsDeliveredAtOnceRepeatedAndResolved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.start()
		defer func() { r.stop() }()
		a := fires(labels("severity", "critical"))
		r.evaluate("r1", a)
		got := r.intake.taken()
		require.Len(t, got, 1)
		require.Equal(t, `{}:{environment="prod", service="llm"}`, got[0].GroupKey)
		require.Equal(t, map[string]string{"environment": "prod", "service": "llm"}, got[0].GroupLabels)
		require.Equal(t, a.Labels, got[0].CommonLabels)
		require.Equal(t, "120 requests are queued", got[0].CommonAnnotations["summary"])
		require.Equal(t, "embedded", got[0].Receiver)
		require.Equal(t, "https://holdfast.example", got[0].ExternalURL)
		require.Equal(t, alert.StatusFiring, got[0].Alerts[0].Status)
		require.WithinDuration(t, a.StartsAt, got[0].Alerts[0].StartsAt, time.Microsecond)

		// Evaluations that change nothing send nothing; the repeat refreshes the last report.
		for range 11 {
			pass(5 * time.Second)
			r.evaluate("r1", a)
		}
		require.Empty(t, r.intake.taken())
		pass(5 * time.Second)
		synctest.Wait()
		require.Len(t, r.intake.taken(), 1)

		r.evaluate("r1")
		got = r.intake.taken()
		require.Len(t, got, 1)
		require.Equal(t, alert.StatusResolved, got[0].Alerts[0].Status)
		require.WithinDuration(t, time.Now(), got[0].Alerts[0].EndsAt, time.Microsecond)
		pass(10 * time.Minute)
		synctest.Wait()
		require.Empty(t, r.intake.taken(), "a delivered end is not repeated")
	})
}

// The fingerprint must be the one that Prometheus and Alertmanager give the same
// alert, or a switch of sources opens every incident twice.
func TestC25TheIdentityIsThatOfTheLabels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.start()
		defer func() { r.stop() }()
		a, b := fires(labels("pod", "a")), fires(labels("pod", "b"))
		r.evaluate("r1", a, b)
		r.evaluate("r1", func() notify.Alert { a.Annotations = map[string]string{"value": "6"}; return a }(), b)
		pass(time.Minute)
		synctest.Wait()
		got := r.intake.taken()
		require.Len(t, got, 2)
		require.Len(t, got[0].Alerts, 2)
		for n, want := range got[0].Alerts {
			require.Equal(t, want.Fingerprint, got[1].Alerts[n].Fingerprint)
			var raw struct {
				Alerts []map[string]any `json:"alerts"`
			}
			require.NoError(t, json.Unmarshal(r.intake.bodies[0], &raw))
			delete(raw.Alerts[n], "fingerprint") // the intake computes it from the labels then
			raw.Alerts = raw.Alerts[n : n+1]
			body, err := json.Marshal(map[string]any{"version": "4", "groupKey": "x", "alerts": raw.Alerts})
			require.NoError(t, err)
			computed, err := alert.ParseAlertmanager(body, "x")
			require.NoError(t, err)
			require.Equal(t, want.Fingerprint, computed.Alerts[0].Fingerprint)
		}
	})
}

func TestC26RepeatsKeepAnAlertFresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.start()
		defer func() { r.stop() }()
		a := fires(labels())
		r.evaluate("r1", a)
		pass(10*time.Minute + time.Second)
		synctest.Wait()
		got := r.intake.taken()
		require.Len(t, got, 11, "the first, and one a minute")
		for _, n := range got {
			require.Equal(t, got[0].Alerts, n.Alerts)
		}
	})
}

func TestNothingIsLostWhileDeliveriesFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.start()
		defer func() { r.stop() }()
		r.intake.refuses(errors.New("the database is down"))
		short, long := fires(labels("pod", "short")), fires(labels("pod", "long"))
		r.evaluate("r1", short, long)
		pass(time.Minute)
		r.evaluate("r1", long) // short is over before anybody heard of it
		pass(9 * time.Minute)
		synctest.Wait()
		require.Less(t, r.intake.asked, 30, "the wait between attempts grows")
		require.Greater(t, r.intake.asked, 15, "but not beyond half a minute")
		r.intake.refuses(nil)
		pass(notify.DefaultLastRetry)
		synctest.Wait()
		got := r.intake.taken()
		require.Len(t, got, 1, "the latest state, not the history")
		require.Equal(t, map[string]alert.Status{"short": alert.StatusResolved, "long": alert.StatusFiring}, statuses(got[0], "pod"))
		r.evaluate("r1")
		got = r.intake.taken()
		require.Len(t, got, 1)
		require.Equal(t, map[string]alert.Status{"long": alert.StatusResolved}, statuses(got[0], "pod"))
	})
}

// One group that is refused for ever must not hold up the others.
func TestAGroupThatIsRefusedDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.start()
		defer func() { r.stop() }()
		r.intake.refuses(errors.New("no"))
		r.evaluate("r1", fires(labels()))
		r.intake.refuses(nil)
		elsewhere := labels("service", "embeddings")
		r.evaluate("r2", fires(elsewhere))
		got := r.intake.taken()
		require.Len(t, got, 1)
		require.Equal(t, "embeddings", got[0].GroupLabels["service"])
	})
}

func TestAFailedEvaluationResolvesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.start()
		defer func() { r.stop() }()
		a := fires(labels())
		r.evaluate("r1", a)
		r.sender.Evaluated(notify.Evaluation{Rule: "r1", At: time.Now(), Failed: true})
		pass(5 * time.Minute)
		synctest.Wait()
		for _, n := range r.intake.taken() {
			require.Equal(t, alert.StatusFiring, n.Alerts[0].Status)
		}
	})
}

// Two rules may raise one and the same alert; it is over when both are silent.
func TestAnAlertOfTwoRulesEndsWithTheSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.start()
		defer func() { r.stop() }()
		a := fires(labels())
		r.evaluate("r1", a)
		r.evaluate("r3", fires(labels()))
		require.Len(t, r.intake.taken(), 1)
		r.evaluate("r1")
		require.Empty(t, r.intake.taken())
		r.evaluate("r3")
		got := r.intake.taken()
		require.Len(t, got, 1)
		require.Equal(t, alert.StatusResolved, got[0].Alerts[0].Status)
	})
}

func TestALargeGroupIsSentInPartsThatNeverLookResolved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.start()
		defer func() { r.stop() }()
		var all []notify.Alert
		for i := range 2500 {
			all = append(all, fires(labels("pod", time.Duration(i).String())))
		}
		r.evaluate("r1", all...)
		require.Len(t, r.intake.taken(), 3)
		r.evaluate("r1", all[:1]...)
		got := r.intake.taken()
		require.Len(t, got, 3)
		require.Equal(t, alert.StatusFiring, got[0].Alerts[0].Status, "what fires comes first")
	})
}

func TestRestart(t *testing.T) {
	t.Parallel()
	// restart kills the sender without a word to it, and starts another.
	type phase struct {
		during func(r *rig, a notify.Alert)
		want   []alert.Status
		// sameStart: the episode goes on with the start it had.
		sameStart bool
	}
	for name, p := range map[string]phase{
		"an alert that fires again goes on": {
			func(r *rig, _ notify.Alert) {
				pass(12 * time.Second)
				r.evaluate("r1", fires(labels()))
			}, []alert.Status{alert.StatusFiring}, true,
		},
		"an alert that ended meanwhile is resolved once evaluation has settled": {
			func(r *rig, _ notify.Alert) {
				for range 4 { // enough evaluations, and 20 s have not passed yet
					pass(4 * time.Second)
					r.evaluate("r1")
					r.evaluate("r3")
					require.True(r.t, r.intake.quiet())
				}
				pass(5 * time.Second)
				synctest.Wait()
			}, []alert.Status{alert.StatusResolved}, true,
		},
		"a pending alert is waited for": {
			func(r *rig, _ notify.Alert) {
				for range 12 {
					pass(5 * time.Second)
					r.evaluate("r3")
					r.sender.Evaluated(notify.Evaluation{Rule: "r1", At: time.Now(), Pending: []map[string]string{labels()}})
				}
				synctest.Wait()
				require.True(r.t, r.intake.quiet())
				r.evaluate("r1", fires(labels()))
			}, []alert.Status{alert.StatusFiring}, true,
		},
		"a rule that fails says nothing": {
			func(r *rig, _ notify.Alert) {
				for range 12 {
					pass(5 * time.Second)
					r.evaluate("r3")
					r.sender.Evaluated(notify.Evaluation{Rule: "r1", At: time.Now(), Failed: true})
				}
				synctest.Wait()
			}, nil, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				r.start()
				a := fires(labels())
				r.evaluate("r1", a)
				require.Len(t, r.intake.taken(), 1)
				saved, err := os.ReadFile(r.path)
				require.NoError(t, err)
				r.stop()
				require.NoError(t, os.WriteFile(r.path, saved, 0o600)) // as kill -9 leaves it
				pass(3 * time.Minute)

				r.start()
				defer func() { r.stop() }()
				p.during(r, a)
				var got []alert.Status
				for _, n := range r.intake.taken() {
					got = append(got, n.Alerts[0].Status)
					if p.sameStart {
						require.WithinDuration(t, a.StartsAt, n.Alerts[0].StartsAt, time.Microsecond)
					}
				}
				require.Equal(t, p.want, got)
			})
		})
	}
}

func TestAnEndThatWasNotDeliveredSurvivesTheRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.start()
		r.evaluate("r1", fires(labels()))
		r.intake.refuses(errors.New("no"))
		pass(time.Second)
		ended := time.Now()
		r.evaluate("r1")
		r.stop()
		r.intake.refuses(nil)
		r.intake.taken()
		pass(time.Hour)
		r.start()
		synctest.Wait()
		got := r.intake.taken()
		require.Len(t, got, 1)
		require.Equal(t, alert.StatusResolved, got[0].Alerts[0].Status)
		require.WithinDuration(t, ended, got[0].Alerts[0].EndsAt, time.Microsecond)
		r.stop()
		r.start()
		synctest.Wait()
		r.stop()
		require.Empty(t, r.intake.taken())
	})
}

func TestAnAlertWhoseRuleIsGoneIsResolved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		require.NoError(t, os.WriteFile(r.path, []byte(
			`{"version":1,"alerts":[{"labels":{"alertname":"Removed"},"starts_at":"2026-02-03T10:00:00Z"},{"labels":{}}]}`), 0o600))
		r.start()
		defer func() { r.stop() }()
		pass(21 * time.Second)
		synctest.Wait()
		got := r.intake.taken()
		require.Len(t, got, 1)
		require.Equal(t, "Removed", got[0].Alerts[0].Labels["alertname"])
		require.Equal(t, alert.StatusResolved, got[0].Alerts[0].Status)
	})
}

func TestAnUnreadableJournalIsPutAside(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]string{"garbage": "\x00\x00", "a later version": `{"version":9}`, "empty": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "alerts.json")
			require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
			_, err := notify.New(notify.Options{Journal: path, Deliver: func(context.Context, []byte) error { return nil }})
			require.NoError(t, err)
			kept, err := os.ReadFile(path + ".unreadable")
			require.NoError(t, err)
			require.Equal(t, content, string(kept))
		})
	}
}

func TestAJournalThatCannotBeWrittenStopsNoAlert(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.path = filepath.Join(t.TempDir(), "gone", "alerts.json")
		r.start()
		defer func() { r.stop() }()
		r.evaluate("r1", fires(labels()))
		require.Len(t, r.intake.taken(), 1)
	})
}

// Whatever happens in whatever order — alerts come and go, deliveries fail, the
// process is killed — once things are quiet and deliveries succeed, the receiver
// believes of every alert what is true, and no episode began twice.
func TestTheReceiverAlwaysLearnsTheTruth(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		steps := rapid.SliceOfN(rapid.IntRange(0, 9), 1, 40).Draw(rt, "steps")
		believed := map[string]alert.Status{}
		synctest.Test(t, func(t *testing.T) {
			r := &rig{t: t, path: filepath.Join(dir, "alerts.json")}
			_ = os.Remove(r.path)
			r.start()
			truth := map[string]notify.Alert{}
			evaluate := func() {
				now := make([]notify.Alert, 0, len(truth))
				for a := range maps.Values(truth) {
					now = append(now, a)
				}
				r.evaluate("r1", now...)
				r.evaluate("r3")
			}
			for _, step := range steps {
				switch {
				case step < 6: // a, b or c flips
					pod := string(rune('a' + step%3))
					if _, ok := truth[pod]; ok {
						delete(truth, pod)
					} else {
						truth[pod] = fires(labels("pod", pod))
					}
				case step == 6:
					r.intake.refuses(errors.New("down"))
				case step == 7:
					r.intake.refuses(nil)
				default:
					r.stop()
					r.start()
				}
				pass(5 * time.Second)
				evaluate()
			}
			r.intake.refuses(nil)
			for range 20 {
				pass(5 * time.Second)
				evaluate()
			}
			r.stop()
			for _, n := range r.intake.taken() {
				for _, a := range n.Alerts {
					believed[a.Labels["pod"]] = a.Status
				}
			}
			for _, pod := range []string{"a", "b", "c"} {
				_, want := truth[pod]
				if want != (believed[pod] == alert.StatusFiring) {
					rt.Fatalf("%s: firing is %v, the receiver believes %q", pod, want, believed[pod])
				}
			}
		})
	})
}
