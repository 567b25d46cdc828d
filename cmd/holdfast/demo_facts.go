package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"holdfast/server"
	"holdfast/server/identity"
)

// Keys of the demo's tenants; their digests stand in demo/policy.yaml.
const (
	demoKeyAcme   = "demo-key-acme"
	demoKeyRetail = "demo-key-retail"
)

// demoFacts are what the commands beside a running demo need; they lie in its
// state folder, readable by its owner alone.
type demoFacts struct {
	URL          string `json:"url"`
	Gateway      string `json:"gateway"`
	HookToken    string `json:"hook_token"`
	CIToken      string `json:"ci_token"`
	GatewayToken string `json:"gateway_token"`
}

const factsFile = "demo.json"

// loadOrMakeFacts keeps tokens over restarts.
func loadOrMakeFacts(dir string) (demoFacts, error) {
	f, err := loadFacts(dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return f, err
	}
	f.HookToken, _ = identity.NewToken(identity.TokenHook, "demo-alertmanager", nil, "")
	f.CIToken, _ = identity.NewToken(identity.TokenCI, "demo-pipeline", nil, "")
	f.GatewayToken, _ = identity.NewToken(identity.TokenGateway, "demo-gateways", nil, "")
	return f, f.save(dir)
}

func loadFacts(dir string) (demoFacts, error) {
	var f demoFacts
	b, err := os.ReadFile(filepath.Join(dir, factsFile))
	if err != nil {
		return f, err
	}
	if err := json.Unmarshal(b, &f); err != nil {
		return f, fmt.Errorf("%s: %w; delete the folder to start afresh", filepath.Join(dir, factsFile), err)
	}
	return f, nil
}

// save writes the file, and an environment file beside it for shells.
func (f demoFacts) save(dir string) error {
	b, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, factsFile), append(b, '\n'), 0o600); err != nil {
		return err
	}
	env := fmt.Sprintf("export HOLDFAST_URL=%s\nexport HOLDFAST_TOKEN=%s\n", f.URL, f.CIToken)
	return os.WriteFile(filepath.Join(dir, "ci.env"), []byte(env), 0o600)
}

func (f demoFacts) seeds() []server.TokenSeed {
	return []server.TokenSeed{
		{Kind: identity.TokenHook, Name: "demo-alertmanager", Token: f.HookToken, Scopes: []string{"source:alertmanager"}},
		{Kind: identity.TokenCI, Name: "demo-pipeline", Token: f.CIToken},
		{Kind: identity.TokenGateway, Name: "demo-gateways", Token: f.GatewayToken},
	}
}

// quiet keeps the gateways' one line per request out of the demo's terminal.
func quiet(o server.Options) server.Options {
	o.Logger = slog.New(slog.DiscardHandler)
	return o
}

// self is how this program was called, for commands to copy.
func (a *app) self() string {
	if len(os.Args) > 0 && strings.Contains(os.Args[0], "holdfast") && !strings.HasPrefix(os.Args[0], os.TempDir()) {
		return os.Args[0]
	}
	return "holdfast"
}
