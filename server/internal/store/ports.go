package store

import (
	"context"

	"holdfast/actions"
	"holdfast/runbooks"
	"holdfast/server/alert"
	"holdfast/server/change"
	"holdfast/server/chat"
	"holdfast/server/fleet"
	"holdfast/server/identity"
	"holdfast/server/incident"
)

// One transaction type serves every port.
var (
	_ identity.Tx = (*Tx)(nil)
	_ incident.Tx = (*Tx)(nil)
	_ alert.Tx    = (*Tx)(nil)
	_ change.Tx   = (*Tx)(nil)
	_ fleet.Tx    = (*Tx)(nil)
	_ chat.Tx     = (*Tx)(nil)
	_ actions.Tx  = (*Tx)(nil)
	_ runbooks.Tx = (*Tx)(nil)
)

// port shows the store to one domain package, with that package's Tx.
type port[T any] struct{ store *Store }

// InTx is Store.InTx for the domain's Tx.
func (p port[T]) InTx(ctx context.Context, fn func(T) error) error {
	return p.store.InTx(ctx, func(tx *Tx) error { return fn(any(tx).(T)) })
}

// View is Store.View for the domain's Tx.
func (p port[T]) View(ctx context.Context, fn func(T) error) error {
	return p.store.View(ctx, func(tx *Tx) error { return fn(any(tx).(T)) })
}

// Identity is the store as package identity sees it.
func (s *Store) Identity() identity.Store { return port[identity.Tx]{s} }

// Incidents is the store as package incident sees it.
func (s *Store) Incidents() incident.Store { return port[incident.Tx]{s} }

// Alerts is the store as package alert sees it.
func (s *Store) Alerts() alert.Store { return port[alert.Tx]{s} }

// Changes is the store as package change sees it.
func (s *Store) Changes() change.Store { return port[change.Tx]{s} }

// Fleet is the store as package fleet sees it. Each value has a wake channel of
// its own: keep one for each goroutine that waits.
func (s *Store) Fleet() fleet.Store { return &fleetPort{port: port[fleet.Tx]{s}} }

// Chat is the store as package chat sees it; for the wake channel see Fleet.
func (s *Store) Chat() chat.Store { return &chatPort{port: port[chat.Tx]{s}} }

// Actions is the store as package actions sees it; for the wake channel see Fleet.
func (s *Store) Actions() actions.Store { return &actionsPort{port: port[actions.Tx]{s}} }

// Runbooks is the store as package runbooks sees it; for the wake channel see Fleet.
func (s *Store) Runbooks() runbooks.Store { return &runbooksPort{port: port[runbooks.Tx]{s}} }

type fleetPort struct {
	port[fleet.Tx]
	listener listener
}

// Wake is signalled after a commit of a new revision, on any server.
func (p *fleetPort) Wake() <-chan struct{} {
	return p.listener.channel(&p.store.wakes, wakePolicy)
}

type chatPort struct {
	port[chat.Tx]
	listener listener
}

// WakeClicks is signalled after a commit that accepted a click.
func (p *chatPort) WakeClicks() <-chan struct{} {
	return p.listener.channel(&p.store.wakes, wakeClicks)
}

type actionsPort struct {
	port[actions.Tx]
	listener listener
}

// Wake is signalled after a commit that could let a run move on.
func (p *actionsPort) Wake() <-chan struct{} {
	return p.listener.channel(&p.store.wakes, wakeRuns)
}

type runbooksPort struct {
	port[runbooks.Tx]
	listener listener
}

// Wake is signalled after a commit that could let a runbook run move on.
func (p *runbooksPort) Wake() <-chan struct{} {
	return p.listener.channel(&p.store.wakes, wakeRunbooks)
}
