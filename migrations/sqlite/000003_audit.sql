-- +goose Up
CREATE TABLE audit_entries (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    at         INTEGER NOT NULL,
    actor_id   TEXT NOT NULL,
    actor_name TEXT NOT NULL,
    channel    TEXT NOT NULL,
    verb       TEXT NOT NULL,
    subject    TEXT NOT NULL,
    decision   TEXT NOT NULL,
    reason     TEXT NOT NULL,
    details    TEXT
) STRICT;
CREATE INDEX audit_entries_subject ON audit_entries (subject, id);

-- Entries that wait for their link; written with the entry, removed by the chainer.
CREATE TABLE audit_pending (
    entry_id INTEGER PRIMARY KEY REFERENCES audit_entries (id)
) STRICT;

CREATE TABLE audit_chain (
    seq       INTEGER PRIMARY KEY,
    entry_id  INTEGER NOT NULL UNIQUE REFERENCES audit_entries (id),
    prev_hash TEXT NOT NULL,
    hash      TEXT NOT NULL
) STRICT;

CREATE TABLE audit_head (
    id   INTEGER PRIMARY KEY CHECK (id = 1),
    seq  INTEGER NOT NULL,
    hash TEXT NOT NULL
) STRICT;
INSERT INTO audit_head (id, seq, hash)
VALUES (1, 0, '0000000000000000000000000000000000000000000000000000000000000000');

-- +goose StatementBegin
CREATE TRIGGER audit_entries_no_update BEFORE UPDATE ON audit_entries
BEGIN SELECT RAISE(ABORT, 'audit_append_only: UPDATE of audit_entries is refused'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER audit_entries_no_delete BEFORE DELETE ON audit_entries
BEGIN SELECT RAISE(ABORT, 'audit_append_only: DELETE of audit_entries is refused'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER audit_chain_no_update BEFORE UPDATE ON audit_chain
BEGIN SELECT RAISE(ABORT, 'audit_append_only: UPDATE of audit_chain is refused'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER audit_chain_no_delete BEFORE DELETE ON audit_chain
BEGIN SELECT RAISE(ABORT, 'audit_append_only: DELETE of audit_chain is refused'); END;
-- +goose StatementEnd

-- +goose Down
DROP TRIGGER audit_entries_no_update;
DROP TRIGGER audit_entries_no_delete;
DROP TRIGGER audit_chain_no_update;
DROP TRIGGER audit_chain_no_delete;
DROP TABLE audit_head;
DROP TABLE audit_chain;
DROP TABLE audit_pending;
DROP TABLE audit_entries;
