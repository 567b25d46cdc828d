// Command gpuguard runs one gateway in front of AI dependencies, and checks
// policy files. The gateway itself is package holdfast/gpuguard; this command
// only reads flags, environment and files.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	os.Exit(realMain())
}

func realMain() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// After the first signal the default comes back: a second one ends at once.
	context.AfterFunc(ctx, stop)
	return execute(ctx, os.Args[1:], environment{lookup: os.LookupEnv, in: os.Stdin, out: os.Stdout, errout: os.Stderr})
}

// environment is what the command touches of the process around it.
type environment struct {
	lookup      func(string) (string, bool)
	in          io.Reader
	out, errout io.Writer
}

// execute runs one command line and returns its exit code.
func execute(ctx context.Context, args []string, env environment) int {
	root := newRoot(env)
	root.SetArgs(args)
	root.SetIn(env.in)
	root.SetOut(env.out)
	root.SetErr(env.errout)
	err := root.ExecuteContext(ctx)
	if text := message(err); text != "" {
		fmt.Fprintln(env.errout, text)
	}
	return codeOf(err)
}
