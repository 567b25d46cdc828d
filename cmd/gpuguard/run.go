package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"holdfast/gpuguard"
)

func newRun(env environment) *cobra.Command {
	s := newSettings()
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run the gateway until interrupted",
		Long: `run serves callers on --listen, and health, readiness, metrics, policy and state
on --admin-listen. The policy comes from a holdfast server (--control-url) and is
kept on disk, so that the gateway starts and serves while the server is away; or
it comes from a file (--policy), which SIGHUP reads again.

SIGTERM or Ctrl-C stops taking requests and lets running ones finish for --drain;
a second signal ends at once.

Each flag can also be given as an environment variable: --control-url is
GPUGUARD_CONTROL_URL. A flag on the command line wins. Secrets are given by
variable or file only: GPUGUARD_TOKEN or --token-file, GPUGUARD_ADMIN_TOKEN or
--admin-token-file.`,
		Example: `  # follow a server
  GPUGUARD_TOKEN_FILE=/run/secrets/gateway gpuguard run --name gw-1 --control-url https://holdfast.example.com

  # without a server
  gpuguard run --policy policy.yaml

  # is it ready, and what holds?
  curl http://127.0.0.1:9081/readyz
  curl http://127.0.0.1:9081/policy`,
		Args:    cobra.NoArgs,
		PreRunE: func(cmd *cobra.Command, _ []string) error { return flagsFromEnv(cmd, env.lookup) },
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := s.complete(env)
			if err != nil {
				return err
			}
			return run(cmd.Context(), s, o, cmd.OutOrStdout())
		},
	}
	s.register(cmd.Flags())
	return cmd
}

// run serves until ctx ends and then drains.
func run(ctx context.Context, s *settings, o gpuguard.Options, out io.Writer) error {
	if o.AdminAddr != "" && o.AdminToken == "" && !isLoopback(o.AdminAddr) {
		o.Logger.Warn("the admin port is open to other machines without a token: set GPUGUARD_ADMIN_TOKEN", "addr", o.AdminAddr)
	}
	guard, err := gpuguard.New(o)
	if err != nil {
		return err
	}
	if err := guard.Start(ctx); err != nil {
		return failure{errors.Join(explainListen(err), guard.Stop(context.WithoutCancel(ctx)))}
	}
	stopReload := func() {}
	if s.policyFile != "" && s.policyFile != standardInput {
		stopReload = reloadOnHangup(guard, s.policyFile, o.Logger)
	}
	announce(out, guard, o)
	<-ctx.Done()
	stopReload()
	o.Logger.Info("stopping: running requests may finish", "drain", o.DrainTimeout.String())
	if err := guard.Stop(context.WithoutCancel(ctx)); err != nil {
		return failure{err}
	}
	_, err = fmt.Fprintln(out, "stopped")
	return err
}

// announce says where the gateway is, for people and scripts.
func announce(out io.Writer, guard *gpuguard.Guard, o gpuguard.Options) {
	fmt.Fprintf(out, "gateway %s on http://%s", o.Name, guard.Addr())
	if guard.AdminAddr() != "" {
		fmt.Fprintf(out, ", admin on http://%s", guard.AdminAddr())
	}
	if o.Control != nil && o.StateDir != "" {
		fmt.Fprintf(out, ", state in %s", o.StateDir)
	}
	fmt.Fprintln(out)
}

// explainListen says what to do about a port that is taken or not allowed.
func explainListen(err error) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%w\nthe port is in use: stop what uses it, or choose others with --listen (GPUGUARD_LISTEN) and --admin-listen (GPUGUARD_ADMIN_LISTEN)", err)
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("%w\nports below 1024 need a permission: choose others with --listen and --admin-listen", err)
	default:
		return err
	}
}

// hangups delivers SIGHUP until stop is called.
func hangups() (signals <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGHUP)
	return c, func() { signal.Stop(c); close(c) }
}
