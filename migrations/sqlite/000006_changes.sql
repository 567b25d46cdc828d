-- +goose Up
CREATE TABLE changes (
    id             TEXT PRIMARY KEY,
    service        TEXT NOT NULL,
    environment    TEXT NOT NULL,
    kind           TEXT NOT NULL,
    status         TEXT NOT NULL,
    starts_at      INTEGER NOT NULL,
    ends_at        INTEGER NOT NULL,
    run_id         TEXT NOT NULL,
    summary        TEXT NOT NULL,
    url            TEXT NOT NULL,
    requester_id   TEXT NOT NULL,
    requester_name TEXT NOT NULL,
    action_run_id  TEXT NOT NULL,
    blockers       TEXT,
    params_hash    TEXT NOT NULL,
    confirm_by     INTEGER,
    decided_by_id  TEXT NOT NULL,
    decided_by     TEXT NOT NULL,
    decided_at     INTEGER,
    fencing_token  INTEGER NOT NULL,
    claimed_until  INTEGER,
    created_at     INTEGER NOT NULL,
    finished_at    INTEGER,
    version        INTEGER NOT NULL,
    CHECK (ends_at >= starts_at)
) STRICT;
CREATE INDEX changes_window ON changes (environment, ends_at, starts_at);
CREATE INDEX changes_newest ON changes (created_at, id);
CREATE INDEX changes_run ON changes (run_id, service, environment);
CREATE INDEX changes_held ON changes (confirm_by) WHERE status = 'held';
CREATE INDEX changes_claimed ON changes (claimed_until) WHERE status = 'claimed';
CREATE INDEX changes_running ON changes (environment) WHERE status = 'running';
CREATE UNIQUE INDEX changes_action_run ON changes (action_run_id) WHERE action_run_id <> '';

CREATE TABLE change_holds (
    change_id TEXT NOT NULL REFERENCES changes (id) ON DELETE CASCADE,
    resource  TEXT NOT NULL,
    shared    INTEGER NOT NULL CHECK (shared IN (0, 1)),
    exempt    INTEGER NOT NULL CHECK (exempt IN (0, 1)),
    starts_at INTEGER NOT NULL,
    ends_at   INTEGER NOT NULL,
    PRIMARY KEY (change_id, resource),
    CHECK (ends_at > starts_at)
) STRICT;
CREATE INDEX change_holds_window ON change_holds (resource, ends_at) WHERE exempt = 0;

-- What the exclusion constraint does on PostgreSQL. Writers are serialised, so
-- that nothing can slip in between the check and the write.
-- +goose StatementBegin
CREATE TRIGGER change_holds_no_overlap_insert BEFORE INSERT ON change_holds WHEN NEW.exempt = 0
BEGIN
    SELECT RAISE(ABORT, 'change_conflict') WHERE EXISTS (
        SELECT 1 FROM change_holds h
        WHERE h.resource = NEW.resource AND h.exempt = 0 AND h.change_id <> NEW.change_id
          AND (h.shared = 0 OR NEW.shared = 0)
          AND h.starts_at < NEW.ends_at AND h.ends_at > NEW.starts_at);
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER change_holds_no_overlap_update BEFORE UPDATE ON change_holds WHEN NEW.exempt = 0
BEGIN
    SELECT RAISE(ABORT, 'change_conflict') WHERE EXISTS (
        SELECT 1 FROM change_holds h
        WHERE h.resource = NEW.resource AND h.exempt = 0 AND h.change_id <> NEW.change_id
          AND (h.shared = 0 OR NEW.shared = 0)
          AND h.starts_at < NEW.ends_at AND h.ends_at > NEW.starts_at);
END;
-- +goose StatementEnd

CREATE TABLE freezes (
    id           TEXT PRIMARY KEY,
    reason       TEXT NOT NULL,
    services     TEXT,
    environments TEXT,
    kinds        TEXT,
    starts_at    INTEGER NOT NULL,
    ends_at      INTEGER,
    created_by   TEXT NOT NULL,
    created_at   INTEGER NOT NULL
) STRICT;
CREATE INDEX freezes_window ON freezes (ends_at, starts_at);

-- +goose Down
DROP TABLE freezes;
DROP TABLE change_holds;
DROP TABLE changes;
