-- +goose Up
CREATE TABLE runbook_runs (
    id           TEXT PRIMARY KEY,
    -- One run for a key: a start that arrives twice finds the first.
    run_key      TEXT NOT NULL UNIQUE,
    runbook_id   TEXT NOT NULL,
    -- The version it began with, whole.
    runbook      TEXT NOT NULL,
    params       TEXT NOT NULL,
    incident_id  TEXT NOT NULL,
    started_by   TEXT NOT NULL,
    status       TEXT NOT NULL CHECK (status IN ('running', 'waiting', 'succeeded', 'failed', 'cancelled')),
    current_step INTEGER NOT NULL CHECK (current_step >= 0),
    steps        TEXT NOT NULL,
    -- The action run whose end the current step waits for.
    waits_for    TEXT NOT NULL,
    started_at   INTEGER NOT NULL,
    ended_at     INTEGER,
    ended_by     TEXT NOT NULL,
    next_at      INTEGER,
    version      INTEGER NOT NULL CHECK (version > 0),
    -- What has ended says when, and is never due again.
    CONSTRAINT runbook_runs_end CHECK (
        (status IN ('running', 'waiting')) = (ended_at IS NULL) AND (ended_at IS NULL OR next_at IS NULL))
) STRICT;
CREATE INDEX runbook_runs_due ON runbook_runs (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX runbook_runs_newest ON runbook_runs (started_at, id);
CREATE INDEX runbook_runs_incident ON runbook_runs (incident_id) WHERE incident_id <> '';
CREATE INDEX runbook_runs_live ON runbook_runs (started_at, id) WHERE status IN ('running', 'waiting');
CREATE INDEX runbook_runs_waits ON runbook_runs (waits_for) WHERE waits_for <> '';

-- +goose Down
DROP TABLE runbook_runs;
