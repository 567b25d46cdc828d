package notify

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"
)

// Defaults of Options.
const (
	// DefaultRepeat refreshes the time of last report well within the time after
	// which a silent alert counts as stale.
	DefaultRepeat = time.Minute
	// DefaultTimeout bounds one delivery.
	DefaultTimeout = 10 * time.Second
	// DefaultFirstRetry doubles after every failure, up to DefaultLastRetry.
	DefaultFirstRetry = time.Second
	// DefaultLastRetry bounds how late an alert is once deliveries succeed again.
	DefaultLastRetry = 30 * time.Second
)

// settledEvaluations is how often a rule must have been evaluated after a start
// before its silence counts: Prometheus restores the state of pending alerts after
// the second evaluation.
const settledEvaluations = 3

// Alert is one firing alert as an evaluation found it.
type Alert struct {
	Labels      map[string]string
	Annotations map[string]string
	// StartsAt is when it began to fire.
	StartsAt time.Time
	// GeneratorURL shows the expression; may be empty.
	GeneratorURL string
}

// Evaluation is what one evaluation of one alerting rule found.
type Evaluation struct {
	// Rule is its key in Options.Rules.
	Rule string
	At   time.Time
	// Failed says that the evaluation failed: nothing is known about its alerts.
	Failed bool
	Firing []Alert
	// Pending are the labels of the alerts whose time has not come yet.
	Pending []map[string]string
}

// Options configure a Sender. Zero durations take their defaults.
type Options struct {
	// Journal is the file that remembers what was sent; its folder must exist.
	Journal string
	// Rules gives the alert name of every alerting rule by its key.
	Rules map[string]string
	// Deliver hands over the JSON of one Alertmanager webhook of version "4".
	// Required. After an error the group is sent again, with what is true by then.
	Deliver func(ctx context.Context, webhook []byte) error
	// Settle is how long after the start an alert of the journal may stay unseen
	// before it counts as over.
	Settle time.Duration
	// Repeat is how often a firing group is sent again.
	Repeat time.Duration
	// Timeout bounds one delivery.
	Timeout time.Duration
	// FirstRetry and LastRetry bound the wait after a failed delivery.
	FirstRetry, LastRetry time.Duration
	// ExternalURL is this server's address for people; may be empty.
	ExternalURL string
	// Delivered is told the outcome of each delivery; may be nil.
	Delivered func(error)
	// Logger may be nil.
	Logger *slog.Logger
}

// Sender keeps the state of all alerts and delivers it.
type Sender struct {
	o    Options
	log  *slog.Logger
	wake chan struct{}

	mu     sync.Mutex
	rules  map[string]*rule
	alerts map[string]*alert // by fingerprint
	groups map[string]*group // by group key
	// settled is when silence begins to count; zero before Run.
	settled time.Time
	// unwritten says that the journal is behind the state.
	unwritten bool
}

// rule is what is known about one alerting rule since the start.
type rule struct {
	name        string
	evaluations int
	failed      bool
	firing      map[string]*alert
	pending     map[string]bool
}

// alert is one episode of one alert.
type alert struct {
	Alert
	fingerprint string
	group       *group
	// claims are the rules that say it fires.
	claims map[string]bool
	// endsAt is zero while it fires.
	endsAt time.Time
	// unknown: from the journal, not seen since the start.
	unknown bool
}

// group is what is sent together.
type group struct {
	key     string
	labels  map[string]string
	members map[string]*alert // by fingerprint
	// news says that there is something to send before the next repeat.
	news bool
	// due is when it may be sent next: with news at once, after a failure later.
	due      time.Time
	failures int
	// sent is when it was last delivered.
	sent time.Time
}

// New makes a Sender that knows the alerts of its journal. An unreadable journal
// is put aside: alerts that ended while nothing ran stay open then.
func New(o Options) (*Sender, error) {
	if o.Deliver == nil || o.Journal == "" {
		return nil, errors.New("notify: Options need Deliver and Journal")
	}
	o.Repeat = cmp.Or(o.Repeat, DefaultRepeat)
	o.Timeout = cmp.Or(o.Timeout, DefaultTimeout)
	o.FirstRetry = cmp.Or(o.FirstRetry, DefaultFirstRetry)
	o.LastRetry = cmp.Or(o.LastRetry, DefaultLastRetry)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Delivered == nil {
		o.Delivered = func(error) {}
	}
	s := &Sender{
		o: o, log: o.Logger, wake: make(chan struct{}, 1),
		rules: map[string]*rule{}, alerts: map[string]*alert{}, groups: map[string]*group{},
	}
	for key, name := range o.Rules {
		s.rules[key] = &rule{name: name, firing: map[string]*alert{}}
	}
	return s, s.recall()
}

// Evaluated takes in what an evaluation found. It does not wait for deliveries.
// Evaluations of one rule must come in their order.
func (s *Sender) Evaluated(e Evaluation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.rules[e.Rule]
	if r == nil {
		return
	}
	r.failed = e.Failed
	if e.Failed {
		return
	}
	r.evaluations++
	r.pending = make(map[string]bool, len(e.Pending))
	for _, labels := range e.Pending {
		r.pending[fingerprint(labels)] = true
	}
	before := r.firing
	r.firing = make(map[string]*alert, len(e.Firing))
	for _, a := range e.Firing {
		found := s.fires(e, a)
		r.firing[found.fingerprint] = found
	}
	for key, a := range before {
		if r.firing[key] != a {
			s.silent(e, a)
		}
	}
	s.signal()
}

// signal wakes Run when an evaluation brought something for it to do.
func (s *Sender) signal() {
	for _, a := range s.alerts {
		if a.unknown || a.group.news {
			select {
			case s.wake <- struct{}{}:
			default:
			}
			return
		}
	}
}

// fires takes in one firing alert: a new episode, one known before the restart,
// or one that goes on.
func (s *Sender) fires(e Evaluation, in Alert) *alert {
	key := fingerprint(in.Labels)
	a := s.alerts[key]
	switch {
	case a == nil || !a.endsAt.IsZero():
		// The end of an episode that could not be delivered yet is implied by the
		// later start of this one.
		if a != nil && !in.StartsAt.After(a.endsAt) {
			in.StartsAt = e.At
		}
		a = s.remember(key, in)
		a.group.news, s.unwritten = true, true
	case a.unknown:
		a.unknown = false
		a.group.news = true
	}
	a.Annotations, a.GeneratorURL = in.Annotations, in.GeneratorURL
	a.claims[e.Rule] = true
	return a
}

// remember puts an episode into the state.
func (s *Sender) remember(key string, in Alert) *alert {
	labels, groupKey := grouping(in.Labels)
	g := s.groups[groupKey]
	if g == nil {
		g = &group{key: groupKey, labels: labels, members: map[string]*alert{}}
		s.groups[groupKey] = g
	}
	a := &alert{Alert: in, fingerprint: key, group: g, claims: map[string]bool{}}
	s.alerts[key], g.members[key] = a, a
	return a
}

// silent ends an alert that no rule claims any more.
func (s *Sender) silent(e Evaluation, a *alert) {
	delete(a.claims, e.Rule)
	if len(a.claims) == 0 && a.endsAt.IsZero() {
		s.end(a, e.At)
	}
}

func (s *Sender) end(a *alert, at time.Time) {
	a.unknown, a.endsAt = false, at
	a.group.news, s.unwritten = true, true
}

// settle ends the alerts of the journal that nobody sees although evaluation has
// settled. What is pending, or belongs to a rule that fails, stays unknown.
func (s *Sender) settle(now time.Time) {
	if now.Before(s.settled) {
		return
	}
	for key, a := range s.alerts {
		if a.unknown && s.over(key, a) {
			s.end(a, now)
		}
	}
}

// over says whether every rule that could have fired the alert is silent about
// it. An alert whose rule is gone is over as well.
func (s *Sender) over(key string, a *alert) bool {
	for _, r := range s.rules {
		if r.name == a.Labels[alertName] && (r.failed || r.evaluations < settledEvaluations || r.pending[key]) {
			return false
		}
	}
	return true
}

// Run delivers until ctx ends. Call it once.
func (s *Sender) Run(ctx context.Context) {
	s.mu.Lock()
	s.settled = time.Now().Add(s.o.Settle)
	s.mu.Unlock()
	for ctx.Err() == nil {
		wait := s.step(ctx)
		if wait <= 0 {
			continue
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-s.wake:
		case <-timer.C:
		}
		timer.Stop()
	}
	s.writeJournal()
}

// step writes the journal and makes the deliveries that are due; it returns how
// long nothing is due after that.
func (s *Sender) step(ctx context.Context) time.Duration {
	s.mu.Lock()
	s.settle(time.Now())
	s.mu.Unlock()
	// Before anything is sent: what the receiver knows must be known after a crash.
	s.writeJournal()
	if g := s.nextDue(time.Now()); g != nil {
		s.deliver(ctx, g)
		return 0
	}
	return s.untilDue(time.Now())
}

// nextDue is the group that is due the longest.
func (s *Sender) nextDue(now time.Time) *group {
	s.mu.Lock()
	defer s.mu.Unlock()
	var next *group
	var since time.Time
	for _, g := range s.groups {
		at, due := g.dueAt(s.o.Repeat)
		if !due || at.After(now) {
			continue
		}
		if next == nil || at.Before(since) || (at.Equal(since) && g.key < next.key) {
			next, since = g, at
		}
	}
	return next
}

// dueAt is when a group is to be sent: never while it has nothing to say.
func (g *group) dueAt(repeat time.Duration) (time.Time, bool) {
	if g.news {
		return g.due, true
	}
	for _, a := range g.members {
		if !a.unknown {
			return g.sent.Add(repeat), true
		}
	}
	return time.Time{}, false
}

// untilDue is how long to wait when nothing is due now.
func (s *Sender) untilDue(now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	wait := s.o.Repeat
	if d := s.settled.Sub(now); d > 0 {
		wait = min(wait, d)
	}
	for _, g := range s.groups {
		if at, due := g.dueAt(s.o.Repeat); due {
			wait = min(wait, at.Sub(now))
		}
	}
	if s.unwritten {
		wait = min(wait, s.o.LastRetry)
	}
	return max(wait, time.Millisecond)
}

// deliver sends the latest state of one group.
func (s *Sender) deliver(ctx context.Context, g *group) {
	s.mu.Lock()
	members, bodies := s.render(g)
	g.news = false
	s.mu.Unlock()
	err := s.send(ctx, bodies)
	if err != nil && ctx.Err() != nil {
		err = ctx.Err() // the stop, not the receiver
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.failed(ctx, g, err)
		return
	}
	if g.failures > 0 {
		s.log.InfoContext(ctx, "alerts are delivered again", "group", g.key, "failures", g.failures)
	}
	g.failures, g.due, g.sent = 0, time.Time{}, time.Now()
	s.forget(g, members)
}

func (s *Sender) send(ctx context.Context, bodies [][]byte) error {
	for _, body := range bodies {
		one, cancel := context.WithTimeout(ctx, s.o.Timeout)
		err := s.o.Deliver(one, body)
		cancel()
		s.o.Delivered(err)
		if err != nil {
			return err
		}
	}
	return nil
}

// failed puts the group back, for later.
func (s *Sender) failed(ctx context.Context, g *group, err error) {
	wait := s.o.FirstRetry << min(g.failures, 16)
	if wait > s.o.LastRetry || wait <= 0 {
		wait = s.o.LastRetry
	}
	g.news, g.due = true, time.Now().Add(wait)
	g.failures++
	if ctx.Err() == nil {
		s.log.WarnContext(ctx, "alerts could not be delivered, they are sent again", "group", g.key,
			"failures", g.failures, "retry_in", wait.String(), "error", err.Error())
	}
}

// forget drops the episodes whose end was delivered just now, and a group without
// any. An alert that ended while the delivery was under way is not among them.
func (s *Sender) forget(g *group, delivered []member) {
	for _, m := range delivered {
		if m.resolved && s.alerts[m.fingerprint] == m.alert {
			delete(s.alerts, m.fingerprint)
			delete(g.members, m.fingerprint)
			s.unwritten = true
		}
	}
	if len(g.members) == 0 {
		delete(s.groups, g.key)
	}
}
