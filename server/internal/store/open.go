package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/glebarez/sqlite"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
)

// Options say where the database is.
type Options struct {
	// URL is postgres://… or the path of a SQLite file, with or without "sqlite:" in front.
	URL string
	// Logger takes slow and failed statements, without parameter values; nil discards.
	Logger *slog.Logger
	// Clock is the process clock behind SQLite; nil is time.Now. PostgreSQL has its own.
	Clock func() time.Time
	// MaxConns bounds PostgreSQL connections, and SQLite readers; default 16.
	MaxConns int
}

// defaultMaxConns leaves room for several servers below PostgreSQL's default of 100.
const defaultMaxConns = 16

// openTimeout bounds the first contact.
const openTimeout = 15 * time.Second

// Store is an open database. Its methods may be called from any goroutine.
type Store struct {
	logger *slog.Logger
	sqlite bool
	// source is the PostgreSQL URL or the absolute path of the SQLite file.
	source string
	clock  func() time.Time
	// last is the latest time handed out by this process, unix microseconds.
	last atomic.Int64

	// write and read are one pool on PostgreSQL. On SQLite write has a single
	// connection, so that writers queue here and not in the busy handler.
	write, read         *sql.DB
	gormWrite, gormRead *gorm.DB
	// writer holds the turn to write on SQLite; nil on PostgreSQL.
	writer chan struct{}

	wakes  wakes
	events *Events

	stop       context.CancelFunc
	background sync.WaitGroup
	mu         sync.Mutex
}

// Open connects. It does not touch the schema: see Migrate and Version.
func Open(ctx context.Context, o Options) (*Store, error) {
	s := &Store{logger: o.Logger, clock: o.Clock, events: newEvents()}
	if s.logger == nil {
		s.logger = slog.New(slog.DiscardHandler)
	}
	if s.clock == nil {
		s.clock = time.Now
	}
	if o.MaxConns <= 0 {
		o.MaxConns = defaultMaxConns
	}
	kind, source, err := parseURL(o.URL)
	if err != nil {
		return nil, err
	}
	s.sqlite, s.source = kind == kindSQLite, source
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	if s.sqlite {
		err = s.openSQLite(ctx, o.MaxConns)
	} else {
		err = s.openPostgres(ctx, o.MaxConns)
	}
	if err != nil {
		return nil, errors.Join(err, s.closePools())
	}
	return s, nil
}

// Close stops what Start began and closes every connection. Transactions under
// way fail.
func (s *Store) Close() error {
	s.mu.Lock()
	stop := s.stop
	s.stop = nil
	s.mu.Unlock()
	if stop != nil {
		stop()
	}
	s.background.Wait()
	s.events.close()
	return s.closePools()
}

func (s *Store) closePools() error {
	var errs []error
	if s.read != nil && s.read != s.write {
		errs = append(errs, s.read.Close())
	}
	if s.write != nil {
		errs = append(errs, s.write.Close())
	}
	return errors.Join(errs...)
}

// Ping says whether the database answers.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.read.PingContext(ctx); err != nil {
		return fmt.Errorf("store: the database does not answer: %w", err)
	}
	return nil
}

// Database names the kind of database: "postgres" or "sqlite".
func (s *Store) Database() string {
	if s.sqlite {
		return kindSQLite
	}
	return kindPostgres
}

// Kinds of database.
const (
	kindPostgres = "postgres"
	kindSQLite   = "sqlite"
)

// parseURL tells the database kind. Errors never quote the URL: it may hold a password.
func parseURL(raw string) (kind, source string, err error) {
	switch {
	case raw == "":
		return "", "", errors.New("store: no database given: want postgres://… or the path of a SQLite file")
	case strings.HasPrefix(raw, "postgres://"), strings.HasPrefix(raw, "postgresql://"):
		return kindPostgres, raw, nil
	case strings.Contains(raw, "://"):
		scheme, _, _ := strings.Cut(raw, "://")
		return "", "", fmt.Errorf("store: database scheme %q is not known: want postgres://… or the path of a SQLite file", scheme)
	}
	path := strings.TrimPrefix(raw, "sqlite:")
	if path == "" || strings.HasPrefix(path, ":memory:") || strings.HasPrefix(path, "file:") {
		return "", "", errors.New("store: SQLite needs the plain path of a file; an in-memory database cannot keep promises")
	}
	path, err = filepath.Abs(path)
	if err != nil {
		return "", "", fmt.Errorf("store: path of the SQLite file: %w", err)
	}
	return kindSQLite, path, nil
}

func (s *Store) openPostgres(ctx context.Context, maxConns int) error {
	config, err := pgx.ParseConfig(s.source)
	if err != nil {
		return fmt.Errorf("store: read the PostgreSQL URL: %w", err)
	}
	setDefault(config.RuntimeParams, "timezone", "UTC")
	setDefault(config.RuntimeParams, "application_name", "holdfast")
	// A server that stalls inside a transaction must not hold locks for ever.
	setDefault(config.RuntimeParams, "idle_in_transaction_session_timeout", "60s")
	s.write = stdlib.OpenDB(*config)
	s.write.SetMaxOpenConns(maxConns)
	s.write.SetMaxIdleConns(maxConns)
	s.write.SetConnMaxIdleTime(5 * time.Minute)
	s.read = s.write
	if err := s.write.PingContext(ctx); err != nil {
		return fmt.Errorf("store: connect to PostgreSQL: %w", err)
	}
	s.gormWrite, err = openGorm(postgres.New(postgres.Config{Conn: s.write}), s.logger)
	s.gormRead = s.gormWrite
	return err
}

func setDefault(params map[string]string, name, value string) {
	if _, given := params[name]; !given {
		params[name] = value
	}
}

func (s *Store) openSQLite(ctx context.Context, maxConns int) error {
	if err := prepareFile(s.source); err != nil {
		return err
	}
	s.writer = make(chan struct{}, 1)
	var err error
	if s.write, err = openSQLitePool(ctx, writeDSN(s.source), 1); err != nil {
		return err
	}
	if s.read, err = openSQLitePool(ctx, readDSN(s.source), maxConns); err != nil {
		return err
	}
	if s.gormWrite, err = openGorm(&sqlite.Dialector{Conn: s.write}, s.logger); err != nil {
		return err
	}
	s.gormRead, err = openGorm(&sqlite.Dialector{Conn: s.read}, s.logger)
	return err
}

// prepareFile makes a new file readable by its owner alone: it holds sessions and
// the hashes of tokens. It must not touch one that is there: closing it would
// drop the locks that this process's own connections hold on it
// (sqlite.org/howtocorrupt.html, 2.2).
func prepareFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("store: create the SQLite file (does its folder exist?): %w", err)
	}
	return f.Close()
}

// writeDSN: immediate transactions take the write lock first, so that a read
// followed by a write cannot fail half-way.
func writeDSN(path string) string {
	return sqliteDSN(path, "_txlock=immediate&_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)"+
		"&_pragma=synchronous(FULL)&_pragma=foreign_keys(1)")
}

func readDSN(path string) string {
	return sqliteDSN(path, "_pragma=busy_timeout(5000)&_pragma=query_only(1)")
}

func sqliteDSN(path, query string) string {
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + query
}

func openSQLitePool(ctx context.Context, dsn string, conns int) (*sql.DB, error) {
	db, err := sql.Open(sqlite.DriverName, dsn)
	if err != nil {
		return nil, fmt.Errorf("store: open SQLite: %w", err)
	}
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	if err := db.PingContext(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("store: open SQLite: %w", err), db.Close())
	}
	return db, nil
}

func openGorm(dialector gorm.Dialector, logger *slog.Logger) (*gorm.DB, error) {
	db, err := gorm.Open(dialector, &gorm.Config{
		Logger:                 queryLog{logger: logger},
		SkipDefaultTransaction: true,
		DisableAutomaticPing:   true,
		NowFunc:                func() time.Time { return time.Time{} },
	})
	if err != nil {
		return nil, fmt.Errorf("store: set up gorm: %w", err)
	}
	return db, nil
}
