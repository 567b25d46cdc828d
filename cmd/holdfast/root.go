package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"holdfast/version"
)

// Exit codes.
const (
	exitOK    = 0
	exitFault = 1
	exitUsage = 2
)

// usageError is a wrong command line or configuration; it exits with 2.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// app is one invocation.
type app struct {
	out, err io.Writer
	env      func(string) (string, bool)
	logLevel string
	logJSON  bool
}

const longHelp = `holdfast stops the bleeding and prevents the next cut: alerts become incidents
with buttons, buttons become leased actions that gateways enforce, and pipelines
ask a change calendar before they deploy.

Every flag of serve and demo can also be set by the environment variable named
with it.`

func run(ctx context.Context, args []string, env func(string) (string, bool), out, errw io.Writer) int {
	a := &app{out: out, err: errw, env: env}
	root := a.command()
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(errw)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	fmt.Fprintf(errw, "holdfast: %v\n", err)
	var usage usageError
	if errors.As(err, &usage) || isCobraUsage(err) {
		fmt.Fprintln(errw, "Run 'holdfast --help' for usage and examples.")
		return exitUsage
	}
	return exitFault
}

// isCobraUsage recognises cobra's own complaints, which have no type.
func isCobraUsage(err error) bool {
	for _, prefix := range []string{"unknown command", "unknown flag", "unknown shorthand", "required flag", "invalid argument", "flag needs", "accepts", "requires at least"} {
		if strings.HasPrefix(err.Error(), prefix) {
			return true
		}
	}
	return false
}

func (a *app) command() *cobra.Command {
	root := &cobra.Command{
		Use:   "holdfast",
		Short: "Incident response and change governance for AI-inference platforms",
		Long:  longHelp,
		Example: `  # Everything on this machine, with a simulated engine and Slack
  holdfast demo

  # A server on PostgreSQL
  HOLDFAST_DATABASE_URL=postgres://… holdfast serve --config holdfast.yaml`,
		Version:       version.String(),
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.PersistentFlags().StringVar(&a.logLevel, "log-level", a.get("HOLDFAST_LOG_LEVEL", "info"), "debug, info, warn or error ($HOLDFAST_LOG_LEVEL)")
	root.PersistentFlags().BoolVar(&a.logJSON, "log-json", false, "log JSON even on a terminal")
	root.AddCommand(
		a.serveCommand(), a.demoCommand(), a.migrateCommand(), a.tokenCommand(), a.personCommand(),
		a.loginLinkCommand(), a.auditCommand(), a.configCommand(), a.versionCommand(),
	)
	return root
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(a.out, "holdfast", version.String())
			return err
		},
	}
}

// get reads an environment variable; set but empty counts as unset.
func (a *app) get(name, fallback string) string {
	if v, ok := a.env(name); ok && v != "" {
		return v
	}
	return fallback
}

// logger writes text to a terminal and JSON elsewhere.
func (a *app) logger() (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(a.logLevel)); err != nil {
		return nil, usagef("--log-level %q: want debug, info, warn or error", a.logLevel)
	}
	opts := &slog.HandlerOptions{Level: level}
	if f, ok := a.err.(*os.File); ok && !a.logJSON && term.IsTerminal(int(f.Fd())) {
		return slog.New(slog.NewTextHandler(a.err, opts)), nil
	}
	return slog.New(slog.NewJSONHandler(a.err, opts)), nil
}

// stateDir is where a server without other orders keeps its files.
func (a *app) stateDir() string {
	const name = "holdfast"
	if dir := a.get("HOLDFAST_STATE_DIR", ""); dir != "" {
		return dir
	}
	if dir := a.get("XDG_STATE_HOME", ""); dir != "" {
		return filepath.Join(dir, name)
	}
	if home := a.get("HOME", ""); home != "" {
		return filepath.Join(home, ".local", "state", name)
	}
	return name + "-state"
}
