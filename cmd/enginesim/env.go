package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// envName is the environment variable of a flag.
func envName(flag string) string {
	return "ENGINESIM_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// flagsFromEnv fills flags that were not given from the environment.
func flagsFromEnv(cmd *cobra.Command, env func(string) (string, bool)) error {
	var errs []error
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		value, ok := env(envName(f.Name))
		if !ok || f.Changed {
			return
		}
		if err := f.Value.Set(value); err != nil {
			errs = append(errs, fmt.Errorf("%s (flag --%s): %w", envName(f.Name), f.Name, err))
		}
	})
	return errors.Join(errs...)
}
