-- +goose Up
CREATE TABLE outbox (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    topic        TEXT NOT NULL,
    ordering_key TEXT NOT NULL,
    kind         TEXT NOT NULL,
    subject      TEXT NOT NULL,
    payload      TEXT NOT NULL,
    coalesce_ok  INTEGER NOT NULL CHECK (coalesce_ok IN (0, 1)),
    attempts     INTEGER NOT NULL DEFAULT 0,
    last_error   TEXT NOT NULL DEFAULT '',
    created_at   INTEGER NOT NULL,
    not_before   INTEGER,
    leased_until INTEGER,
    buried_at    INTEGER
) STRICT;
-- Finds the head of a key, and whether an older message is still in the way.
CREATE INDEX outbox_waiting ON outbox (topic, ordering_key, id) WHERE buried_at IS NULL;
CREATE INDEX outbox_by_id ON outbox (topic, id) WHERE buried_at IS NULL;

-- +goose Down
DROP TABLE outbox;
