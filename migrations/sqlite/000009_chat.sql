-- +goose Up
CREATE TABLE buttons (
    id         TEXT PRIMARY KEY,
    kind       TEXT NOT NULL,
    subject    TEXT NOT NULL,
    slot       TEXT NOT NULL,
    label      TEXT NOT NULL,
    style      TEXT NOT NULL,
    confirm    TEXT NOT NULL,
    action     TEXT NOT NULL,
    params     TEXT NOT NULL,
    hash       TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    used_at    INTEGER,
    used_by    TEXT NOT NULL,
    retired_at INTEGER
) STRICT;
-- One live button for a slot, so that two servers drawing one card agree.
CREATE UNIQUE INDEX buttons_live_slot ON buttons (subject, slot) WHERE used_at IS NULL AND retired_at IS NULL;
CREATE INDEX buttons_subject ON buttons (subject);

CREATE TABLE clicks (
    id          TEXT PRIMARY KEY,
    button_id   TEXT NOT NULL REFERENCES buttons (id),
    person_id   TEXT NOT NULL,
    person_name TEXT NOT NULL,
    team        TEXT NOT NULL,
    chat_user   TEXT NOT NULL,
    channel     TEXT NOT NULL,
    message_ts  TEXT NOT NULL,
    status      TEXT NOT NULL,
    detail      TEXT NOT NULL,
    received_at INTEGER NOT NULL,
    done_at     INTEGER,
    next_at     INTEGER,
    attempts    INTEGER NOT NULL
) STRICT;
CREATE INDEX clicks_button ON clicks (button_id);
CREATE INDEX clicks_due ON clicks (next_at) WHERE status = 'accepted';

CREATE TABLE message_refs (
    subject    TEXT PRIMARY KEY,
    channel    TEXT NOT NULL,
    ts         TEXT NOT NULL,
    post_key   TEXT NOT NULL,
    updated_at INTEGER
) STRICT;

-- +goose Down
DROP TABLE message_refs;
DROP TABLE clicks;
DROP TABLE buttons;
