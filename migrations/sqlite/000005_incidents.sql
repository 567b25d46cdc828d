-- +goose Up
CREATE TABLE incidents (
    id          TEXT PRIMARY KEY,
    number      INTEGER NOT NULL UNIQUE,
    title       TEXT NOT NULL,
    severity    TEXT NOT NULL,
    status      TEXT NOT NULL,
    group_key   TEXT NOT NULL,
    service     TEXT NOT NULL,
    environment TEXT NOT NULL,
    runbook_url TEXT NOT NULL,
    source_url  TEXT NOT NULL,
    summary     TEXT NOT NULL,
    firing      INTEGER NOT NULL,
    resolved    INTEGER NOT NULL,
    truncated   INTEGER NOT NULL,
    opened_at   INTEGER NOT NULL,
    acked_at    INTEGER,
    acked_by    TEXT NOT NULL,
    resolved_at INTEGER,
    version     INTEGER NOT NULL
) STRICT;
-- At most one incident of a group is not resolved, whoever opens it at once.
CREATE UNIQUE INDEX incidents_open_group ON incidents (group_key) WHERE status <> 'resolved' AND group_key <> '';
CREATE INDEX incidents_group ON incidents (group_key, number);
CREATE INDEX incidents_open ON incidents (number) WHERE status <> 'resolved';

CREATE TABLE timeline_entries (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    incident_id TEXT NOT NULL REFERENCES incidents (id),
    at          INTEGER NOT NULL,
    kind        TEXT NOT NULL,
    actor       TEXT NOT NULL,
    text        TEXT NOT NULL,
    ref         TEXT NOT NULL
) STRICT;
CREATE INDEX timeline_entries_incident ON timeline_entries (incident_id, id);

CREATE TABLE occurrences (
    id               INTEGER PRIMARY KEY AUTOINCREMENT,
    fingerprint      TEXT NOT NULL,
    starts_at        INTEGER NOT NULL,
    ends_at          INTEGER,
    status           TEXT NOT NULL,
    severity         TEXT NOT NULL,
    labels           TEXT,
    annotations      TEXT,
    generator_url    TEXT NOT NULL,
    group_key        TEXT NOT NULL,
    incident_id      TEXT REFERENCES incidents (id),
    source           TEXT NOT NULL,
    first_seen_at    INTEGER NOT NULL,
    last_received_at INTEGER NOT NULL,
    repeats          INTEGER NOT NULL,
    UNIQUE (fingerprint, starts_at)
) STRICT;
CREATE INDEX occurrences_incident ON occurrences (incident_id, status);

-- Notifications as received, gzip; kept for the retention time.
CREATE TABLE raw_notifications (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    source      TEXT NOT NULL,
    received_at INTEGER NOT NULL,
    body        BLOB NOT NULL
) STRICT;
CREATE INDEX raw_notifications_received_at ON raw_notifications (received_at);

-- +goose Down
DROP TABLE raw_notifications;
DROP TABLE occurrences;
DROP TABLE timeline_entries;
DROP TABLE incidents;
