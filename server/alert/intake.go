package alert

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"holdfast/server/identity"
	"holdfast/server/incident"
)

// Defaults of Options.
const (
	// DefaultConcurrent is how many deliveries are worked on at once.
	DefaultConcurrent = 4
	// DefaultWaiting is how many more may wait for their turn.
	DefaultWaiting = 64
	// DefaultWaitingBytes is how much the bodies of all these may take together.
	DefaultWaitingBytes = 128 << 20
)

// Options configure the Intake.
type Options struct {
	// Store is required.
	Store Store
	// Logger and Registerer may be nil.
	Logger     *slog.Logger
	Registerer prometheus.Registerer
	// Concurrent, Waiting and WaitingBytes take their defaults when zero.
	Concurrent   int
	Waiting      int
	WaitingBytes int64
}

// Intake takes notifications in.
type Intake struct {
	store   Store
	log     *slog.Logger
	gate    *gate
	metrics *metrics
}

// New makes an Intake. It panics without a Store, a fault of the program.
func New(o Options) *Intake {
	if o.Store == nil {
		panic("alert.New: Options.Store is nil")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Concurrent <= 0 {
		o.Concurrent = DefaultConcurrent
	}
	if o.Waiting <= 0 {
		o.Waiting = DefaultWaiting
	}
	if o.WaitingBytes <= 0 {
		o.WaitingBytes = DefaultWaitingBytes
	}
	return &Intake{
		store: o.Store, log: o.Logger,
		gate: newGate(o.Concurrent, o.Waiting, o.WaitingBytes), metrics: newMetrics(o.Registerer),
	}
}

// Accept stores a notification and brings its incident up to date in one
// transaction (a hook token, or holdfast itself). When it returns without an
// error the notification is committed; the same one again changes nothing but
// counters. ErrInvalid without a group or alerts. ErrOverloaded when too many wait: nothing was written, the source
// should try again.
func (i *Intake) Accept(ctx context.Context, n Notification) (Receipt, error) {
	if err := permit(ctx); err != nil {
		return Receipt{}, err
	}
	if n.GroupKey == "" || len(n.Alerts) == 0 {
		return Receipt{}, fmt.Errorf("%w: a group key and at least one alert are needed", ErrInvalid)
	}
	leave, err := i.gate.enter(ctx, int64(len(n.Raw)))
	if err != nil {
		i.metrics.delivery("overloaded")
		return Receipt{}, err
	}
	defer leave()
	receipt, err := i.accept(ctx, n)
	if err != nil {
		i.metrics.delivery("failed")
		return Receipt{}, fmt.Errorf("take in alerts: %w", err)
	}
	i.metrics.accepted(receipt)
	i.log.DebugContext(ctx, "alerts taken in", "source", n.Source, "alerts", len(n.Alerts), "new", receipt.New,
		"resolved", receipt.Resolved, "stale", receipt.Stale, "incident", receipt.Number)
	return receipt, nil
}

func permit(ctx context.Context) error {
	if p, ok := identity.From(ctx); ok && p.Kind == identity.PrincipalSystem {
		return nil
	}
	_, err := identity.RequireToken(ctx, identity.TokenHook)
	return err
}

// relockError asks for the transaction to be run again with more locks, in
// order, because members of the delivery belong to incidents of other groups.
type relockError struct{ groups []string }

func (e *relockError) Error() string {
	return fmt.Sprintf("%d more groups to lock", len(e.groups))
}

const maxRelocks = 5

func (i *Intake) accept(ctx context.Context, n Notification) (Receipt, error) {
	groups := []string{n.GroupKey}
	for range maxRelocks {
		var receipt Receipt
		err := i.store.InTx(ctx, func(tx Tx) (err error) {
			receipt, err = take(tx, n, groups)
			return err
		})
		again, ok := errors.AsType[*relockError](err)
		if !ok {
			return receipt, err
		}
		groups = append(groups, again.groups...)
		slices.Sort(groups)
		groups = slices.Compact(groups)
	}
	return Receipt{}, fmt.Errorf("%w: its alerts keep moving between groups", ErrOverloaded)
}

// take is the transaction of one delivery, under its locks.
func take(tx Tx, n Notification, groups []string) (Receipt, error) {
	for _, k := range lockKeys(n, groups) {
		if err := tx.Lock(k); err != nil {
			return Receipt{}, err
		}
	}
	if err := tx.SaveRaw(n.Source, n.Raw); err != nil {
		return Receipt{}, err
	}
	b := newBatch(tx, n)
	for _, in := range n.Alerts {
		if err := b.take(in); err != nil {
			return Receipt{}, err
		}
	}
	if missing := without(b.foreign(), groups); len(missing) > 0 {
		return Receipt{}, &relockError{missing}
	}
	g := &grouping{tx: tx, n: n, b: b, now: b.now, before: map[string]shown{}}
	if err := g.assign(); err != nil {
		return Receipt{}, err
	}
	return g.settle()
}

// shards bounds how many locks a big delivery takes.
const shards = 32

// lockKeys are the locks of a delivery in the order in which every delivery
// takes them. The groups serialise incidents; the shards serialise alerts, which
// several routes can deliver at once under different groups.
func lockKeys(n Notification, groups []string) []string {
	var keys []string
	for _, a := range n.Alerts {
		h := fnv.New32a()
		_, _ = h.Write([]byte(a.Fingerprint)) // a hash never fails
		if k := fmt.Sprintf("alerts:%02d", h.Sum32()%shards); !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
	}
	for _, g := range groups {
		keys = append(keys, incident.LockKey(g))
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

func without(list, known []string) []string {
	return slices.DeleteFunc(list, func(s string) bool { return slices.Contains(known, s) })
}

// settle refreshes every incident that a delivery touched and says what became of it.
func (g *grouping) settle() (Receipt, error) {
	receipt := Receipt{
		New: g.b.count[effectNew], Updated: g.b.count[effectUpdated], Stale: g.b.count[effectStale],
		Resolved:  g.b.count[effectResolved] + g.b.count[effectClosed],
		Duplicate: g.b.count[effectDuplicate],
	}
	ids := g.b.incidents()
	if g.current != nil && !slices.Contains(ids, g.current.ID) {
		ids = append(ids, g.current.ID)
	}
	for _, id := range ids {
		in, err := g.incident(id)
		if err != nil {
			return receipt, err
		}
		if in, err = g.refresh(in); err != nil {
			return receipt, err
		}
		if receipt.Incident == "" || g.current != nil && id == g.current.ID {
			receipt.Incident, receipt.Number = in.ID, in.Number
		}
	}
	if len(g.b.order) > 0 {
		g.tx.Touch("alerts", g.n.GroupKey)
	}
	return receipt, nil
}

func (g *grouping) incident(id string) (incident.Incident, error) {
	if g.current != nil && g.current.ID == id {
		return *g.current, nil
	}
	in, err := g.tx.Incident(id)
	g.before[id] = shownOf(in)
	return in, err
}

const maxList = 500

// Alerts lists occurrences with an ID below before (0: from the newest), newest
// first (viewer). A limit outside 1–500 becomes 500.
func (i *Intake) Alerts(ctx context.Context, before int64, limit int) ([]Occurrence, error) {
	return i.list(ctx, limit, func(tx Tx, limit int) ([]Occurrence, error) { return tx.Alerts(before, limit) })
}

// Members lists the alerts of an incident, firing first (viewer).
func (i *Intake) Members(ctx context.Context, incidentID string, limit int) ([]Occurrence, error) {
	return i.list(ctx, limit, func(tx Tx, limit int) ([]Occurrence, error) {
		if _, err := tx.Incident(incidentID); err != nil {
			return nil, err
		}
		return tx.IncidentOccurrences(incidentID, limit)
	})
}

func (i *Intake) list(ctx context.Context, limit int, read func(Tx, int) ([]Occurrence, error)) ([]Occurrence, error) {
	if _, err := identity.Require(ctx, identity.RoleViewer); err != nil {
		return nil, err
	}
	if limit < 1 || limit > maxList {
		limit = maxList
	}
	var out []Occurrence
	err := i.store.View(ctx, func(tx Tx) (err error) {
		out, err = read(tx, limit)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list alerts: %w", err)
	}
	return out, nil
}
