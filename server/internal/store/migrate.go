package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"holdfast/migrations"
)

// versionTable is where goose notes which migrations ran.
const versionTable = "schema_migrations"

// sqliteMigrateAttempts bounds how often Migrate looks again on SQLite; with
// its pauses that is about two seconds.
const sqliteMigrateAttempts = 20

// Migrate brings the schema up to this program's version. Servers that start at
// the same moment wait for each other.
func (s *Store) Migrate(ctx context.Context) error {
	for attempt := 1; ; attempt++ {
		err := s.withGoose(func(p *goose.Provider) error {
			_, err := p.Up(ctx)
			return err
		})
		if err == nil || !s.sqlite || attempt == sqliteMigrateAttempts {
			return err
		}
		// goose has a lock for PostgreSQL alone: another process may have taken
		// the step that failed here, whole or not at all. Look again.
		if waitErr := pause(ctx, 50*time.Millisecond); waitErr != nil {
			return errors.Join(err, waitErr)
		}
	}
}

// MigrateDown takes the schema back to the given version; 0 removes it with all data.
func (s *Store) MigrateDown(ctx context.Context, version int64) error {
	return s.withGoose(func(p *goose.Provider) error {
		_, err := p.DownTo(ctx, version)
		return err
	})
}

// Version returns the version of the schema and the one this program needs.
func (s *Store) Version(ctx context.Context) (current, target int64, err error) {
	err = s.withGoose(func(p *goose.Provider) error {
		current, target, err = p.GetVersions(ctx)
		return err
	})
	return current, target, err
}

// withGoose works on connections of its own: a migration may take longer than
// the pool's limits allow.
func (s *Store) withGoose(fn func(*goose.Provider) error) error {
	db, err := s.openForMigration()
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	provider, err := s.gooseProvider(db)
	if err != nil {
		return fmt.Errorf("store: read the migrations: %w", err)
	}
	if err := fn(provider); err != nil {
		return fmt.Errorf("store: migrate the schema: %w", err)
	}
	return nil
}

func (s *Store) openForMigration() (*sql.DB, error) {
	if s.sqlite {
		db, err := sql.Open("sqlite", writeDSN(s.source))
		if err != nil {
			return nil, fmt.Errorf("store: open SQLite: %w", err)
		}
		return db, nil
	}
	config, err := pgx.ParseConfig(s.source)
	if err != nil {
		return nil, fmt.Errorf("store: read the PostgreSQL URL: %w", err)
	}
	setDefault(config.RuntimeParams, "timezone", "UTC")
	return stdlib.OpenDB(*config), nil
}

func (s *Store) gooseProvider(db *sql.DB) (*goose.Provider, error) {
	options := []goose.ProviderOption{
		goose.WithTableName(versionTable),
		goose.WithDisableGlobalRegistry(true),
		goose.WithSlog(s.logger),
	}
	if s.sqlite {
		files, err := fs.Sub(migrations.SQLite, "sqlite")
		if err != nil {
			return nil, err
		}
		return goose.NewProvider(goose.DialectSQLite3, db, files, options...)
	}
	files, err := fs.Sub(migrations.Postgres, "postgres")
	locker, lockErr := lock.NewPostgresSessionLocker()
	if err := errors.Join(err, lockErr); err != nil {
		return nil, err
	}
	return goose.NewProvider(goose.DialectPostgres, db, files, append(options, goose.WithSessionLocker(locker))...)
}
