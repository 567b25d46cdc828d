package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"time"

	"github.com/spf13/cobra"
)

// demoAlertCommand posts what Alertmanager would post.
func (a *app) demoAlertCommand(state *string) *cobra.Command {
	var resolve bool
	cmd := &cobra.Command{
		Use:   "alert",
		Short: "Post a sample alert to a running demo, as Alertmanager would",
		Example: `  holdfast demo alert
  holdfast demo alert --resolve`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			facts, err := loadFacts(*state)
			if errors.Is(err, fs.ErrNotExist) || err == nil && facts.URL == "" {
				return usagef("no demo has run with the state folder %s; start one with: holdfast demo", *state)
			}
			if err != nil {
				return err
			}
			return a.postAlert(cmd.Context(), facts, resolve, time.Now())
		},
	}
	cmd.Flags().BoolVar(&resolve, "resolve", false, "resolve it instead of firing it")
	return cmd
}

// sampleAlert is a version 4 webhook. It starts at the top of the hour, so that
// a resolve finds the alert it ends.
func sampleAlert(resolve bool, now time.Time) ([]byte, error) {
	status, ends := "firing", "0001-01-01T00:00:00Z"
	if resolve {
		status, ends = "resolved", now.UTC().Format(time.RFC3339)
	}
	labels := map[string]string{"alertname": "LLMErrorRateHigh", "severity": "critical", "service": "llm", "dependency": "llm", "environment": "prod"}
	annotations := map[string]string{
		"summary":           "23 % of LLM requests fail, P95 is 12 s",
		"description":       "Errors rose from 0.1 % to 23 % within five minutes of a rollout. Queue depth and decode time rise with them.",
		"runbook_url":       "https://runbooks.example.com/slow-model",
		"suggested_actions": "trip_breaker:dependency=llm, set_rate_limit:target=global;requests_per_second=50",
	}
	return json.Marshal(map[string]any{
		"version": "4", "groupKey": `{}:{alertname="LLMErrorRateHigh"}`, "truncatedAlerts": 0, "status": status,
		"receiver": "holdfast", "groupLabels": map[string]string{"alertname": "LLMErrorRateHigh"},
		"commonLabels": labels, "commonAnnotations": annotations, "externalURL": "http://127.0.0.1:9093",
		"alerts": []map[string]any{{
			"status": status, "labels": labels, "annotations": annotations, "startsAt": now.UTC().Truncate(time.Hour).Format(time.RFC3339),
			"endsAt": ends, "generatorURL": "http://127.0.0.1:9090/graph", "fingerprint": "a1b2c3d4e5f60718",
		}},
	})
}

func (a *app) postAlert(ctx context.Context, facts demoFacts, resolve bool, now time.Time) error {
	body, err := sampleAlert(resolve, now)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, facts.URL+"/hooks/alertmanager", bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+facts.HookToken)
	resp, err := (&http.Client{Timeout: 10 * time.Second}).Do(req)
	if err != nil {
		return fmt.Errorf("is the demo running? %w", err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the server answered %s: %s", resp.Status, answer)
	}
	_, err = fmt.Fprintf(a.out, "posted: %s\n", bytes.TrimSpace(answer))
	return err
}
