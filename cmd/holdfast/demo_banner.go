package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"holdfast/web"
)

// loginTTL is how long the printed console login is good for.
const loginTTL = time.Hour

// banner tells where everything is and what to try next.
func (d *demoRun) banner(ctx context.Context, took time.Duration) error {
	d.facts.URL, d.facts.Gateway = d.server.URL(), "http://"+d.guards[0].Addr()
	if err := d.facts.save(d.flags.state); err != nil {
		return err
	}
	alice, err := d.server.LoginLink(ctx, "alice", loginTTL)
	if err != nil {
		return err
	}
	bob, err := d.server.LoginLink(ctx, "bob", loginTTL)
	if err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\nholdfast demo is ready (%s)\n\n", took.Round(time.Millisecond))
	line := func(name, value string) { fmt.Fprintf(&b, "  %-9s %s\n", name, value) }
	line("Console", alice+"   (alice, one-time)")
	line("", bob+"   (bob, for the second pair of eyes)")
	if d.sim != nil {
		line("Slack", d.sim.URL())
	}
	for i, g := range d.guards {
		line([]string{"Gateways", ""}[min(i, 1)], "http://"+g.Addr()+"   admin http://"+g.AdminAddr())
	}
	line("State", d.flags.state)
	if !web.Built() {
		line("Note", "the console is not built; run: make web")
	}
	self, env := d.app.self(), filepath.Join(d.flags.state, "ci.env")
	check := strings.TrimSuffix(self, "holdfast") + "changecheck"
	fmt.Fprintf(&b, `
Try next, in another terminal:
  1. A pipeline asks before it deploys, then a second one meets it:
       . %s && %s --service checkout --env prod --run-id run-1 && %s --service assistant --env prod --run-id run-2
  2. Post a sample alert, then press its buttons on the Slack page:
       %s demo alert%s
  3. Be a caller; ask again while the breaker is forced open:
       curl -si %s/v1/chat/completions -H 'Authorization: Bearer %s' -H 'Content-Type: application/json' -d '{"model":"demo-model","max_tokens":8,"messages":[{"role":"user","content":"hello"}]}'

Ctrl-C stops everything; the state stays in the folder above.
`, env, check, check, self, d.stateFlag(), d.facts.Gateway, demoKeyAcme)
	_, err = fmt.Fprint(d.app.out, b.String())
	return err
}

// stateFlag repeats --state where it is not the default.
func (d *demoRun) stateFlag() string {
	if d.flags.state == filepath.Join(d.app.stateDir(), "demo") {
		return ""
	}
	return " --state " + d.flags.state
}
