// Package slacksim is a stateful stand-in for Slack: it answers the Web API
// methods holdfast uses, keeps channels, threads and messages, enforces
// Slack's published limits and rates, delivers signed clicks, slash commands
// and modal submissions to the app, and shows the workspace as a web page
// whose buttons work. A newcomer can try holdfast without a Slack account, and
// tests can drive the whole ChatOps path without the network.
//
// It is deliberately no more lenient than Slack. A message that Slack would
// refuse (51 blocks, two buttons with one action_id, an empty text) is refused
// here with the same error name and a JSON pointer to the fault. Where Slack
// publishes no number, the strictest known observation is used and the source
// is named next to the constant in limits.go.
//
// Only the standard library is used, so that the simulator proves nothing by
// sharing code with the client under test.
package slacksim
