-- +goose Up
CREATE TABLE persons (
    id         text PRIMARY KEY,
    handle     text NOT NULL,
    name       text NOT NULL,
    role       text NOT NULL,
    slack_team text NOT NULL DEFAULT '',
    slack_user text NOT NULL DEFAULT '',
    disabled   boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL,
    CONSTRAINT persons_handle_key UNIQUE (handle)
);
-- One Slack user is one person: four-eyes depends on it.
CREATE UNIQUE INDEX persons_slack_key ON persons (slack_team, slack_user) WHERE slack_user <> '';

CREATE TABLE tokens (
    id           text PRIMARY KEY,
    kind         text NOT NULL,
    name         text NOT NULL,
    scopes       text,
    owner_id     text NOT NULL DEFAULT '',
    hash         text NOT NULL,
    created_at   timestamptz NOT NULL,
    expires_at   timestamptz,
    last_used_at timestamptz,
    revoked_at   timestamptz
);

CREATE TABLE links (
    hash       text PRIMARY KEY,
    purpose    text NOT NULL,
    person_id  text NOT NULL DEFAULT '',
    slack_team text NOT NULL DEFAULT '',
    slack_user text NOT NULL DEFAULT '',
    expires_at timestamptz NOT NULL,
    used_at    timestamptz
);
CREATE INDEX links_expires_at ON links (expires_at);

CREATE TABLE sessions (
    hash       text PRIMARY KEY,
    person_id  text NOT NULL REFERENCES persons (id) ON DELETE CASCADE,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
);
CREATE INDEX sessions_person_id ON sessions (person_id);
CREATE INDEX sessions_expires_at ON sessions (expires_at);

-- +goose Down
DROP TABLE sessions;
DROP TABLE links;
DROP TABLE tokens;
DROP TABLE persons;
