// Package policy is the contract between the holdfast server and the gpuguard
// gateways: the policy document, leased overrides and their merge, the stream
// and acknowledgement messages, and the closed list of request outcomes.
//
// It stands on the standard library and holdfast/strict alone, so that both
// planes can share it. A base document plus live overrides gives the effective
// policy; each change of either gives a new revision of a lineage.
package policy
