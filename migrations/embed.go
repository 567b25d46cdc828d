// Package migrations holds the database schema as goose SQL migrations, one
// folder for each database. The two folders describe the same tables; they
// differ where one database has something the other lacks, such as exclusion
// constraints.
package migrations

import "embed"

// Postgres holds postgres/NNNNNN_name.sql.
//
//go:embed postgres/*.sql
var Postgres embed.FS

// SQLite holds sqlite/NNNNNN_name.sql.
//
//go:embed sqlite/*.sql
var SQLite embed.FS
