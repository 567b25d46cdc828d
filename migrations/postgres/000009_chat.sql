-- +goose Up
CREATE TABLE buttons (
    id         text PRIMARY KEY,
    kind       text NOT NULL,
    subject    text NOT NULL,
    slot       text NOT NULL,
    label      text NOT NULL,
    style      text NOT NULL,
    confirm    text NOT NULL,
    action     text NOT NULL,
    params     text NOT NULL,
    hash       text NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz,
    used_at    timestamptz,
    used_by    text NOT NULL,
    retired_at timestamptz
);
-- One live button for a slot, so that two servers drawing one card agree.
CREATE UNIQUE INDEX buttons_live_slot ON buttons (subject, slot) WHERE used_at IS NULL AND retired_at IS NULL;
CREATE INDEX buttons_subject ON buttons (subject);

CREATE TABLE clicks (
    id          text PRIMARY KEY,
    button_id   text NOT NULL REFERENCES buttons (id),
    person_id   text NOT NULL,
    person_name text NOT NULL,
    team        text NOT NULL,
    chat_user   text NOT NULL,
    channel     text NOT NULL,
    message_ts  text NOT NULL,
    status      text NOT NULL,
    detail      text NOT NULL,
    received_at timestamptz NOT NULL,
    done_at     timestamptz,
    next_at     timestamptz,
    attempts    integer NOT NULL
);
CREATE INDEX clicks_button ON clicks (button_id);
CREATE INDEX clicks_due ON clicks (next_at) WHERE status = 'accepted';

CREATE TABLE message_refs (
    subject    text PRIMARY KEY,
    channel    text NOT NULL,
    ts         text NOT NULL,
    post_key   text NOT NULL,
    updated_at timestamptz
);

-- +goose Down
DROP TABLE message_refs;
DROP TABLE clicks;
DROP TABLE buttons;
