// Package servertest runs the whole product in the test's own process: a server
// on a free port over SQLite or PostgreSQL, a simulated Slack, gateways and a
// simulated engine. Tests drive it from outside, over HTTP and by clicks.
//
// A package that uses it has this as its TestMain, so that the throw-away
// PostgreSQL is stopped:
//
//	func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.Cleanup(testenv.Exit)) }
package servertest
