package fleet

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"holdfast/gpuguard/policy"
	"holdfast/server/identity"
)

// Subscribe gives the policy as a stream: the update in force at once, and a new
// one with each revision and whenever the number of live gateways or the
// confirmation of the lineage changes. Only the newest waits for a slow reader.
// The channel is closed with ctx and by Stop. The caller is a gateway token that
// may speak for the gateway.
func (s *Service) Subscribe(ctx context.Context, gateway string) (<-chan policy.Update, error) {
	const verb = "policy.stream"
	p, err := identity.RequireToken(ctx, identity.TokenGateway)
	if err == nil && !p.HasScope("gateway", gateway) {
		err = fmt.Errorf("%w: the token %q does not speak for gateway %s", identity.ErrForbidden, p.Name, short(gateway))
	}
	if err != nil {
		return nil, s.deny(ctx, p, verb, "gateway:"+short(gateway), err)
	}
	if err := policy.CheckName(gateway); err != nil {
		return nil, fmt.Errorf("%w: gateway %w", ErrInvalid, err)
	}
	// Subscribed before the first reading, so that no revision falls in between.
	ch, leave := s.hub.join()
	u, err := s.current(ctx)
	if err != nil {
		leave()
		return nil, fmt.Errorf("read the policy for gateway %s: %w", gateway, err)
	}
	s.hub.offer(ch, u)
	context.AfterFunc(ctx, leave)
	return ch, nil
}

// current is the update in force.
func (s *Service) current(ctx context.Context) (u policy.Update, err error) {
	err = s.store.View(ctx, func(tx Tx) error {
		head, err := headNow(tx)
		if err != nil {
			return err
		}
		all, err := tx.Gateways()
		if err != nil {
			return err
		}
		u = updateOf(head, all, tx.Now())
		return nil
	})
	return u, err
}

func updateOf(head Head, all []Gateway, now time.Time) policy.Update {
	return policy.Update{
		Lineage: head.Lineage, Revision: head.Revision, Base: head.Base, Overrides: head.Overrides,
		LiveGateways: max(1, liveCount(all, now)), LineageConfirmed: head.LineageConfirmed,
	}
}

func liveCount(all []Gateway, now time.Time) int {
	n := 0
	for _, g := range all {
		if g.Live(now) {
			n++
		}
	}
	return n
}

// forgetEvery is how often gateways that are gone are looked for.
const forgetEvery = time.Hour

// follow reads the head at each wake-up and poll and feeds the hub.
func (s *Service) follow(ctx context.Context) {
	defer s.hub.closeAll()
	ticker := time.NewTicker(s.pollEvery)
	defer ticker.Stop()
	forget := time.NewTicker(forgetEvery)
	defer forget.Stop()
	wake := s.store.Wake()
	for {
		if err := s.look(ctx); err != nil && ctx.Err() == nil {
			s.log.WarnContext(ctx, "the policy could not be read; gateways keep what they have", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-wake:
		case <-forget.C:
			if err := s.forget(ctx); err != nil && ctx.Err() == nil {
				s.log.WarnContext(ctx, "gateways that are gone could not be forgotten", "error", err)
			}
		}
	}
}

func (s *Service) look(ctx context.Context) error {
	u, err := s.current(ctx)
	if err != nil {
		return err
	}
	s.metrics.revision.Set(float64(u.Revision))
	s.metrics.live.Set(float64(u.LiveGateways))
	s.hub.publish(u)
	return nil
}

func (s *Service) forget(ctx context.Context) error {
	var left []Gateway
	err := s.store.InTx(ctx, func(tx Tx) (err error) {
		if _, err = tx.DeleteGatewaysUnheard(tx.Now().Add(-s.forgetAfter)); err != nil {
			return err
		}
		left, err = tx.Gateways()
		return err
	})
	if err != nil {
		return err
	}
	s.samples.forget(left)
	return nil
}

// hub hands updates to subscribers.
type hub struct {
	mu   sync.Mutex
	subs map[chan policy.Update]*subscription
	// closed hubs take nobody in: a gateway that comes back at once must not hold
	// up the server's stop.
	closed bool
}

// subscription remembers what was offered last.
type subscription struct {
	last policy.Update
	any  bool
}

func newHub() *hub { return &hub{subs: map[chan policy.Update]*subscription{}} }

// join makes a subscription; leave ends it and closes the channel, once.
func (h *hub) join() (ch chan policy.Update, leave func()) {
	ch = make(chan policy.Update, 1)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.subs[ch] = &subscription{}
	if h.closed {
		h.drop(ch)
	}
	return ch, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.drop(ch)
	}
}

func (h *hub) drop(ch chan policy.Update) {
	if _, there := h.subs[ch]; there {
		delete(h.subs, ch)
		close(ch)
	}
}

// open takes subscribers in again.
func (h *hub) open() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = false
}

func (h *hub) closeAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for _, ch := range slices.Collect(maps.Keys(h.subs)) {
		h.drop(ch)
	}
}

// publish offers the update to everybody.
func (h *hub) publish(u policy.Update) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for ch, sub := range h.subs {
		sub.offer(ch, u)
	}
}

// offer gives one subscriber the update.
func (h *hub) offer(ch chan policy.Update, u policy.Update) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if sub, there := h.subs[ch]; there {
		sub.offer(ch, u)
	}
}

// offer replaces what waits unread. Only what is news is offered, and never an
// older revision of the lineage: readings may come in out of order.
func (s *subscription) offer(ch chan policy.Update, u policy.Update) {
	if s.any && !news(s.last, u) {
		return
	}
	s.last, s.any = u, true
	select {
	case <-ch:
	default:
	}
	ch <- u // the only writer holds the hub's lock, so there is room
}

func news(last, u policy.Update) bool {
	if last.Lineage != u.Lineage {
		return true
	}
	if u.Revision != last.Revision {
		return u.Revision > last.Revision
	}
	return u.LiveGateways != last.LiveGateways || u.LineageConfirmed != last.LineageConfirmed
}
