package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"holdfast/gpuguard/enginesim"
)

// stopTimeout is how long running requests may take after a stop signal.
const stopTimeout = 5 * time.Second

func newRun() *cobra.Command {
	o := enginesim.DefaultOptions()
	var apiKeyFile, knobs string
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Serve the OpenAI-compatible API until interrupted",
		Long: `run serves /v1/chat/completions, /v1/embeddings, /v1/models, /health and
/metrics, and the admin API under /admin/. SIGTERM or Ctrl-C lets running
requests finish for up to 5 s.`,
		Example: `  # an engine on the default port
  enginesim run

  # a small, already slow one, with the admin API on its own port
  enginesim run --listen 127.0.0.1:9102 --admin-listen 127.0.0.1:9202 \
      --model demo-model --slots 32 --knobs '{"decode_multiplier":4}'

  # ask it something
  curl http://127.0.0.1:9101/v1/chat/completions -H 'Content-Type: application/json' \
      -d '{"model":"demo-model","messages":[{"role":"user","content":"hello"}]}'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if o.Knobs, err = enginesim.ParseKnobs([]byte(knobs), o.Knobs); err != nil {
				return fmt.Errorf("--knobs: %w", err)
			}
			if o.APIKey, err = readKey(apiKeyFile); err != nil {
				return err
			}
			o.Logger = slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
			return run(cmd.Context(), cmd.OutOrStdout(), o)
		},
	}
	f, p := cmd.Flags(), &o.Profile
	f.StringVar(&o.Listen, "listen", o.Listen, "host:port of the API; port 0 picks a free one")
	f.StringVar(&o.AdminListen, "admin-listen", "", "host:port of the admin API (default: same as --listen, loopback clients only)")
	f.BoolVar(&o.AllowRemoteAdmin, "allow-remote-admin", false, "let other hosts turn the knobs")
	f.StringVar(&o.Model, "model", o.Model, "name of the served model")
	f.StringVar(&apiKeyFile, "api-key-file", "", "file with the bearer token that /v1 requires (default: none)")
	f.StringVar(&knobs, "knobs", "{}", "faults to start with, as JSON; see 'enginesim knobs'")
	f.Float64Var(&o.TimeScale, "time-scale", o.TimeScale, "run the model this many times faster than real time")
	f.IntVar(&o.OutputTokens, "output-tokens", o.OutputTokens, "mean output tokens of requests without max_tokens")
	f.IntVar(&o.PromptTokens, "prompt-tokens", o.PromptTokens, "mean prompt tokens assumed for the capacity until requests arrive")
	f.IntVar(&o.EmbeddingDimensions, "embedding-dimensions", o.EmbeddingDimensions, "length of embedding vectors")
	f.Int64Var(&o.MaxBodyBytes, "max-body-bytes", o.MaxBodyBytes, "largest request body in bytes")
	f.IntVar(&p.Slots, "slots", p.Slots, "sequences in the batch at once")
	f.IntVar(&p.QueueLimit, "queue-limit", p.QueueLimit, "waiting sequences before the engine answers 503")
	f.DurationVar(&p.DecodeBase, "decode-time", p.DecodeBase, "time per output token in an empty batch")
	f.Float64Var(&p.BatchPenalty, "batch-penalty", p.BatchPenalty, "relative slowdown of decode in a full batch (1 = half as fast)")
	f.DurationVar(&p.PrefillPerToken, "prefill-time", p.PrefillPerToken, "compute time per prompt token")
	f.IntVar(&p.PrefillChunkTokens, "prefill-chunk-tokens", p.PrefillChunkTokens, "prompt tokens computed in one step at most")
	f.IntVar(&p.KVBlocks, "kv-blocks", p.KVBlocks, "size of the KV pool in blocks of 16 tokens")
	f.IntVar(&p.MaxContextTokens, "max-context-tokens", p.MaxContextTokens, "longest prompt plus output")
	f.DurationVar(&p.RestartTime, "restart-time", p.RestartTime, "time the engine is down after running out of memory")
	return cmd
}

// readKey reads an API key file; no file is no key.
func readKey(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("--api-key-file: %w", err)
	}
	key := strings.TrimSpace(string(b))
	if key == "" {
		return "", fmt.Errorf("--api-key-file: %s is empty", path)
	}
	return key, nil
}

func run(ctx context.Context, out io.Writer, o enginesim.Options) error {
	engine, err := enginesim.New(o)
	if err != nil {
		return err
	}
	if err := engine.Start(ctx); err != nil {
		return explainListen(err)
	}
	fmt.Fprintf(out, "engine for model %q on http://%s, admin on http://%s/admin/state\n", o.Model, engine.Addr(), engine.AdminAddr())
	<-ctx.Done()
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	if err := engine.Stop(stopping); err != nil {
		o.Logger.Warn("requests cut after waiting", "waited", stopTimeout, "error", err)
	}
	fmt.Fprintln(out, "stopped")
	return nil
}

// explainListen names the flag to change when an address cannot be opened.
func explainListen(err error) error {
	var listen *enginesim.ListenError
	if !errors.As(err, &listen) {
		return err
	}
	flag := map[string]string{"Listen": "--listen", "AdminListen": "--admin-listen"}[listen.Option]
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%s is already in use; stop the other program or choose another address with %s", listen.Addr, flag)
	}
	return fmt.Errorf("cannot listen on %s, change it with %s: %w", listen.Addr, flag, listen.Err)
}
