package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// envName is the environment variable of a flag.
func envName(flag string) string {
	return "GPUGUARD_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// flagsFromEnv fills flags that were not given from the environment; a variable
// that is empty counts as not set.
func flagsFromEnv(cmd *cobra.Command, lookup func(string) (string, bool)) error {
	var errs []error
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		value, _ := lookup(envName(f.Name))
		if value == "" || f.Changed || f.Name == "help" {
			return
		}
		if err := cmd.Flags().Set(f.Name, value); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", envName(f.Name), err))
		}
	})
	return errors.Join(errs...)
}

// secret reads a secret from a variable or from the file a flag names, never
// from a flag: command lines are seen by every process of the machine. It is
// empty when neither is given. Errors never repeat the secret.
func secret(lookup func(string) (string, bool), variable, flag, file string) (string, error) {
	value, _ := lookup(variable)
	value = strings.TrimSpace(value)
	switch {
	case value != "" && file != "":
		return "", fmt.Errorf("%s and --%s are both given: keep one", variable, flag)
	case file == "":
		return value, nil
	}
	value, err := secretFile(file)
	if err != nil {
		return "", fmt.Errorf("--%s: %w", flag, err)
	}
	return value, nil
}

// secretFile reads a secret from a file, without the white space around it.
func secretFile(path string) (string, error) {
	const most = 64 << 10 // bytes; more is the wrong file
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if info.Size() > most {
		return "", fmt.Errorf("%s is larger than %d bytes: is it the right file?", path, most)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	value := strings.TrimSpace(string(data))
	if value == "" {
		return "", fmt.Errorf("%s is empty", path)
	}
	return value, nil
}

// defaultStateDir is where a gateway keeps its state when nothing else is said:
// a folder for each name, so that two on one machine do not share it. It is
// empty where the user has no home.
func defaultStateDir(lookup func(string) (string, bool), name string) string {
	if dir, _ := lookup("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "gpuguard", name)
	}
	if home, _ := lookup("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "state", "gpuguard", name)
	}
	return ""
}
