package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"holdfast/gpuguard/enginesim"
)

const defaultURL = "http://127.0.0.1:9101"

func newKnobs() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "knobs",
		Short: "Show or turn the knobs of a running engine",
		Long: `knobs makes a running engine slow, broken or healthy. Names and ranges:

  seed                  selects which requests are hit
  decode_multiplier     slows decode: 4 turns 30 ms/token into 120 ms/token (0.1 to 1000)
  first_token_delay_ms  holds the first token back (0 to 600000)
  fail_ratio            share of requests answered with fail_status (0 to 1)
  fail_status           that status (400 to 599)
  empty_ratio           share of HTTP 200 answers with an empty body (0 to 1)
  cut_ratio             share of streams cut after cut_after_events (0 to 1)
  cut_after_events      events before the cut (0 to 1000000)
  hang_ratio            share of requests accepted and never answered (0 to 1)
  error_in_200_ratio    share of HTTP 200 answers that hold an error (0 to 1)
  fragmentation_ratio   share of the scratch memory that is lost (0 to 0.99)
  scratch_multiplier    enlarges scratch buffers: 1.3 is 30 % more (0.1 to 1000)`,
	}
	cmd.AddCommand(newKnobsGet(), newKnobsSet(), newKnobsReset())
	return cmd
}

func newKnobsGet() *cobra.Command {
	return adminCommand(&cobra.Command{
		Use: "get", Short: "Print the knobs", Example: "  enginesim knobs get", Args: cobra.NoArgs,
	}, http.MethodGet, "/admin/knobs", nil)
}

func newKnobsReset() *cobra.Command {
	return adminCommand(&cobra.Command{
		Use: "reset", Short: "Make the engine healthy again", Example: "  enginesim knobs reset", Args: cobra.NoArgs,
	}, http.MethodPost, "/admin/reset", nil)
}

func newKnobsSet() *cobra.Command {
	return adminCommand(&cobra.Command{
		Use:   "set NAME=VALUE...",
		Short: "Turn some knobs and leave the others",
		Example: `  # outage A: four times slower, some answers empty
  enginesim knobs set decode_multiplier=4 empty_ratio=0.15

  # every second request fails with 503, on another engine
  enginesim knobs set fail_ratio=0.5 fail_status=503 --url http://127.0.0.1:9102`,
		Args: cobra.MinimumNArgs(1),
	}, http.MethodPatch, "/admin/knobs", knobsBody)
}

func newState() *cobra.Command {
	return adminCommand(&cobra.Command{
		Use: "state", Short: "Print queue, batch, memory and surviving capacity", Example: "  enginesim state", Args: cobra.NoArgs,
	}, http.MethodGet, "/admin/state", nil)
}

// knobsBody turns NAME=VALUE arguments into JSON. The engine checks names and ranges.
func knobsBody(args []string) ([]byte, error) {
	fields := make(map[string]json.Number, len(args))
	for _, arg := range args {
		name, value, ok := strings.Cut(arg, "=")
		if !ok {
			return nil, fmt.Errorf("%q: want NAME=VALUE with NAME one of %s", arg, strings.Join(enginesim.KnobNames(), ", "))
		}
		var number json.Number
		if err := json.Unmarshal([]byte(value), &number); err != nil || number == "" {
			return nil, fmt.Errorf("%q: %q is not a number", arg, value)
		}
		fields[name] = number
	}
	return json.Marshal(fields)
}

// adminCommand sends one admin request and prints the answer.
func adminCommand(cmd *cobra.Command, method, path string, body func([]string) ([]byte, error)) *cobra.Command {
	url := cmd.Flags().String("url", defaultURL, "base URL of the engine's admin API")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var payload []byte
		if body != nil {
			var err error
			if payload, err = body(args); err != nil {
				return err
			}
		}
		answer, err := call(cmd.Context(), method, *url+path, payload)
		if err != nil {
			return err
		}
		var pretty bytes.Buffer
		if err := json.Indent(&pretty, answer, "", "  "); err != nil {
			return fmt.Errorf("%s did not answer with JSON; is it an enginesim admin API?", *url)
		}
		_, err = fmt.Fprintln(cmd.OutOrStdout(), strings.TrimSpace(pretty.String()))
		return err
	}
	return cmd
}

func newHealth() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "health",
		Short:   "Exit 0 when the engine is healthy, for container health checks",
		Example: "  enginesim health --url http://127.0.0.1:9101",
		Args:    cobra.NoArgs,
	}
	url := cmd.Flags().String("url", defaultURL, "base URL of the engine")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if _, err := call(cmd.Context(), http.MethodGet, *url+"/health", nil); err != nil {
			return err
		}
		_, err := fmt.Fprintln(cmd.OutOrStdout(), "healthy")
		return err
	}
	return cmd
}

// call sends a request and returns the body of a 200 answer.
func call(ctx context.Context, method, url string, payload []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(payload))
	if err != nil {
		return nil, fmt.Errorf("--url: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return nil, fmt.Errorf("no engine answers: %w; start one with 'enginesim run' or set --url", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return nil, fmt.Errorf("read the answer of %s: %w", url, err)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, errors.New(refusal(resp.Status, body))
	}
	return body, nil
}

// refusal is the reason in a problem document, or the status.
func refusal(status string, body []byte) string {
	var problem struct{ Detail string }
	if json.Unmarshal(body, &problem) == nil && problem.Detail != "" {
		return problem.Detail
	}
	return "the engine answered " + status
}
