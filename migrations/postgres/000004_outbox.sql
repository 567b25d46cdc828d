-- +goose Up
CREATE TABLE outbox (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    topic        text NOT NULL,
    ordering_key text NOT NULL,
    kind         text NOT NULL,
    subject      text NOT NULL,
    payload      text NOT NULL,
    coalesce_ok  boolean NOT NULL,
    attempts     integer NOT NULL DEFAULT 0,
    last_error   text NOT NULL DEFAULT '',
    created_at   timestamptz NOT NULL,
    not_before   timestamptz,
    leased_until timestamptz,
    buried_at    timestamptz
);
-- Finds the head of a key, and whether an older message is still in the way.
CREATE INDEX outbox_waiting ON outbox (topic, ordering_key, id) WHERE buried_at IS NULL;
CREATE INDEX outbox_by_id ON outbox (topic, id) WHERE buried_at IS NULL;

-- +goose Down
DROP TABLE outbox;
