// Package server is the holdfast server: it wires the domain services to the
// database, Slack and HTTP, and runs their loops. New, Start, Stop; in tests it
// listens on :0.
//
// Only this package sees all adapters; they never see each other.
package server
