-- +goose Up
CREATE TABLE audit_entries (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at         timestamptz NOT NULL,
    actor_id   text NOT NULL,
    actor_name text NOT NULL,
    channel    text NOT NULL,
    verb       text NOT NULL,
    subject    text NOT NULL,
    decision   text NOT NULL,
    reason     text NOT NULL,
    details    text
);
CREATE INDEX audit_entries_subject ON audit_entries (subject, id);

-- Entries that wait for their link; written with the entry, removed by the chainer.
CREATE TABLE audit_pending (
    entry_id bigint PRIMARY KEY REFERENCES audit_entries (id)
);

CREATE TABLE audit_chain (
    seq       bigint PRIMARY KEY,
    entry_id  bigint NOT NULL REFERENCES audit_entries (id),
    prev_hash text NOT NULL,
    hash      text NOT NULL,
    CONSTRAINT audit_chain_entry_key UNIQUE (entry_id)
);

-- The chainer holds this row while it links, so that the chain cannot fork.
CREATE TABLE audit_head (
    id   integer PRIMARY KEY CHECK (id = 1),
    seq  bigint NOT NULL,
    hash text NOT NULL
);
INSERT INTO audit_head (id, seq, hash) VALUES (1, 0, repeat('0', 64));

-- +goose StatementBegin
CREATE FUNCTION audit_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'audit_append_only: % of % is refused', TG_OP, TG_TABLE_NAME;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER audit_entries_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_entries
    FOR EACH STATEMENT EXECUTE FUNCTION audit_append_only();
CREATE TRIGGER audit_chain_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_chain
    FOR EACH STATEMENT EXECUTE FUNCTION audit_append_only();

-- +goose Down
DROP TABLE audit_head;
DROP TABLE audit_chain;
DROP TABLE audit_pending;
DROP TABLE audit_entries;
DROP FUNCTION audit_append_only();
