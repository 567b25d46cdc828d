package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"holdfast/version"
)

const longHelp = `changecheck asks holdfast whether a change may go ahead now, and claims its
guarded window unless --dry-run is given. Put it before the step that deploys.

Exit codes:
   0  allowed (with --on-unreachable allow also when the server is not reachable)
   2  wrong usage, or a request the server refused as invalid
  10  another person must confirm first
  20  denied: freeze, critical incident, rejected, or the claim is lost
  30  the server is not reachable or failed

HOLDFAST_URL and HOLDFAST_TOKEN say where the server is and who is asking.`

const examples = `  # Ask and claim half an hour for a deploy
  changecheck --service checkout --env prod --run-id "$GITHUB_RUN_ID"

  # Only ask
  changecheck --service checkout --env prod --dry-run

  # Wait up to 20 minutes for a confirmation or for a freeze to end
  changecheck --service checkout --env prod --run-id "$CI_JOB_ID" --wait 20m

  # Tell the calendar how it went
  changecheck start  --change chg_123 --run-id "$CI_JOB_ID"
  changecheck finish --change chg_123 --run-id "$CI_JOB_ID" --result succeeded`

// app is one invocation: where it writes, and how it reaches the server.
type app struct {
	out, err io.Writer
	url      string
	token    string
	json     bool
	timeout  time.Duration
	// pause waits between polls; tests replace it.
	pause func(context.Context, time.Duration) error
}

// run is main without the process: it returns the exit code.
func run(ctx context.Context, args []string, getenv func(string) string, out, errw io.Writer) int {
	a := &app{out: out, err: errw, pause: pause}
	return a.execute(ctx, args, getenv)
}

func (a *app) execute(ctx context.Context, args []string, getenv func(string) string) int {
	root := a.rootCommand(getenv)
	root.SetArgs(args)
	root.SetOut(a.out)
	root.SetErr(a.err)
	err := root.ExecuteContext(ctx)
	if err != nil {
		fmt.Fprintf(a.err, "changecheck: %v\n", err)
		if codeOf(err) == exitUsage {
			fmt.Fprintln(a.err, "Run 'changecheck --help' for usage and examples.")
		}
	}
	return codeOf(err)
}

func (a *app) rootCommand(getenv func(string) string) *cobra.Command {
	var f checkFlags
	root := &cobra.Command{
		Use:           "changecheck --service S --env E [flags]",
		Short:         "Ask holdfast whether a change may go ahead, and claim its window",
		Long:          longHelp,
		Example:       examples,
		Version:       version.String(),
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.check(cmd.Context(), f)
		},
	}
	p := root.PersistentFlags()
	p.StringVar(&a.url, "url", getenv("HOLDFAST_URL"), "server, such as https://holdfast.example.com ($HOLDFAST_URL)")
	p.BoolVar(&a.json, "json", false, "print one JSON object on stdout")
	p.DurationVar(&a.timeout, "timeout", 10*time.Second, "limit of one request to the server")
	a.token = getenv("HOLDFAST_TOKEN")
	f.register(root)
	root.AddCommand(
		a.startCommand(), a.finishCommand(), a.extendCommand(), a.cancelCommand(), a.nextSlotCommand(),
	)
	return root
}

// pause sleeps, or ends early with the context.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
