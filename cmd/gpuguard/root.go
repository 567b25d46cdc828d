package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"holdfast/version"
)

func newRoot(env environment) *cobra.Command {
	root := &cobra.Command{
		Use:   "gpuguard",
		Short: "A gateway that keeps AI inference platforms up: limits, breakers, degraded answers",
		Long: `gpuguard stands between callers and AI dependencies (LLM pools, embeddings,
vector databases). It enforces a policy that comes from a holdfast server, or
from a file, and goes on doing so when everything behind the policy is gone.

Exit codes: 0 done, 1 the gateway failed or had to cut requests, 2 flags,
environment or policy files are wrong.`,
		Example: `  # with a holdfast server
  GPUGUARD_TOKEN_FILE=/run/secrets/gateway gpuguard run --name gw-1 --control-url https://holdfast.example.com

  # on its own
  gpuguard config check policy.yaml
  gpuguard run --policy policy.yaml`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(newRun(env), newConfig(), newVersion())
	return root
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print version, commit and date of this build",
		Example: "  gpuguard version",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "gpuguard", version.String())
			return err
		},
	}
}
