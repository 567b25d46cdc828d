package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/pflag"

	"holdfast/gpuguard"
	"holdfast/version"
)

// settings are the flags of run.
type settings struct {
	options        gpuguard.Options
	policyFile     string
	controlURL     string
	tokenFile      string
	adminTokenFile string
	stateDir       string
	logLevel       string
	logFormat      string
	accessLog      bool
}

func newSettings() *settings { return &settings{options: gpuguard.DefaultOptions()} }

func (s *settings) register(f *pflag.FlagSet) {
	o := &s.options
	f.StringVar(&o.Addr, "listen", o.Addr, "host:port for callers; port 0 picks a free one")
	f.StringVar(&o.AdminAddr, "admin-listen", o.AdminAddr, "host:port for health, metrics, policy and state; empty for none")
	f.StringVar(&s.adminTokenFile, "admin-token-file", "", "file with the bearer token for the admin port, or GPUGUARD_ADMIN_TOKEN")
	f.StringVar(&o.Name, "name", o.Name, "name of this gateway, unique in the fleet")
	f.StringVar(&s.controlURL, "control-url", "", "address of the holdfast server that gives the policy")
	f.StringVar(&s.tokenFile, "token-file", "", "file with the gateway's token for the server, or GPUGUARD_TOKEN")
	f.StringVar(&s.stateDir, "state-dir", "", "folder for the last-known-good policy (default: gpuguard/NAME in the user's state folder)")
	f.StringVar(&s.policyFile, "policy", "", "policy file (YAML or JSON) for a gateway without a server; SIGHUP reads it again")
	f.DurationVar(&o.DrainTimeout, "drain", o.DrainTimeout, "how long running requests may take after SIGTERM")
	f.StringVar(&s.logLevel, "log-level", "info", "debug, info, warn or error")
	f.StringVar(&s.logFormat, "log-format", "text", "text or json")
	f.BoolVar(&s.accessLog, "access-log", true, "log one line for each request")
}

// complete turns the flags into options for the gateway, reading what they name.
func (s *settings) complete(env environment) (gpuguard.Options, error) {
	o := s.options
	o.Version = version.Version
	o.Secret = resolveSecret(env.lookup)
	logger, err := s.logger(env.errout)
	if err != nil {
		return o, err
	}
	o.Logger = logger
	if !s.accessLog {
		o.AccessLog = slog.New(slog.DiscardHandler)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	o.Registerer, o.Gatherer = registry, registry
	if o.AdminToken, err = secret(env.lookup, "GPUGUARD_ADMIN_TOKEN", "admin-token-file", s.adminTokenFile); err != nil {
		return o, err
	}
	return o, errors.Join(s.source(&o, env), nameFlags(o.Validate()))
}

// flagOf is the flag behind an option, as the gateway's own messages name it.
var flagOf = map[string]string{
	"Addr": "--listen", "AdminAddr": "--admin-listen", "Name": "--name",
	"DrainTimeout": "--drain", "Control.URL:": "--control-url:",
}

// nameFlags lets the gateway's complaints about options speak of flags.
func nameFlags(err error) error {
	if err == nil {
		return nil
	}
	lines := strings.Split(err.Error(), "\n")
	for i, line := range lines {
		option, rest, _ := strings.Cut(line, " ")
		if flag, ok := flagOf[option]; ok {
			lines[i] = flag + " " + rest
		}
	}
	return errors.New(strings.Join(lines, "\n"))
}

// source decides where the policy comes from.
func (s *settings) source(o *gpuguard.Options, env environment) error {
	switch {
	case s.policyFile != "" && s.controlURL != "":
		return errors.New("--policy and --control-url are both given: a gateway takes its policy from one place")
	case s.policyFile != "":
		d, err := loadPolicy(s.policyFile, env.in)
		if err != nil {
			return err
		}
		o.Policy = &d
		return nil
	case s.controlURL == "":
		return errors.New("no policy: give the holdfast server with --control-url (GPUGUARD_CONTROL_URL), or a file with --policy")
	}
	token, err := secret(env.lookup, "GPUGUARD_TOKEN", "token-file", s.tokenFile)
	switch {
	case err != nil:
		return err
	case token == "":
		return errors.New("no token for the server: set GPUGUARD_TOKEN, or name its file with --token-file (GPUGUARD_TOKEN_FILE)")
	}
	o.Control = &gpuguard.Control{URL: s.controlURL, Token: token}
	o.StateDir = s.usableStateDir(env.lookup, o.Logger)
	return nil
}

// usableStateDir is the folder asked for, or the default where it can be made.
// A folder that was asked for and cannot be made is refused by the gateway.
func (s *settings) usableStateDir(lookup func(string) (string, bool), log *slog.Logger) string {
	if s.stateDir != "" {
		return s.stateDir
	}
	dir := defaultStateDir(lookup, s.options.Name)
	if dir == "" {
		log.Warn("no state folder: a restart while the server is away starts without a policy; set --state-dir")
		return ""
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		log.Warn("no state folder: a restart while the server is away starts without a policy; set --state-dir", "error", err)
		return ""
	}
	return dir
}

func (s *settings) logger(w io.Writer) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(s.logLevel)); err != nil {
		return nil, fmt.Errorf("--log-level %q: want debug, info, warn or error", s.logLevel)
	}
	options := &slog.HandlerOptions{Level: level}
	switch s.logFormat {
	case "text":
		return slog.New(slog.NewTextHandler(w, options)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, options)), nil
	default:
		return nil, fmt.Errorf("--log-format %q: want text or json", s.logFormat)
	}
}

// isLoopback says whether only this machine can reach an address.
func isLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
