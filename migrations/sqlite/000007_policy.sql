-- +goose Up
CREATE TABLE policy_head (
    id                INTEGER PRIMARY KEY CHECK (id = 1),
    lineage           TEXT NOT NULL,
    lineage_confirmed INTEGER NOT NULL CHECK (lineage_confirmed IN (0, 1)),
    revision          INTEGER NOT NULL,
    base              TEXT NOT NULL
) STRICT;

CREATE TABLE policy_revisions (
    lineage   TEXT NOT NULL,
    revision  INTEGER NOT NULL,
    at        INTEGER NOT NULL,
    cause     TEXT NOT NULL,
    actor     TEXT NOT NULL,
    effective TEXT NOT NULL,
    PRIMARY KEY (lineage, revision)
) STRICT;

-- Live layers; a layer that is taken back is deleted. One live lease for a path.
CREATE TABLE policy_overrides (
    id         TEXT PRIMARY KEY,
    path       TEXT NOT NULL UNIQUE,
    value      TEXT NOT NULL,
    owner      TEXT NOT NULL,
    reason     TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE gateways (
    name              TEXT PRIMARY KEY,
    instance          TEXT NOT NULL,
    version           TEXT NOT NULL,
    lineage           TEXT NOT NULL,
    revision          INTEGER NOT NULL,
    result            TEXT NOT NULL,
    error             TEXT NOT NULL,
    rejected_revision INTEGER NOT NULL,
    apply_seconds     REAL NOT NULL,
    acked_at          INTEGER,
    last_heard_at     INTEGER NOT NULL,
    state             TEXT NOT NULL,
    prior             TEXT NOT NULL,
    prior_at          INTEGER,
    state_at          INTEGER
) STRICT;

-- +goose Down
DROP TABLE gateways;
DROP TABLE policy_overrides;
DROP TABLE policy_revisions;
DROP TABLE policy_head;
