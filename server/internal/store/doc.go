// Package store is the only user of gorm: it implements the ports of the domain
// packages on PostgreSQL and on SQLite.
//
//	s.InTx ──▶ one *Tx, which satisfies the Tx port of every domain package
//	            │  commit
//	            └─▶ wakes (new revision, due run, click, outbox) and events (console)
//
// One concern stands in one file: open.go and tx.go hold connections and
// transactions, clock.go the database clock, errors.go the map from constraints
// to the errors of the domain, the others one port or one table each. Rows are
// private; the schema is in package migrations and is never made from structs.
//
// A function given to InTx may run more than once: a serialization failure, a
// deadlock or a busy SQLite file is tried again. It must not call InTx itself.
package store
