package main

import (
	"fmt"
	"io"
	"os"

	"holdfast/gpuguard/policy"
	"holdfast/strict"
	"holdfast/strict/yamlfile"
)

// standardInput is the file name that stands for it.
const standardInput = "-"

// loadPolicy reads a policy file, YAML or JSON. Problems of its content are
// strict.Errors with file and line.
func loadPolicy(path string, in io.Reader) (policy.Document, error) {
	file, err := openPolicy(path, in)
	if err != nil {
		return policy.Document{}, err
	}
	d, err := policy.Decode(file.JSON())
	return d, file.LocateErr(err)
}

func openPolicy(path string, in io.Reader) (*yamlfile.File, error) {
	if path != standardInput {
		return yamlfile.Open(path)
	}
	data, err := io.ReadAll(io.LimitReader(in, strict.MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("cannot read standard input: %w", err)
	}
	return yamlfile.Parse("<stdin>", data)
}

// resolveSecret finds the secret that a pool's credential names.
func resolveSecret(lookup func(string) (string, bool)) func(policy.Credential) (string, error) {
	return func(c policy.Credential) (string, error) {
		if c.File != "" {
			value, err := secretFile(c.File)
			if os.IsNotExist(err) {
				return "", fmt.Errorf("the file %s is not there", c.File)
			}
			return value, err
		}
		value, _ := lookup(c.Env)
		if value == "" {
			return "", fmt.Errorf("the environment variable %s is not set", c.Env)
		}
		return value, nil
	}
}
