package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"holdfast/gpuguard/policy"
	"holdfast/server/identity"
	"holdfast/server/internal/httpapi/gen"
)

const (
	// keepAlive is how often a silent stream says that it lives; gateways reconnect after three missed ones.
	keepAlive = 5 * time.Second
	// writeLimit bounds one write, so that a reader that stopped reading is let go.
	writeLimit = 10 * time.Second
)

// sse writes server-sent events, each flushed at once and bounded in time.
type sse struct {
	w    http.ResponseWriter
	ctrl *http.ResponseController
}

func newSSE(w http.ResponseWriter) sse {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	return sse{w: w, ctrl: http.NewResponseController(w)}
}

func (s sse) send(id, event string, data any) error {
	b, err := json.Marshal(data)
	if err != nil {
		return fmt.Errorf("event %s: %w", event, err)
	}
	frame := ""
	if id != "" {
		frame = "id: " + id + "\n"
	}
	return s.write(frame + "event: " + event + "\ndata: " + string(b) + "\n\n")
}

func (s sse) comment() error { return s.write(": \n\n") }

func (s sse) write(frame string) error {
	if err := s.ctrl.SetWriteDeadline(time.Now().Add(writeLimit)); err != nil {
		return fmt.Errorf("write deadline: %w", err)
	}
	if _, err := s.w.Write([]byte(frame)); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return s.ctrl.Flush()
}

// requestContext is the context of the request itself: gin reuses its own after the answer.
func requestContext(ctx context.Context) context.Context {
	if c, ok := ctx.(*gin.Context); ok {
		return c.Request.Context()
	}
	return ctx
}

// recheckTime bounds the look at who holds a stream: a database that hangs must
// not silence it.
const recheckTime = 2 * time.Second

// stays says whether the caller of a stream may still have it: tokens are revoked
// and people disabled while one is open. A database that does not answer changes
// nothing.
func (a *handlers) stays(ctx context.Context) func() bool {
	c, ok := ctx.(*gin.Context)
	if !ok {
		return func() bool { return true }
	}
	return func() bool {
		look, cancel := context.WithTimeout(c.Request.Context(), recheckTime)
		defer cancel()
		again := c.Copy()
		again.Request = c.Request.WithContext(look)
		p, err := a.principal(again)
		if err == nil {
			err = accessTable[a.described.operation(again)].permit(identity.WithPrincipal(look, p))
		}
		return !errors.Is(err, identity.ErrUnauthenticated) && !errors.Is(err, identity.ErrForbidden)
	}
}

// policyStream is the answer of StreamPolicy: it lasts until the gateway leaves.
type policyStream struct {
	a       *handlers
	ctx     context.Context //nolint:containedctx // the generated interface hands over only the writer
	updates <-chan policy.Update
	stays   func() bool
}

func (a *handlers) StreamPolicy(ctx context.Context, r gen.StreamPolicyRequestObject) (gen.StreamPolicyResponseObject, error) {
	stays := a.stays(ctx)
	ctx = requestContext(ctx)
	updates, err := a.Fleet.Subscribe(ctx, r.Params.Gateway)
	if err != nil {
		return nil, err
	}
	return policyStream{a: a, ctx: ctx, updates: updates, stays: stays}, nil
}

// VisitStreamPolicyResponse sends each update until the gateway leaves or the server stops.
func (p policyStream) VisitStreamPolicyResponse(w http.ResponseWriter) error {
	gauge := p.a.metrics.streams.WithLabelValues("policy")
	gauge.Inc()
	defer gauge.Dec()
	out := newSSE(w)
	tick := time.NewTicker(keepAlive)
	defer tick.Stop()
	for {
		var err error
		select {
		case <-p.ctx.Done():
			return nil
		case u, ok := <-p.updates:
			if !ok {
				return nil
			}
			err = out.send(u.Lineage+":"+strconv.FormatInt(u.Revision, 10), "policy", u)
		case <-tick.C:
			if !p.stays() {
				return nil
			}
			err = out.comment()
		}
		if err != nil {
			return nil // the gateway left; it comes back by itself
		}
	}
}

// eventStream is the answer of StreamEvents.
type eventStream struct {
	a     *handlers
	ctx   context.Context //nolint:containedctx // the generated interface hands over only the writer
	last  string
	stays func() bool
}

// changed is what a console is told: look at this again.
type changed struct {
	Topic string `json:"topic"`
	ID    string `json:"id"`
}

func (a *handlers) StreamEvents(ctx context.Context, r gen.StreamEventsRequestObject) (gen.StreamEventsResponseObject, error) {
	return eventStream{a: a, ctx: requestContext(ctx), last: value(r.Params.LastEventID), stays: a.stays(ctx)}, nil
}

// VisitStreamEventsResponse resumes where the console stopped, or tells it to read everything again.
func (e eventStream) VisitStreamEventsResponse(w http.ResponseWriter) error {
	gauge := e.a.metrics.streams.WithLabelValues("events")
	gauge.Inc()
	defer gauge.Dec()
	events, cancel := e.a.Events.Subscribe()
	defer cancel()
	out := newSSE(w)
	seen, err := e.resume(out)
	if err != nil {
		return nil // the console left
	}
	tick := time.NewTicker(keepAlive)
	defer tick.Stop()
	for err == nil {
		select {
		case <-e.ctx.Done():
			return nil
		case ev, ok := <-events:
			if !ok {
				return nil
			}
			if ev.ID > seen {
				err = out.event(ev)
			}
		case <-tick.C:
			if !e.stays() {
				return nil
			}
			err = out.comment()
		}
	}
	return nil
}

func (s sse) event(ev Event) error {
	return s.send(strconv.FormatInt(ev.ID, 10), "change", changed{Topic: ev.Topic, ID: ev.Subject})
}

// resume replays what came after the last event seen, and returns the newest id replayed.
func (e eventStream) resume(out sse) (int64, error) {
	if e.last == "" {
		return 0, out.comment()
	}
	id, err := strconv.ParseInt(e.last, 10, 64)
	missed, complete := e.a.Events.Since(id)
	if err != nil || !complete {
		return 0, out.send("", "reset", struct{}{})
	}
	for _, ev := range missed {
		if err := out.event(ev); err != nil {
			return id, err
		}
		id = ev.ID
	}
	return id, out.comment()
}
