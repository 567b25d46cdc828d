-- +goose Up
CREATE TABLE action_runs (
    id              TEXT PRIMARY KEY,
    -- One run for a key: a click that arrives twice finds the first.
    run_key         TEXT NOT NULL UNIQUE,
    action          TEXT NOT NULL,
    params          TEXT NOT NULL,
    params_hash     TEXT NOT NULL,
    plan            TEXT NOT NULL,
    incident_id     TEXT NOT NULL,
    requester       TEXT NOT NULL,
    reason          TEXT NOT NULL,
    status          TEXT NOT NULL,
    ttl_us          INTEGER NOT NULL,
    lineage         TEXT NOT NULL,
    revision        INTEGER NOT NULL,
    revert_revision INTEGER NOT NULL,
    accepted_at     INTEGER NOT NULL,
    executed_at     INTEGER,
    enforced_at     INTEGER,
    expires_at      INTEGER,
    ended_at        INTEGER,
    end_reason      TEXT NOT NULL,
    end_detail      TEXT NOT NULL,
    ended_by        TEXT NOT NULL,
    missing         TEXT,
    verification    TEXT NOT NULL,
    warned          INTEGER NOT NULL CHECK (warned IN (0, 1)),
    next_at         INTEGER,
    epoch           INTEGER NOT NULL,
    version         INTEGER NOT NULL
) STRICT;
CREATE INDEX action_runs_due ON action_runs (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX action_runs_newest ON action_runs (accepted_at, id);
CREATE INDEX action_runs_incident ON action_runs (incident_id) WHERE incident_id <> '';
CREATE INDEX action_runs_live ON action_runs (accepted_at)
    WHERE status IN ('accepted', 'executing', 'active', 'reverting');

-- +goose Down
DROP TABLE action_runs;
