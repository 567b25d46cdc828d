-- +goose Up
CREATE TABLE action_runs (
    id              text PRIMARY KEY,
    run_key         text NOT NULL,
    action          text NOT NULL,
    params          text NOT NULL,
    params_hash     text NOT NULL,
    plan            text NOT NULL,
    incident_id     text NOT NULL,
    requester       text NOT NULL,
    reason          text NOT NULL,
    status          text NOT NULL,
    ttl_us          bigint NOT NULL,
    lineage         text NOT NULL,
    revision        bigint NOT NULL,
    revert_revision bigint NOT NULL,
    accepted_at     timestamptz NOT NULL,
    executed_at     timestamptz,
    enforced_at     timestamptz,
    expires_at      timestamptz,
    ended_at        timestamptz,
    end_reason      text NOT NULL,
    end_detail      text NOT NULL,
    ended_by        text NOT NULL,
    missing         text,
    verification    text NOT NULL,
    warned          boolean NOT NULL,
    next_at         timestamptz,
    epoch           bigint NOT NULL,
    version         bigint NOT NULL,
    -- One run for a key: a click that arrives twice finds the first.
    CONSTRAINT action_runs_key UNIQUE (run_key)
);
CREATE INDEX action_runs_due ON action_runs (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX action_runs_newest ON action_runs (accepted_at, id);
CREATE INDEX action_runs_incident ON action_runs (incident_id) WHERE incident_id <> '';
CREATE INDEX action_runs_live ON action_runs (accepted_at)
    WHERE status IN ('accepted', 'executing', 'active', 'reverting');

-- +goose Down
DROP TABLE action_runs;
