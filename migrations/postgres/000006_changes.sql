-- +goose Up
CREATE TABLE changes (
    id             text PRIMARY KEY,
    service        text NOT NULL,
    environment    text NOT NULL,
    kind           text NOT NULL,
    status         text NOT NULL,
    starts_at      timestamptz NOT NULL,
    ends_at        timestamptz NOT NULL,
    run_id         text NOT NULL,
    summary        text NOT NULL,
    url            text NOT NULL,
    requester_id   text NOT NULL,
    requester_name text NOT NULL,
    action_run_id  text NOT NULL,
    blockers       text,
    params_hash    text NOT NULL,
    confirm_by     timestamptz,
    decided_by_id  text NOT NULL,
    decided_by     text NOT NULL,
    decided_at     timestamptz,
    fencing_token  bigint NOT NULL,
    claimed_until  timestamptz,
    created_at     timestamptz NOT NULL,
    finished_at    timestamptz,
    version        bigint NOT NULL,
    CHECK (ends_at >= starts_at)
);
CREATE INDEX changes_window ON changes (environment, ends_at, starts_at);
CREATE INDEX changes_newest ON changes (created_at, id);
CREATE INDEX changes_run ON changes (run_id, service, environment);
CREATE INDEX changes_held ON changes (confirm_by) WHERE status = 'held';
CREATE INDEX changes_claimed ON changes (claimed_until) WHERE status = 'claimed';
CREATE INDEX changes_running ON changes (environment) WHERE status = 'running';
CREATE UNIQUE INDEX changes_action_run ON changes (action_run_id) WHERE action_run_id <> '';

-- Guarded reservations. Exclusive holds take the lane [0,), a shared hold takes
-- a point of its own: shared holds coexist with each other and meet every
-- exclusive one. Half-open ranges that touch do not overlap.
CREATE TABLE change_holds (
    change_id text NOT NULL REFERENCES changes (id) ON DELETE CASCADE,
    resource  text NOT NULL,
    shared    boolean NOT NULL,
    exempt    boolean NOT NULL,
    starts_at timestamptz NOT NULL,
    ends_at   timestamptz NOT NULL,
    point     bigint GENERATED ALWAYS AS IDENTITY,
    lane      int8range NOT NULL GENERATED ALWAYS AS
              (CASE WHEN shared THEN int8range(point, point + 1) ELSE int8range(0, NULL) END) STORED,
    guard     tstzrange NOT NULL GENERATED ALWAYS AS (tstzrange(starts_at, ends_at)) STORED,
    PRIMARY KEY (change_id, resource),
    -- An empty range would conflict with nothing.
    CHECK (ends_at > starts_at),
    CONSTRAINT change_holds_no_overlap EXCLUDE USING gist
        (resource WITH =, change_id WITH <>, lane WITH &&, guard WITH &&) WHERE (NOT exempt)
);

CREATE TABLE freezes (
    id           text PRIMARY KEY,
    reason       text NOT NULL,
    services     text,
    environments text,
    kinds        text,
    starts_at    timestamptz NOT NULL,
    ends_at      timestamptz,
    created_by   text NOT NULL,
    created_at   timestamptz NOT NULL
);
CREATE INDEX freezes_window ON freezes (ends_at, starts_at);

-- +goose Down
DROP TABLE freezes;
DROP TABLE change_holds;
DROP TABLE changes;
