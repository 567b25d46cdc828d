-- +goose Up
CREATE TABLE policy_head (
    id                integer PRIMARY KEY CHECK (id = 1),
    lineage           text NOT NULL,
    lineage_confirmed boolean NOT NULL,
    revision          bigint NOT NULL,
    base              text NOT NULL
);

CREATE TABLE policy_revisions (
    lineage   text NOT NULL,
    revision  bigint NOT NULL,
    at        timestamptz NOT NULL,
    cause     text NOT NULL,
    actor     text NOT NULL,
    effective text NOT NULL,
    PRIMARY KEY (lineage, revision)
);

-- Live layers; a layer that is taken back is deleted. One live lease for a path.
CREATE TABLE policy_overrides (
    id         text PRIMARY KEY,
    path       text NOT NULL,
    value      text NOT NULL,
    owner      text NOT NULL,
    reason     text NOT NULL,
    expires_at timestamptz NOT NULL,
    created_at timestamptz NOT NULL,
    CONSTRAINT policy_overrides_path_key UNIQUE (path)
);

CREATE TABLE gateways (
    name              text PRIMARY KEY,
    instance          text NOT NULL,
    version           text NOT NULL,
    lineage           text NOT NULL,
    revision          bigint NOT NULL,
    result            text NOT NULL,
    error             text NOT NULL,
    rejected_revision bigint NOT NULL,
    apply_seconds     double precision NOT NULL,
    acked_at          timestamptz,
    last_heard_at     timestamptz NOT NULL,
    state             text NOT NULL,
    prior             text NOT NULL,
    prior_at          timestamptz,
    state_at          timestamptz
);

-- +goose Down
DROP TABLE gateways;
DROP TABLE policy_overrides;
DROP TABLE policy_revisions;
DROP TABLE policy_head;
