package store_test

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"holdfast/server/internal/store/storetest"
)

func TestMigrationsUpDownUpGiveTheSameSchema(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		current, target, err := db.Version(t.Context())
		require.NoError(t, err)
		require.Equal(t, target, current)
		require.Positive(t, target)
		up := schemaOf(t, db)
		require.NotEmpty(t, up)

		require.NoError(t, db.MigrateDown(t.Context(), 0))
		require.Empty(t, schemaOf(t, db), "down leaves nothing behind")

		require.NoError(t, db.Migrate(t.Context()))
		require.Empty(t, cmp.Diff(up, schemaOf(t, db)))
	})
}

// Every single step can be taken back and taken again.
func TestMigrationsStepByStep(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		_, target, err := db.Version(t.Context())
		require.NoError(t, err)
		up := schemaOf(t, db)
		for version := target - 1; version >= 0; version-- {
			require.NoError(t, db.MigrateDown(t.Context(), version))
			current, _, err := db.Version(t.Context())
			require.NoError(t, err)
			require.Equal(t, version, current)
		}
		require.NoError(t, db.Migrate(t.Context()))
		require.Empty(t, cmp.Diff(up, schemaOf(t, db)))
	})
}

func TestBothDatabasesHaveTheSameTablesAndColumns(t *testing.T) {
	t.Parallel()
	columns := make(map[storetest.Kind][]string)
	for _, kind := range []storetest.Kind{storetest.SQLite, storetest.Postgres} {
		db := storetest.Open(t, kind)
		query := "SELECT m.name || '.' || c.name FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%' AND m.name <> 'schema_migrations'"
		if kind == storetest.Postgres {
			// lane, guard and point serve the exclusion constraint alone.
			query = "SELECT table_name || '.' || column_name FROM information_schema.columns WHERE table_schema = 'public' AND table_name <> 'schema_migrations' AND NOT (table_name = 'change_holds' AND column_name IN ('lane', 'guard', 'point'))"
		}
		columns[kind] = lines(t, db, "SELECT * FROM ("+query+") AS c ORDER BY 1")
	}
	require.Empty(t, cmp.Diff(columns[storetest.SQLite], columns[storetest.Postgres]))
}

// schemaOf lists tables, columns, constraints, indexes, triggers and functions.
func schemaOf(t *testing.T, db *storetest.DB) []string {
	t.Helper()
	if db.Kind == storetest.SQLite {
		return lines(t, db, "SELECT type || ' ' || name || ' ' || coalesce(sql, '') FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' AND tbl_name <> 'schema_migrations' ORDER BY 1")
	}
	var out []string
	for _, query := range []string{
		`SELECT table_name || '.' || column_name || ' ' || data_type || ' ' || is_nullable || ' ' || coalesce(column_default, '') || is_identity || coalesce(generation_expression, '')
		 FROM information_schema.columns WHERE table_schema = 'public' AND table_name <> 'schema_migrations' ORDER BY 1`,
		`SELECT conrelid::regclass || ' ' || conname || ' ' || pg_get_constraintdef(oid) FROM pg_constraint
		 WHERE connamespace = 'public'::regnamespace AND conrelid::regclass::text <> 'schema_migrations' ORDER BY 1`,
		`SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' AND tablename <> 'schema_migrations' ORDER BY 1`,
		`SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal ORDER BY 1`,
		`SELECT pg_get_functiondef(p.oid) FROM pg_proc p LEFT JOIN pg_depend d ON d.objid = p.oid AND d.deptype = 'e'
		 WHERE p.pronamespace = 'public'::regnamespace AND d.objid IS NULL ORDER BY 1`,
	} {
		out = append(out, lines(t, db, query)...)
	}
	return out
}

// lines runs a query of one text column beside the store.
func lines(t *testing.T, db *storetest.DB, query string) []string {
	t.Helper()
	conn := rawDB(t, db)
	rows, err := conn.QueryContext(t.Context(), query)
	require.NoError(t, err)
	defer func() { require.NoError(t, rows.Close()) }()
	var out []string
	for rows.Next() {
		var line string
		require.NoError(t, rows.Scan(&line))
		out = append(out, strings.TrimSpace(line))
	}
	require.NoError(t, rows.Err())
	return out
}

// rawDB opens the database beside the store, past all its rules.
func rawDB(t *testing.T, db *storetest.DB) *sql.DB {
	t.Helper()
	driver, dsn := "pgx", db.URL
	if db.Kind == storetest.SQLite {
		driver, dsn = "sqlite", fmt.Sprintf("file:%s?_pragma=busy_timeout(5000)", db.Path(t))
	}
	conn, err := sql.Open(driver, dsn)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	return conn
}
