// Package gpuguard is the data plane: a proxy in front of AI dependencies that
// enforces a policy (authentication, limits, breakers, time limits, degraded
// answers) and keeps doing so when everything behind the policy is gone.
//
// New takes Options, Start listens, Stop drains. One Guard serves callers on
// one address and its administration on another; the policy arrives from a
// file (Options.Policy), from a holdfast server (Options.Control) or by
// ApplyUpdate.
package gpuguard
