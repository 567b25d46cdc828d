-- +goose Up
CREATE TABLE runbook_runs (
    id           text PRIMARY KEY,
    run_key      text NOT NULL,
    runbook_id   text NOT NULL,
    -- The version it began with, whole.
    runbook      text NOT NULL,
    params       text NOT NULL,
    incident_id  text NOT NULL,
    started_by   text NOT NULL,
    status       text NOT NULL CHECK (status IN ('running', 'waiting', 'succeeded', 'failed', 'cancelled')),
    current_step bigint NOT NULL CHECK (current_step >= 0),
    steps        text NOT NULL,
    -- The action run whose end the current step waits for.
    waits_for    text NOT NULL,
    started_at   timestamptz NOT NULL,
    ended_at     timestamptz,
    ended_by     text NOT NULL,
    next_at      timestamptz,
    version      bigint NOT NULL CHECK (version > 0),
    -- One run for a key: a start that arrives twice finds the first.
    CONSTRAINT runbook_runs_key UNIQUE (run_key),
    -- What has ended says when, and is never due again.
    CONSTRAINT runbook_runs_end CHECK (
        (status IN ('running', 'waiting')) = (ended_at IS NULL) AND (ended_at IS NULL OR next_at IS NULL))
);
CREATE INDEX runbook_runs_due ON runbook_runs (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX runbook_runs_newest ON runbook_runs (started_at, id);
CREATE INDEX runbook_runs_incident ON runbook_runs (incident_id) WHERE incident_id <> '';
CREATE INDEX runbook_runs_live ON runbook_runs (started_at, id) WHERE status IN ('running', 'waiting');
CREATE INDEX runbook_runs_waits ON runbook_runs (waits_for) WHERE waits_for <> '';

-- +goose Down
DROP TABLE runbook_runs;
