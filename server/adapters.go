package server

import (
	"context"
	"errors"
	"sync"

	"holdfast/actions"
	"holdfast/server/audit"
	"holdfast/server/chat"
	"holdfast/server/identity"
	"holdfast/server/incident"
	"holdfast/server/internal/httpapi"
	"holdfast/server/internal/slackapp"
	"holdfast/server/internal/store"
)

// desk answers Slack's forms and commands.
type desk struct {
	engine    *actions.Engine
	incidents *incident.Service
	store     *store.Store
}

// FormActions offers each action with the values its parameters may take now.
func (d desk) FormActions(ctx context.Context) ([]slackapp.FormAction, error) {
	choices, err := d.engine.Choices(ctx)
	if err != nil {
		return nil, err
	}
	var out []slackapp.FormAction
	for _, spec := range d.engine.Specs() {
		f := slackapp.FormAction{Spec: spec, Choices: map[string][]string{}}
		for _, p := range spec.Params {
			if c := choices[p.Kind]; len(c) > 0 {
				f.Choices[p.Name] = c
			}
		}
		out = append(out, f)
	}
	return out, nil
}

// OpenIncidents lists what is open, newest first.
func (d desk) OpenIncidents(ctx context.Context) ([]incident.Incident, error) {
	return d.incidents.List(identity.WithPrincipal(ctx, identity.System()), incident.Filter{Open: true, Limit: 20})
}

// Denied records a refused request.
func (d desk) Denied(ctx context.Context, e audit.Entry) error {
	return d.store.Identity().InTx(ctx, func(tx identity.Tx) error { return tx.Audit(e) })
}

// refs remembers where cards stand.
type refs struct{ store *store.Store }

// MessageRef finds a card's message.
func (r refs) MessageRef(ctx context.Context, subject string) (ref chat.MessageRef, err error) {
	err = r.store.Chat().View(ctx, func(tx chat.Tx) error {
		ref, err = tx.MessageRef(subject)
		return err
	})
	return ref, err
}

// SaveMessageRef notes where a card stands.
func (r refs) SaveMessageRef(ctx context.Context, ref chat.MessageRef) error {
	return r.store.Chat().InTx(ctx, func(tx chat.Tx) error { return tx.SaveMessageRef(ref) })
}

// events passes the store's events on to consoles until it is closed.
type events struct {
	store *store.Store
	mu    sync.Mutex
	done  chan struct{}
}

func newEvents(s *store.Store) *events { return &events{store: s, done: make(chan struct{})} }

// Subscribe closes its channel when the server stops or the reader is too slow.
func (e *events) Subscribe() (<-chan httpapi.Event, func()) {
	in, cancel := e.store.Events().Subscribe()
	out := make(chan httpapi.Event, 64)
	left := make(chan struct{})
	go func() {
		defer close(out)
		defer cancel()
		for {
			select {
			case ev, ok := <-in:
				if !ok {
					return
				}
				select {
				case out <- httpapi.Event(ev):
				case <-left:
					return
				case <-e.done:
					return
				}
			case <-left:
				return
			case <-e.done:
				return
			}
		}
	}()
	return out, sync.OnceFunc(func() { close(left) })
}

// Since gives the events after id.
func (e *events) Since(id int64) ([]httpapi.Event, bool) {
	found, complete := e.store.Events().Since(id)
	out := make([]httpapi.Event, len(found))
	for i, ev := range found {
		out[i] = httpapi.Event(ev)
	}
	return out, complete
}

func (e *events) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	select {
	case <-e.done:
	default:
		close(e.done)
	}
}

// bindSlack ties a seeded person to a Slack user, once.
func bindSlack(ctx context.Context, s *store.Store, id, team, user string) error {
	return s.Identity().InTx(ctx, func(tx identity.Tx) error {
		p, err := tx.Person(id)
		if err != nil || p.SlackUser != "" {
			return err
		}
		if _, err := tx.PersonBySlack(team, user); !errors.Is(err, identity.ErrNotFound) {
			return err
		}
		p.SlackTeam, p.SlackUser = team, user
		if err := tx.SavePerson(p); err != nil {
			return err
		}
		return tx.Audit(identity.System().AuditEntry("person.link_slack", "person:"+p.ID, audit.Allowed, "named in the configuration"))
	})
}
