-- +goose Up
CREATE EXTENSION IF NOT EXISTS btree_gist;

-- The one clock of every server on this database. Tests replace it.
-- +goose StatementBegin
CREATE FUNCTION holdfast_now() RETURNS timestamptz
    LANGUAGE sql VOLATILE AS $$ SELECT clock_timestamp() $$;
-- +goose StatementEnd

-- The latest time handed out, so that time does not step back when the clock does.
CREATE TABLE clock (
    id         integer PRIMARY KEY CHECK (id = 1),
    high_water timestamptz NOT NULL
);
INSERT INTO clock (id, high_water) VALUES (1, '1970-01-01T00:00:00Z');

CREATE TABLE counters (
    name  text PRIMARY KEY,
    value bigint NOT NULL
);
INSERT INTO counters (name, value) VALUES ('incident_number', 0), ('fencing_token', 0);

-- +goose Down
DROP TABLE counters;
DROP TABLE clock;
DROP FUNCTION holdfast_now();
-- btree_gist stays: it may serve others in the same database.
