// Package controlclient keeps a gateway in step with the holdfast server: it
// holds the policy stream (server-sent events), checks and applies each
// revision, acknowledges it, and sends the heartbeat that renews the gateway's
// membership lease.
//
// The gateway outlives the server (static stability): each applied policy is
// kept in a last-known-good file, leases end by the gateway's own clock, and
// every failure here leaves the policy in force untouched.
package controlclient
