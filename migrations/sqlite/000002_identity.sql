-- +goose Up
CREATE TABLE persons (
    id         TEXT PRIMARY KEY,
    handle     TEXT NOT NULL UNIQUE,
    name       TEXT NOT NULL,
    role       TEXT NOT NULL,
    slack_team TEXT NOT NULL DEFAULT '',
    slack_user TEXT NOT NULL DEFAULT '',
    disabled   INTEGER NOT NULL DEFAULT 0 CHECK (disabled IN (0, 1)),
    created_at INTEGER NOT NULL
) STRICT;
-- One Slack user is one person: four-eyes depends on it.
CREATE UNIQUE INDEX persons_slack_key ON persons (slack_team, slack_user) WHERE slack_user <> '';

CREATE TABLE tokens (
    id           TEXT PRIMARY KEY,
    kind         TEXT NOT NULL,
    name         TEXT NOT NULL,
    scopes       TEXT,
    owner_id     TEXT NOT NULL DEFAULT '',
    hash         TEXT NOT NULL,
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER,
    last_used_at INTEGER,
    revoked_at   INTEGER
) STRICT;

CREATE TABLE links (
    hash       TEXT PRIMARY KEY,
    purpose    TEXT NOT NULL,
    person_id  TEXT NOT NULL DEFAULT '',
    slack_team TEXT NOT NULL DEFAULT '',
    slack_user TEXT NOT NULL DEFAULT '',
    expires_at INTEGER NOT NULL,
    used_at    INTEGER
) STRICT;
CREATE INDEX links_expires_at ON links (expires_at);

CREATE TABLE sessions (
    hash       TEXT PRIMARY KEY,
    person_id  TEXT NOT NULL REFERENCES persons (id) ON DELETE CASCADE,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT;
CREATE INDEX sessions_person_id ON sessions (person_id);
CREATE INDEX sessions_expires_at ON sessions (expires_at);

-- +goose Down
DROP TABLE sessions;
DROP TABLE links;
DROP TABLE tokens;
DROP TABLE persons;
