package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/spf13/cobra"

	"holdfast/gpuguard/policy"
	"holdfast/strict"
)

func newConfig() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Check policy files",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newConfigCheck())
	return cmd
}

func newConfigCheck() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "check FILE...",
		Short: "Check policy files and print every problem with file, line and key",
		Long: `check reads policy files (YAML or JSON, "-" for standard input) as the gateway
does: unknown keys, wrong types, names that lead nowhere and values out of range
are problems. It prints one line for each, "file:line: key: message", and exits
with 2 when there is any. It looks up no address and reads no secret.`,
		Example: `  gpuguard config check policy.yaml
  gpuguard config check --json policies/*.yaml
  helm template . --show-only templates/policy.yaml | gpuguard config check -`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			reports := make([]report, len(args))
			for i, path := range args {
				reports[i] = check(path, cmd.InOrStdin())
			}
			return printReports(cmd.OutOrStdout(), reports, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document in place of lines")
	return cmd
}

// report is what was found in one file.
type report struct {
	File string `json:"file"`
	OK   bool   `json:"ok"`
	// Hash is the hash of the policy, as gateway and server show it; empty unless OK.
	Hash     string              `json:"hash,omitempty"`
	Problems []strict.FieldError `json:"problems"`

	policy policy.Document
}

func check(path string, in io.Reader) report {
	r := report{File: path, Problems: []strict.FieldError{}}
	var err error
	if r.policy, err = loadPolicy(path, in); err == nil {
		r.Hash, err = policy.Hash(r.policy)
	}
	var errs strict.Errors
	switch {
	case err == nil:
		r.OK = true
	case errors.As(err, &errs):
		r.Problems = errs
	default:
		r.Problems = []strict.FieldError{{File: path, Message: "cannot be read: " + reason(err)}}
	}
	return r
}

// reason is err without the path that the report names already.
func reason(err error) string {
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		return pathErr.Err.Error()
	}
	return err.Error()
}

// printReports prints everything and says by its error whether there was a problem.
func printReports(out io.Writer, reports []report, asJSON bool) error {
	var result error
	for _, r := range reports {
		if !r.OK {
			result = errReported
		}
	}
	if asJSON {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		return errors.Join(enc.Encode(map[string]any{"ok": result == nil, "files": reports}), result)
	}
	for _, r := range reports {
		if err := r.print(out); err != nil {
			return err
		}
	}
	return result
}

func (r report) print(out io.Writer) error {
	if r.OK {
		d := r.policy
		_, err := fmt.Fprintf(out, "%s: ok (tenants: %d, dependencies: %d, pools: %d, routes: %d)\n",
			r.File, len(d.Tenants), len(d.Dependencies), len(d.Pools), len(d.Routes))
		return err
	}
	for _, p := range r.Problems {
		if _, err := fmt.Fprintln(out, p.Error()); err != nil {
			return err
		}
	}
	return nil
}
