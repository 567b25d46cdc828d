// Package testenv gives tests the real programs they need: it finds installed
// binaries, decides whether a missing one skips or fails a test, and runs a
// throw-away PostgreSQL cluster for the test process.
//
// Environment:
//
//   - HOLDFAST_REQUIRE: comma-separated requirement names (see Require). A
//     listed requirement that is missing fails the test instead of skipping it.
//   - CI: when set, every requirement is treated as listed.
//   - HOLDFAST_TEST_POSTGRES: URL of a PostgreSQL server to use instead of a
//     throw-away cluster; its user needs the CREATEDB right.
//   - HOLDFAST_TEST_POSTGRES_FSYNC=on: run the throw-away cluster with fsync,
//     for measurements. Tests run without it.
//
// A throw-away cluster cannot outlive its test process: a small supervisor
// waits on a pipe that closes with the process, however that ends.
//
//	test process ──pipe──▶ supervisor (sh) ──SIGQUIT──▶ postgres
//	      │ flock                  └── removes the directory
//	      ▼
//	<tmp>/holdfast-pg-*/   reaped by a later run if both were killed
package testenv
