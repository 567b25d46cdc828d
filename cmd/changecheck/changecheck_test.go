package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite golden files")

type answer struct {
	status int
	body   string
}

const (
	allowBody   = `{"decision":"allow","reason_code":"free","reasons":[{"code":"free","text":"nothing within 2h0m0s"}],"blockers":[],"expires_at":"2026-02-03T14:05:00Z","change_id":"chg_1","fencing_token":7}`
	confirmBody = `{"decision":"confirm","reason_code":"guard_band","reasons":[{"code":"guard_band","text":"search deploys within 2h0m0s"}],"blockers":[{"id":"chg_0","service":"search","environment":"prod","kind":"deploy","status":"claimed","start":"2026-02-03T14:00:00Z","end":"2026-02-03T14:30:00Z","run_id":"9","created_at":"2026-02-03T13:00:00Z"}],"expires_at":"2026-02-03T14:05:00Z","change_id":"chg_2","confirm_url":"http://h/changes/chg_2"}`
	denyBody    = `{"decision":"deny","reason_code":"freeze","reasons":[{"code":"freeze","text":"freeze: flash sale"}],"blockers":[],"next_open":"2026-02-04T08:00:00Z","expires_at":"2026-02-03T14:05:00Z"}`
	changeBody  = `{"id":"chg_1","service":"checkout","environment":"prod","kind":"deploy","status":"running","start":"2026-02-03T14:00:00Z","end":"2026-02-03T14:30:00Z","run_id":"42","created_at":"2026-02-03T13:00:00Z"}`
	invalidBody = `{"type":"/problems/invalid","title":"Invalid request","status":400,"detail":"unknown service","errors":[{"path":"service","message":"\"chekout\" is not in the catalogue; did you mean \"checkout\"?"}]}`
)

// script answers one request after the other; the last answer repeats.
func script(t *testing.T, seen *[]string, answers ...answer) *httptest.Server {
	t.Helper()
	var n atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i := min(int(n.Add(1)), len(answers)) - 1
		body, _ := io.ReadAll(r.Body)
		if seen != nil {
			*seen = append(*seen, r.Method+" "+r.URL.Path+" "+r.Header.Get("Authorization")+" "+string(body))
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(answers[i].status)
		_, _ = io.WriteString(w, answers[i].body)
	}))
	t.Cleanup(srv.Close)
	return srv
}

type result struct {
	code        int
	out, errout string
	pauses      int
}

func execute(t *testing.T, url string, args ...string) result {
	t.Helper()
	var out, errw bytes.Buffer
	res := result{}
	a := &app{out: &out, err: &errw, pause: func(ctx context.Context, _ time.Duration) error {
		res.pauses++
		return ctx.Err()
	}}
	env := map[string]string{"HOLDFAST_URL": url, "HOLDFAST_TOKEN": "hf_ci_abc_secret"}
	res.code = a.execute(t.Context(), args, func(k string) string { return env[k] })
	res.out, res.errout = out.String(), errw.String()
	return res
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	base := []string{"--service", "checkout", "--env", "prod", "--run-id", "42"}
	with := func(more ...string) []string { return append(append([]string{}, base...), more...) }
	tests := []struct {
		name    string
		args    []string
		answers []answer
		code    int
		out     string
		errout  string
	}{
		{"allow", base, []answer{{200, allowBody}}, exitAllowed, "allow  checkout in prod", ""},
		{"confirm names the blocker", base, []answer{{200, confirmBody}}, exitConfirm, "in the way: search deploy (claimed)", "confirmation needed: search deploys"},
		{"deny says when it opens", base, []answer{{200, denyBody}}, exitDenied, "next free start: 2026-02-04 08:00:00Z", "denied: freeze: flash sale"},
		{"invalid names the field", base, []answer{{400, invalidBody}}, exitUsage, "", `did you mean "checkout"?`},
		{"bad token", base, []answer{{401, `{"type":"x","title":"Not authenticated","status":401}`}}, exitUnreachable, "", "check HOLDFAST_TOKEN"},
		{"bad token is never allowed", with("--on-unreachable", "allow"), []answer{{403, `{}`}}, exitUnreachable, "", "check HOLDFAST_TOKEN"},
		{"server failing", base, []answer{{503, `{}`}}, exitUnreachable, "", "the server answered 503"},
		{"server failing, allowed", with("--on-unreachable", "allow"), []answer{{500, `{}`}}, exitAllowed, "allow (unchecked)", "WARNING"},
		{"recovers", base, []answer{{503, `{}`}, {200, allowBody}}, exitAllowed, "allow", ""},
		{"not holdfast", base, []answer{{200, `<html>`}}, exitUnreachable, "", "is HOLDFAST_URL right?"},
		{"an empty answer is none", base, []answer{{200, ``}}, exitUnreachable, "", "is HOLDFAST_URL right?"},
		{"an answer without a decision is no allow", base, []answer{{200, `null`}}, exitDenied, "", "denied"},
		{"redirects are not followed", base, []answer{{302, ``}}, exitUnreachable, "", "the server answered 302"},
		{"claim lost", []string{"start", "--change", "chg_1", "--run-id", "42"}, []answer{{409, `{"type":"x","title":"Another run holds this claim","status":409}`}}, exitDenied, "", "Another run holds this claim"},
		{"start", []string{"start", "--change", "chg_1", "--run-id", "42"}, []answer{{200, changeBody}}, exitAllowed, "running  change chg_1", ""},
		{"finish wants a known result", []string{"finish", "--change", "c", "--run-id", "42", "--result", "ok"}, []answer{{200, changeBody}}, exitUsage, "", "want one of succeeded"},
		{"extend bounds", []string{"extend", "--change", "c", "--run-id", "42", "--duration", "25h"}, []answer{{200, changeBody}}, exitUsage, "", "at most 24h"},
		{"next slot", []string{"next-slot", "--service", "checkout", "--env", "prod"}, []answer{{200, denyBody}}, exitAllowed, "2026-02-04 08:00:00Z", ""},
		{"unknown flag", with("--frobnicate"), []answer{{200, allowBody}}, exitUsage, "", "unknown flag"},
		{"missing service", []string{"--env", "prod"}, []answer{{200, allowBody}}, exitUsage, "", "service"},
		{"wrong kind", with("--kind", "deply"), []answer{{200, allowBody}}, exitUsage, "", "want one of deploy"},
		{"start without zone", with("--start", "2026-02-03 14:00"), []answer{{200, allowBody}}, exitUsage, "", "RFC 3339 with zone"},
		{"duration out of range", with("--duration", "169h"), []answer{{200, allowBody}}, exitUsage, "", "want 0s to 168h"},
		{"stray argument", with("now"), []answer{{200, allowBody}}, exitUsage, "", "unknown command"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			res := execute(t, script(t, nil, tt.answers...).URL, tt.args...)
			require.Equal(t, tt.code, res.code, "stdout %q stderr %q", res.out, res.errout)
			require.Contains(t, res.out, tt.out)
			require.Contains(t, res.errout, tt.errout)
			require.NotContains(t, res.out+res.errout, "hf_ci_abc_secret")
		})
	}
}

func TestUnreachableServer(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.NotFoundHandler())
	srv.Close()
	args := []string{"--service", "checkout", "--env", "prod", "--run-id", "42"}
	res := execute(t, srv.URL, args...)
	require.Equal(t, exitUnreachable, res.code)
	require.Equal(t, 3, res.pauses, "four tries, three pauses")
	res = execute(t, srv.URL, append(args, "--on-unreachable", "allow", "--json")...)
	require.Equal(t, exitAllowed, res.code)
	require.Contains(t, res.errout, "WARNING")
	var d struct {
		Decision  string `json:"decision"`
		Unchecked bool   `json:"unchecked"`
	}
	require.NoError(t, json.Unmarshal([]byte(res.out), &d))
	require.Equal(t, "allow", d.Decision)
	require.True(t, d.Unchecked)
}

func TestWaitAsksAgainUntilAllowed(t *testing.T) {
	t.Parallel()
	var seen []string
	srv := script(t, &seen, answer{200, confirmBody}, answer{200, denyBody}, answer{200, allowBody})
	res := execute(t, srv.URL, "--service", "checkout", "--env", "prod", "--run-id", "42", "--wait", "1h")
	require.Equal(t, exitAllowed, res.code, res.errout)
	require.Equal(t, 2, res.pauses)
	require.Len(t, seen, 3)
	for _, s := range seen {
		require.Contains(t, s, `POST /api/v1/changes/claim Bearer hf_ci_abc_secret`)
		require.Contains(t, s, `"run_id":"42"`, "asking again is the same run")
	}
}

func TestDryRunClaimsNothing(t *testing.T) {
	t.Parallel()
	var seen []string
	srv := script(t, &seen, answer{200, allowBody})
	res := execute(t, srv.URL, "--service", "checkout", "--env", "prod", "--dry-run")
	require.Equal(t, exitAllowed, res.code)
	require.Len(t, seen, 1)
	require.Contains(t, seen[0], "POST /api/v1/changes/check")
}

func TestConfigurationIsRequired(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]string{"missing": "", "no scheme": "holdfast.example.com", "user in URL": "https://u:p@h", "ftp": "ftp://h"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res := execute(t, url, "--service", "s", "--env", "e")
			require.Equal(t, exitUsage, res.code)
			require.Contains(t, res.errout, "HOLDFAST_URL")
			require.NotContains(t, res.errout, "u:p")
		})
	}
}

func TestHelpIsGolden(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--help"}, {"start", "--help"}, {"finish", "--help"}, {"extend", "--help"}, {"cancel", "--help"}, {"next-slot", "--help"}} {
		name := "help"
		if len(args) > 1 {
			name += "_" + strings.ReplaceAll(args[0], "-", "_")
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := &app{out: &bytes.Buffer{}, err: io.Discard, pause: pause}
			require.Equal(t, 0, a.execute(t.Context(), args, func(string) string { return "" }))
			got := a.out.(*bytes.Buffer).Bytes()
			file := filepath.Join("testdata", name+".txt")
			if *update {
				require.NoError(t, os.MkdirAll("testdata", 0o755))
				require.NoError(t, os.WriteFile(file, got, 0o644))
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, string(want), string(got))
		})
	}
}
