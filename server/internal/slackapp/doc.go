// Package slackapp speaks Slack: it verifies and parses what Slack sends, draws
// cards, and delivers the outbox. It is the only user of slack-go. What a click
// means is decided by package chat.
//
// A request is verified over its raw bytes, answered 200 at once and worked on
// afterwards; that 200 is transport only. The card says "accepted" once the
// click is committed, and from then on it takes effect exactly once.
package slackapp
