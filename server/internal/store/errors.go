package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	gosqlite "github.com/glebarez/go-sqlite"
	"github.com/jackc/pgx/v5/pgconn"

	"holdfast/actions"
	"holdfast/runbooks"
	"holdfast/server/change"
	"holdfast/server/identity"
	"holdfast/server/incident"
)

// errRepeat is for a constraint that a second look resolves: the transaction is run again.
var errRepeat = errors.New("another server was faster")

// constraint is one rule the database enforces: its name on PostgreSQL, the
// text by which SQLite names it, and what it means.
type constraint struct {
	postgres string
	sqlite   string
	what     string
	err      error
}

var constraints = []constraint{
	{"persons_handle_key", "persons.handle", "handle", identity.ErrDuplicate},
	{"persons_slack_key", "persons.slack_team, persons.slack_user", "Slack user", identity.ErrDuplicate},
	{"tokens_pkey", "tokens.id", "token id", identity.ErrDuplicate},
	{"links_pkey", "links.hash", "link", identity.ErrDuplicate},
	{"sessions_pkey", "sessions.hash", "session", identity.ErrDuplicate},
	{"incidents_open_group", "incidents.group_key", "open incident of this group", incident.ErrStale},
	{"change_holds_no_overlap", "change_conflict", "hold", change.ErrConflict},
	{"action_runs_key", "action_runs.run_key", "run key", actions.ErrDuplicate},
	{"runbook_runs_key", "runbook_runs.run_key", "runbook run key", runbooks.ErrDuplicate},
	{"policy_overrides_path_key", "policy_overrides.path", "override", actions.ErrPathLeased},
	{"buttons_live_slot", "buttons.subject, buttons.slot", "live button", errRepeat},
}

// constraintError is the one place where a violated constraint becomes an error
// of the domain; nil for every other error.
func constraintError(err error) error {
	var pg *pgconn.PgError
	var lite *gosqlite.Error
	switch {
	case errors.As(err, &pg):
		for _, c := range constraints {
			if c.postgres == pg.ConstraintName {
				return fmt.Errorf("%s: %w", c.what, c.err)
			}
		}
	case errors.As(err, &lite) && lite.Code()&0xff == sqliteConstraint:
		for _, c := range constraints {
			if namesConstraint(lite.Error(), c.sqlite) {
				return fmt.Errorf("%s: %w", c.what, c.err)
			}
		}
	}
	return nil
}

// namesConstraint reads "constraint failed: UNIQUE constraint failed: persons.handle (2067)".
func namesConstraint(message, name string) bool {
	_, rest, found := strings.Cut(message, name)
	return found && (rest == "" || rest[0] == ' ')
}

// Result codes of SQLite (sqlite.org/rescode.html); the last is an extended one.
const (
	sqliteBusy       = 5
	sqliteLocked     = 6
	sqliteConstraint = 19
	sqliteForeignKey = 787
)

// foreignKeyViolation is PostgreSQL's SQLSTATE for a missing parent row.
const foreignKeyViolation = "23503"

// SQLSTATEs of PostgreSQL that ask for a repeat of the transaction.
const (
	serializationFailure = "40001"
	deadlockDetected     = "40P01"
)

// repeatable says whether the same transaction may succeed when run again.
func repeatable(err error) bool {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pg.Code == serializationFailure || pg.Code == deadlockDetected
	}
	if lite, ok := errors.AsType[*gosqlite.Error](err); ok {
		primary := lite.Code() & 0xff
		return primary == sqliteBusy || primary == sqliteLocked
	}
	return errors.Is(err, errRepeat)
}

// ofParent turns the violation of a foreign key into absent: the row it would
// hang on is not there. It is for statements with a single foreign key, because
// SQLite does not say which.
func ofParent(err, absent error) error {
	var pg *pgconn.PgError
	var lite *gosqlite.Error
	if errors.As(err, &pg) && pg.Code == foreignKeyViolation ||
		errors.As(err, &lite) && lite.Code() == sqliteForeignKey {
		return absent
	}
	return err
}

// ErrUnavailable says that the database went away, refuses connections or is too
// busy: what was asked may work a moment later, and may have been done when the
// loss came at the commit.
var ErrUnavailable = errors.New("the database is not available")

// unavailable marks an error that means ErrUnavailable; others stay as they are.
func unavailable(err error) error {
	if err == nil || errors.Is(err, ErrUnavailable) || !connectionLost(err) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// SQLSTATEs by which PostgreSQL says that it is going, coming or full: class 08
// is a broken connection, 57P a server that stops or starts, 53300 too many connections.
const (
	connectionException = "08"
	operatorIntervened  = "57P"
	tooManyConnections  = "53300"
)

// connectionLost is for errors of the database driver alone.
func connectionLost(err error) bool {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return strings.HasPrefix(pg.Code, connectionException) || strings.HasPrefix(pg.Code, operatorIntervened) || pg.Code == tooManyConnections
	}
	var connect *pgconn.ConnectError
	var network net.Error
	return errors.As(err, &connect) || errors.As(err, &network) && !errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) ||
		pgconn.SafeToRetry(err)
}

// check gives an error its context and its meaning in the domain.
func (tx *Tx) check(what string, err error) error {
	if err == nil {
		return nil
	}
	if known := constraintError(err); known != nil {
		err = known
	} else {
		err = fmt.Errorf("store: %s: %w", what, unavailable(err))
	}
	if repeatable(err) {
		tx.repeat = err
	}
	return err
}

// errNoCounter means that a row of the schema's own is gone.
var errNoCounter = errors.New("the counter row is missing: the schema is damaged")

// errStopped ends a walk whose reader had enough.
var errStopped = errors.New("stopped")
