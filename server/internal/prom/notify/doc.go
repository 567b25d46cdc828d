// Package notify carries the alerts of the embedded rule evaluation to the
// intake, as the webhooks that Alertmanager would send: one group for each service
// and environment.
//
//	rule evaluation ──Evaluated──▶ state of each alert ──▶ journal on disk
//	                                      │ groups with news, or due for a repeat
//	                                      ▼
//	                                Deliver (until it succeeds, in order per group)
//
// What is sent is always the latest state of a group, so nothing queues up while
// deliveries fail and nothing is lost either: an alert stays in the state, and in
// the journal, until its end was delivered. Delivery is at least once; the same
// webhook twice must do no harm.
//
// After a restart the alerts of the journal are neither firing nor over, but
// unknown: evaluation has to warm up first, because rates need two scrapes and
// pending alerts need their time. An alert that fires again goes on as the same
// episode, with the start it had. One that its rule does not see once evaluation
// has settled ended while nobody looked, and is sent as resolved.
package notify
