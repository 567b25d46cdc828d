package outbox

import (
	"context"
	"time"
)

// Queue is what a deliverer needs of the store.
type Queue interface {
	// Claim leases at most limit messages that head their key and are due, for
	// the given time; a message whose lease lapsed is claimed again.
	Claim(ctx context.Context, topic string, limit int, lease time.Duration) ([]Message, error)
	// Done removes a delivered message.
	Done(ctx context.Context, id int64) error
	// Retry puts a message back until not before the given delay, with the reason.
	Retry(ctx context.Context, id int64, delay time.Duration, reason string) error
	// Bury sets a message that can never be delivered aside, with the reason, so that its key goes on.
	Bury(ctx context.Context, id int64, reason string) error
	// Pending counts undelivered messages and the age of the oldest.
	Pending(ctx context.Context, topic string) (count int, oldest time.Duration, err error)
	// Wake is signalled when a message of the topic was committed by this process; a poll remains the fallback.
	Wake(topic string) <-chan struct{}
}
