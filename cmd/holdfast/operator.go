package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"holdfast/server"
	"holdfast/server/audit"
	"holdfast/server/identity"
)

// databaseFlag adds --database to an operator's command.
func (a *app) databaseFlag(cmd *cobra.Command, url *string) {
	fallback := a.get("HOLDFAST_DATABASE_URL", filepath.Join(a.stateDir(), "holdfast.db"))
	cmd.PersistentFlags().StringVar(url, "database", fallback, "postgres://… or a SQLite file ($HOLDFAST_DATABASE_URL)")
}

// operate opens the database, checks its schema and closes it afterwards.
func (a *app) operate(ctx context.Context, url string, f func(context.Context, *server.Operator) error) (err error) {
	op, err := a.open(ctx, url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, op.Close()) }()
	if err := op.CheckSchema(ctx); err != nil {
		return err
	}
	return f(ctx, op)
}

func (a *app) open(ctx context.Context, url string) (*server.Operator, error) {
	if !strings.Contains(url, "://") {
		if _, err := os.Stat(strings.TrimPrefix(url, "sqlite:")); err != nil {
			return nil, usagef("no database at %s: name it with --database or HOLDFAST_DATABASE_URL", url)
		}
	}
	log, err := a.logger()
	if err != nil {
		return nil, err
	}
	return server.OpenOperator(ctx, url, log)
}

func (a *app) migrateCommand() *cobra.Command {
	var url string
	cmd := &cobra.Command{
		Use: "migrate", Short: "Show or change the database's schema version",
		Example: "  holdfast migrate status\n  holdfast migrate up\n  holdfast migrate down --to 3",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	a.databaseFlag(cmd, &url)
	sub := func(use, short string, f func(context.Context, *server.Operator) error) *cobra.Command {
		return &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) (err error) {
			log, err := a.logger()
			if err != nil {
				return err
			}
			op, err := server.OpenOperator(cmd.Context(), url, log)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, op.Close()) }()
			return f(cmd.Context(), op)
		}}
	}
	status := func(ctx context.Context, op *server.Operator) error {
		current, target, err := op.SchemaVersion(ctx)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(a.out, "schema version %d, this program needs %d\n", current, target)
		return err
	}
	var to int64
	down := sub("down", "Take the schema back; data of removed tables is lost", func(ctx context.Context, op *server.Operator) error {
		if err := op.MigrateDown(ctx, to); err != nil {
			return err
		}
		return status(ctx, op)
	})
	down.Flags().Int64Var(&to, "to", 0, "version to end at; 0 removes everything")
	_ = down.MarkFlagRequired("to")
	cmd.AddCommand(down, sub("status", "Print the versions", status), sub("up", "Bring the schema up to date", func(ctx context.Context, op *server.Operator) error {
		if err := op.MigrateUp(ctx); err != nil {
			return err
		}
		return status(ctx, op)
	}))
	return cmd
}

func (a *app) tokenCommand() *cobra.Command {
	var url string
	cmd := &cobra.Command{
		Use: "token", Short: "Make, list and revoke service tokens",
		Example: `  holdfast token create --kind ci --name github --owner alice
  holdfast token create --kind hook --name alertmanager --scope source:alertmanager
  holdfast token list
  holdfast token revoke ID`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	a.databaseFlag(cmd, &url)
	cmd.AddCommand(a.tokenCreate(&url), a.tokenList(&url), a.tokenRevoke(&url))
	return cmd
}

func (a *app) tokenCreate(url *string) *cobra.Command {
	var kind, name, owner string
	var scopes []string
	var ttl time.Duration
	cmd := &cobra.Command{
		Use: "create --kind KIND --name NAME", Short: "Make a token and print it, this once", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !identity.TokenKind(kind).Valid() {
				return usagef("--kind %q: want ci, hook, gateway or api", kind)
			}
			return a.operate(cmd.Context(), *url, func(ctx context.Context, op *server.Operator) error {
				plain, t, err := op.CreateToken(ctx, identity.TokenKind(kind), name, owner, scopes, ttl)
				if err != nil {
					return err
				}
				fmt.Fprintf(a.err, "token %s (%s, %s); it is shown only now:\n", t.ID, t.Kind, t.Name)
				_, err = fmt.Fprintln(a.out, plain)
				return err
			})
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&kind, "kind", "", "ci (pipelines), hook (alert sources), gateway, or api (acts for its owner)")
	fl.StringVar(&name, "name", "", "what it is for")
	fl.StringVar(&owner, "owner", "", "handle of the person who answers for it")
	fl.StringArrayVar(&scopes, "scope", nil, "narrow it, such as service:checkout, source:alertmanager or gateway:gw-1; may be repeated")
	fl.DurationVar(&ttl, "ttl", 0, "its life; 0 lasts until revoked")
	_ = cmd.MarkFlagRequired("kind")
	_ = cmd.MarkFlagRequired("name")
	_ = cmd.RegisterFlagCompletionFunc("kind", cobra.FixedCompletions([]string{"ci", "hook", "gateway", "api"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (a *app) tokenList(url *string) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "List tokens without secrets", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.operate(cmd.Context(), *url, func(ctx context.Context, op *server.Operator) error {
				tokens, err := op.Tokens(ctx)
				if err != nil {
					return err
				}
				return a.printTokens(tokens, asJSON)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (a *app) printTokens(tokens []identity.Token, asJSON bool) error {
	type row struct {
		ID, Kind, Name string
		Scopes         []string
		State          string
		LastUsed       string
	}
	rows := make([]row, 0, len(tokens))
	for _, t := range tokens {
		r := row{ID: t.ID, Kind: string(t.Kind), Name: t.Name, Scopes: append([]string{}, t.Scopes...), State: "valid", LastUsed: "never"}
		if !t.LastUsedAt.IsZero() {
			r.LastUsed = t.LastUsedAt.UTC().Format(time.RFC3339)
		}
		switch {
		case !t.RevokedAt.IsZero():
			r.State = "revoked"
		case !t.ExpiresAt.IsZero() && t.ExpiresAt.Before(time.Now()):
			r.State = "expired"
		}
		rows = append(rows, r)
	}
	if asJSON {
		return json.NewEncoder(a.out).Encode(rows)
	}
	if len(rows) == 0 {
		_, err := fmt.Fprintln(a.out, "no tokens yet; make one: holdfast token create --kind ci --name NAME")
		return err
	}
	w := tabwriter.NewWriter(a.out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tKIND\tNAME\tSCOPES\tSTATE\tLAST USED")
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", r.ID, r.Kind, r.Name, strings.Join(r.Scopes, ","), r.State, r.LastUsed)
	}
	return w.Flush()
}

func (a *app) tokenRevoke(url *string) *cobra.Command {
	return &cobra.Command{
		Use: "revoke ID", Short: "End a token at once", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.operate(cmd.Context(), *url, func(ctx context.Context, op *server.Operator) error {
				if err := op.RevokeToken(ctx, args[0]); err != nil {
					return err
				}
				_, err := fmt.Fprintf(a.out, "token %s is revoked\n", args[0])
				return err
			})
		},
	}
}

func (a *app) personCommand() *cobra.Command {
	var url string
	cmd := &cobra.Command{
		Use: "person", Short: "Enter people", Args: cobra.NoArgs,
		Example: "  holdfast person add --handle alice --name 'Alice Ito' --role admin",
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	a.databaseFlag(cmd, &url)
	var handle, name, role string
	add := &cobra.Command{
		Use: "add --handle HANDLE --name NAME --role ROLE", Short: "Enter a person", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := identity.ParseRole(role)
			if err != nil {
				return usagef("--role %q: want viewer, responder, approver or admin", role)
			}
			return a.operate(cmd.Context(), url, func(ctx context.Context, op *server.Operator) error {
				p, err := op.AddPerson(ctx, handle, name, r)
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(a.out, "%s (%s) is %s; console login: holdfast login-link --person %s\n", p.Name, p.Handle, p.Role, p.Handle)
				return err
			})
		},
	}
	add.Flags().StringVar(&handle, "handle", "", "short login name")
	add.Flags().StringVar(&name, "name", "", "full name")
	add.Flags().StringVar(&role, "role", "viewer", "viewer, responder, approver or admin")
	_ = add.MarkFlagRequired("handle")
	_ = add.MarkFlagRequired("name")
	cmd.AddCommand(add)
	return cmd
}

func (a *app) loginLinkCommand() *cobra.Command {
	var url, person, public string
	var ttl time.Duration
	cmd := &cobra.Command{
		Use: "login-link --person HANDLE", Short: "Make a one-time console login", Args: cobra.NoArgs,
		Example: "  holdfast login-link --person alice --public-url https://holdfast.example.com",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.operate(cmd.Context(), url, func(ctx context.Context, op *server.Operator) error {
				link, err := op.LoginLink(ctx, person, public, ttl)
				if err != nil {
					return err
				}
				_, err = fmt.Fprintln(a.out, link)
				return err
			})
		},
	}
	a.databaseFlag(cmd, &url)
	cmd.Flags().StringVar(&person, "person", "", "handle of the person")
	cmd.Flags().StringVar(&public, "public-url", a.get("HOLDFAST_PUBLIC_URL", "http://127.0.0.1:8080"), "address of the console ($HOLDFAST_PUBLIC_URL)")
	cmd.Flags().DurationVar(&ttl, "ttl", 15*time.Minute, "how long the link is good for")
	_ = cmd.MarkFlagRequired("person")
	return cmd
}

func (a *app) auditCommand() *cobra.Command {
	var url string
	cmd := &cobra.Command{
		Use: "audit", Short: "Export and verify the hash-chained audit", Args: cobra.NoArgs,
		Example: `  # Keep the head somewhere else, and check against it later
  holdfast audit head > head.txt
  holdfast audit verify --head "$(cat head.txt)"

  # Check an export without the database
  holdfast audit export > audit.jsonl
  holdfast audit verify --file audit.jsonl`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	a.databaseFlag(cmd, &url)
	cmd.AddCommand(a.auditHead(&url), a.auditExport(&url), a.auditVerify(&url))
	return cmd
}

func (a *app) auditHead(url *string) *cobra.Command {
	return &cobra.Command{
		Use: "head", Short: "Print the newest link as seq:hash", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.operate(cmd.Context(), *url, func(ctx context.Context, op *server.Operator) error {
				h, err := op.AuditHead(ctx)
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(a.out, "%d:%s\n", h.Seq, h.Hash)
				return err
			})
		},
	}
}

func (a *app) auditExport(url *string) *cobra.Command {
	return &cobra.Command{
		Use: "export", Short: "Write the chain as JSON lines", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.operate(cmd.Context(), *url, func(ctx context.Context, op *server.Operator) error {
				w := bufio.NewWriter(a.out)
				enc := json.NewEncoder(w)
				for l, err := range op.AuditChain(ctx) {
					if err != nil {
						return err
					}
					if err := enc.Encode(l); err != nil {
						return err
					}
				}
				return w.Flush()
			})
		},
	}
}

func (a *app) auditVerify(url *string) *cobra.Command {
	var file, head string
	cmd := &cobra.Command{
		Use: "verify", Short: "Check the chain; names the first bad place", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			published, err := parseHead(head)
			if err != nil {
				return err
			}
			if file != "" {
				f, err := os.Open(file)
				if err != nil {
					return usageError{err}
				}
				defer f.Close()
				return a.verify(readChain(f), published)
			}
			return a.operate(cmd.Context(), *url, func(ctx context.Context, op *server.Operator) error {
				if published == nil {
					own, err := op.AuditHead(ctx)
					if err != nil {
						return err
					}
					published = &own
				}
				return a.verify(op.AuditChain(ctx), published)
			})
		},
	}
	cmd.Flags().StringVar(&file, "file", "", "an export, instead of the database")
	cmd.Flags().StringVar(&head, "head", "", "a head published earlier, seq:hash; without it a cut-off end of an export cannot be seen")
	return cmd
}

func (a *app) verify(chain iter.Seq2[audit.Linked, error], published *audit.Head) error {
	end, err := audit.Verify(chain, published)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.out, "the audit chain is whole: %d entries, head %d:%s\n", end.Seq, end.Seq, end.Hash)
	return err
}

func parseHead(s string) (*audit.Head, error) {
	if s == "" {
		return nil, nil //nolint:nilnil // no head was given
	}
	seq, hash, ok := strings.Cut(strings.TrimSpace(s), ":")
	n, err := strconv.ParseInt(seq, 10, 64)
	if !ok || err != nil || n < 0 || len(hash) != 64 {
		return nil, usagef("--head: want seq:hash, as 'holdfast audit head' prints it")
	}
	return &audit.Head{Seq: n, Hash: hash}, nil
}

// readChain reads an export line by line.
func readChain(r io.Reader) iter.Seq2[audit.Linked, error] {
	return func(yield func(audit.Linked, error) bool) {
		dec := json.NewDecoder(r)
		for {
			var l audit.Linked
			err := dec.Decode(&l)
			if errors.Is(err, io.EOF) {
				return
			}
			if !yield(l, err) || err != nil {
				return
			}
		}
	}
}

func (a *app) configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "config", Short: "Check configuration files", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var policyFile, runbookDir string
	check := &cobra.Command{
		Use: "check [FILE]", Short: "Check a configuration, a policy with --policy and runbooks with --runbooks", Args: cobra.MaximumNArgs(1),
		Example: "  holdfast config check holdfast.yaml --policy policy.yaml --runbooks runbooks",
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 && policyFile == "" && runbookDir == "" {
				return usagef("name a configuration file, a policy with --policy or a folder with --runbooks")
			}
			return a.checkFiles(args, policyFile, runbookDir)
		},
	}
	check.Flags().StringVar(&policyFile, "policy", "", "a policy file to check too")
	check.Flags().StringVar(&runbookDir, "runbooks", a.get("HOLDFAST_RUNBOOKS", ""), "a folder of runbooks to check too ($HOLDFAST_RUNBOOKS)")
	cmd.AddCommand(check)
	return cmd
}

func (a *app) checkFiles(configs []string, policyFile, runbookDir string) error {
	var errs []error
	for _, path := range configs {
		if _, err := loadConfig(path, nil); err != nil {
			errs = append(errs, err)
			continue
		}
		fmt.Fprintf(a.out, "%s: ok\n", path)
	}
	if policyFile != "" {
		if _, err := loadPolicy(policyFile); err != nil {
			errs = append(errs, err)
		} else {
			fmt.Fprintf(a.out, "%s: ok\n", policyFile)
		}
	}
	if runbookDir != "" {
		if _, err := server.LoadRunbooks(runbookDir); err != nil {
			errs = append(errs, err)
		} else {
			fmt.Fprintf(a.out, "%s: ok\n", runbookDir)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return usageError{err}
	}
	return nil
}
