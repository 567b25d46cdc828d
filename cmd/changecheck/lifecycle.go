package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"holdfast/server/api/client"
)

// claimFlags name the claim a command speaks of.
type claimFlags struct {
	change, runID string
	fencing       int64
}

func (f *claimFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.change, "change", "", "id of the change, as printed by the check (required)")
	cmd.Flags().StringVar(&f.runID, "run-id", "", "the run id that claimed it (required)")
	cmd.Flags().Int64Var(&f.fencing, "fencing-token", 0, "fencing token of the claim; 0 leaves the comparison out")
	_ = cmd.MarkFlagRequired("change")
	_ = cmd.MarkFlagRequired("run-id")
}

func (f *claimFlags) token() *int64 {
	if f.fencing == 0 {
		return nil
	}
	return &f.fencing
}

// claimCommand builds a command that makes one call about a claim and prints the change.
func (a *app) claimCommand(use, short, example string, call func(context.Context, *conn, claimFlags) (*http.Response, error)) *cobra.Command {
	var f claimFlags
	cmd := &cobra.Command{
		Use: use, Short: short, Example: example, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			ch, err := fetch[client.Change](cmd.Context(), c, func() (*http.Response, error) { return call(cmd.Context(), c, f) })
			if err != nil {
				return err
			}
			return a.printChange(ch)
		},
	}
	f.register(cmd)
	return cmd
}

func (a *app) startCommand() *cobra.Command {
	return a.claimCommand("start", "Say that the run begins", "  changecheck start --change chg_123 --run-id 42",
		func(ctx context.Context, c *conn, f claimFlags) (*http.Response, error) {
			return c.api.StartChange(ctx, f.change, client.StartChangeJSONRequestBody{RunId: f.runID, FencingToken: f.token()})
		})
}

func (a *app) cancelCommand() *cobra.Command {
	return a.claimCommand("cancel", "Say that it will not happen; frees the window at once", "  changecheck cancel --change chg_123 --run-id 42",
		func(ctx context.Context, c *conn, f claimFlags) (*http.Response, error) {
			return c.api.CancelChange(ctx, f.change, client.CancelChangeJSONRequestBody{RunId: f.runID, FencingToken: f.token()})
		})
}

func (a *app) finishCommand() *cobra.Command {
	var result string
	results := []string{"succeeded", "failed", "rolled_back"}
	cmd := a.claimCommand("finish", "Say how the run ended; the guard band stays", "  changecheck finish --change chg_123 --run-id 42 --result failed",
		func(ctx context.Context, c *conn, f claimFlags) (*http.Response, error) {
			return c.api.FinishChange(ctx, f.change, client.FinishChangeJSONRequestBody{
				RunId: f.runID, FencingToken: f.token(), Result: client.FinishChangeJSONBodyResult(result),
			})
		})
	cmd.Flags().StringVar(&result, "result", "succeeded", strings.Join(results, ", "))
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if !slices.Contains(results, result) {
			return exitf(exitUsage, "--result %q: want one of %s", result, strings.Join(results, ", "))
		}
		return nil
	}
	return cmd
}

func (a *app) extendCommand() *cobra.Command {
	var d time.Duration
	cmd := a.claimCommand("extend", "Ask for more time, counted from now", "  changecheck extend --change chg_123 --run-id 42 --duration 20m",
		func(ctx context.Context, c *conn, f claimFlags) (*http.Response, error) {
			return c.api.ExtendChange(ctx, f.change, client.ExtendChangeJSONRequestBody{RunId: f.runID, FencingToken: f.token(), Duration: d.String()})
		})
	cmd.Flags().DurationVar(&d, "duration", 30*time.Minute, "from now, at most 24h")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if d <= 0 || d > 24*time.Hour {
			return exitf(exitUsage, "--duration %s: want more than 0s, at most 24h", d)
		}
		return nil
	}
	return cmd
}

// nextSlotCommand prints the next start at which the change would be allowed.
func (a *app) nextSlotCommand() *cobra.Command {
	var f checkFlags
	cmd := &cobra.Command{
		Use:     "next-slot --service S --env E",
		Short:   "Print the next start at which the change would be allowed; claims nothing",
		Example: "  changecheck next-slot --service checkout --env prod --duration 45m",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			req, err := f.request()
			if err != nil {
				return err
			}
			c, err := a.connect()
			if err != nil {
				return err
			}
			d, err := c.check(cmd.Context(), req)
			if err != nil {
				return err
			}
			return a.printSlot(d, req)
		},
	}
	f.register(cmd)
	for _, name := range []string{"wait", "dry-run", "on-unreachable"} {
		_ = cmd.Flags().MarkHidden(name)
	}
	return cmd
}

func (a *app) printSlot(d *client.ChangeDecision, req client.ChangeRequest) error {
	next := d.NextOpen
	if d.Decision == client.Allow {
		start := time.Now()
		if req.Start != nil {
			start = *req.Start
		}
		next = &start
	}
	if a.json {
		return a.printJSON(struct {
			NextOpen *time.Time      `json:"next_open"`
			Decision client.Verdict  `json:"decision"`
			Reasons  []client.Reason `json:"reasons"`
		}{next, d.Decision, d.Reasons})
	}
	if next == nil {
		return exitf(exitDenied, "no free slot is known: %s", firstReason(d))
	}
	_, err := fmt.Fprintln(a.out, both(*next))
	return err
}
