// Command holdfast is the incident-response and change-governance server, its
// demo, and the tools of its operators.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal ends at once: the first one only asks.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.LookupEnv, os.Stdout, os.Stderr))
}
