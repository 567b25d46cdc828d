package fleet

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"holdfast/actions"
	"holdfast/gpuguard/policy"
	"holdfast/server/audit"
	"holdfast/server/identity"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memory is a Store whose transactions are copies, under the given clock.
type memory struct {
	mu    sync.Mutex
	now   func() time.Time
	state memoryState
	wake  chan struct{}
	fault error
}

type memoryState struct {
	head      *Head
	gateways  map[string]Gateway
	revisions []Revision
	audit     []audit.Entry
	touched   []string
}

func newMemory(now func() time.Time) *memory {
	return &memory{now: now, wake: make(chan struct{}, 1), state: memoryState{gateways: map[string]Gateway{}}}
}

func (m *memory) Wake() <-chan struct{} { return m.wake }

func (m *memory) View(_ context.Context, fn func(Tx) error) error { return m.tx(fn, false) }
func (m *memory) InTx(_ context.Context, fn func(Tx) error) error { return m.tx(fn, true) }

func (m *memory) tx(fn func(Tx) error, write bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fault != nil {
		return m.fault
	}
	s := m.state
	s.gateways = maps.Clone(s.gateways)
	s.audit, s.revisions = slices.Clone(s.audit), slices.Clone(s.revisions)
	if s.head != nil {
		h := *s.head
		h.Overrides = slices.Clone(h.Overrides)
		s.head = &h
	}
	before := revisionOf(s.head)
	if err := fn(&memoryTx{m: m, s: &s}); err != nil || !write {
		return err
	}
	m.state = s
	if revisionOf(s.head) != before {
		select {
		case m.wake <- struct{}{}:
		default:
		}
	}
	return nil
}

func revisionOf(h *Head) int64 {
	if h == nil {
		return 0
	}
	return h.Revision
}

func (m *memory) read() memoryState {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state
}

type memoryTx struct {
	m *memory
	s *memoryState
}

func (t *memoryTx) Now() time.Time            { return t.m.now() }
func (t *memoryTx) Lock(string) error         { return nil }
func (t *memoryTx) Touch(topic, id string)    { t.s.touched = append(t.s.touched, topic+"/"+id) }
func (t *memoryTx) ConfirmLineage() error     { t.s.head.LineageConfirmed = true; return nil }
func (t *memoryTx) Audit(e audit.Entry) error { t.s.audit = append(t.s.audit, e); return nil }

func (t *memoryTx) PolicyHead() (Head, error) {
	if t.s.head == nil {
		return Head{}, ErrNotFound
	}
	return *t.s.head, nil
}

func (t *memoryTx) InitPolicy(lineage string, confirmed bool, base json.RawMessage) error {
	t.s.head = &Head{Lineage: lineage, LineageConfirmed: confirmed, Base: base}
	_, err := t.BumpRevision("lineage started", "system")
	return err
}

func (t *memoryTx) SetBase(base json.RawMessage) error { t.s.head.Base = base; return nil }

func (t *memoryTx) InsertOverride(o policy.Override) error {
	for _, other := range t.s.head.Overrides {
		if other.Path == o.Path {
			return actions.ErrPathLeased
		}
	}
	t.s.head.Overrides = append(t.s.head.Overrides, o)
	return nil
}

func (t *memoryTx) DeleteOverride(id string) (bool, error) {
	n := len(t.s.head.Overrides)
	t.s.head.Overrides = slices.DeleteFunc(t.s.head.Overrides, func(o policy.Override) bool { return o.ID == id })
	return len(t.s.head.Overrides) < n, nil
}

func (t *memoryTx) BumpRevision(cause, actor string) (int64, error) {
	t.s.head.Revision++
	t.s.revisions = append(t.s.revisions, Revision{Lineage: t.s.head.Lineage, Revision: t.s.head.Revision, Cause: cause, Actor: actor, At: t.Now()})
	return t.s.head.Revision, nil
}

func (t *memoryTx) Revisions(before int64, limit int) ([]Revision, error) {
	var out []Revision
	for _, r := range slices.Backward(t.s.revisions) {
		if (before == 0 || r.Revision < before) && len(out) < limit {
			out = append(out, r)
		}
	}
	return out, nil
}

func (t *memoryTx) Gateways() ([]Gateway, error) {
	var out []Gateway
	for _, name := range slices.Sorted(maps.Keys(t.s.gateways)) {
		out = append(out, t.s.gateways[name])
	}
	return out, nil
}

func (t *memoryTx) Gateway(name string) (Gateway, error) {
	g, ok := t.s.gateways[name]
	if !ok {
		return Gateway{}, ErrNotFound
	}
	return g, nil
}

func (t *memoryTx) SaveGateway(g Gateway) error { t.s.gateways[g.Name] = g; return nil }

func (t *memoryTx) DeleteGatewaysUnheard(since time.Time) (int, error) {
	n := len(t.s.gateways)
	maps.DeleteFunc(t.s.gateways, func(_ string, g Gateway) bool { return g.LastHeardAt.Before(since) })
	return n - len(t.s.gateways), nil
}

func as(role identity.Role) context.Context {
	return identity.WithPrincipal(context.Background(), identity.Of(identity.Person{ID: "p1", Name: "Alice", Role: role}, identity.ChannelConsole))
}

// gatewayToken is a gateway's caller; scopes may narrow it.
func gatewayToken(ctx context.Context, scopes ...string) context.Context {
	return identity.WithPrincipal(ctx, identity.Principal{
		Kind: identity.PrincipalToken, TokenKind: identity.TokenGateway, TokenID: "t1", Name: "gateways", Scopes: scopes, Channel: identity.ChannelGateway,
	})
}
