// Command enginesim runs a simulated LLM inference engine and turns its knobs.
// The engine itself is package holdfast/gpuguard/enginesim; this command only
// reads flags and environment.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"holdfast/version"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := newRoot(os.LookupEnv)
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "enginesim: %v\n", err)
		stop()
		os.Exit(1)
	}
}

// newRoot builds the command tree. env looks up an environment variable.
func newRoot(env func(string) (string, bool)) *cobra.Command {
	root := &cobra.Command{
		Use:   "enginesim",
		Short: "A simulated LLM inference engine that fails on command",
		Long: `enginesim speaks the OpenAI-compatible protocol and exports vLLM metric names,
needs no GPU, and becomes slow, broken or out of memory when told to.

Each flag can also be given as an environment variable: --time-scale is
ENGINESIM_TIME_SCALE. A flag on the command line wins.`,
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return flagsFromEnv(cmd, env)
		},
	}
	root.AddCommand(newRun(), newKnobs(), newState(), newHealth(), newVersion())
	return root
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "enginesim", version.String())
			return err
		},
	}
}
