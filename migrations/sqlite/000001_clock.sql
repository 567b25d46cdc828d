-- +goose Up
-- The latest time handed out, so that time does not step back when the clock does.
-- Times are microseconds since 1970 UTC in every table.
CREATE TABLE clock (
    id         INTEGER PRIMARY KEY CHECK (id = 1),
    high_water INTEGER NOT NULL
) STRICT;
INSERT INTO clock (id, high_water) VALUES (1, 0);

CREATE TABLE counters (
    name  TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT;
INSERT INTO counters (name, value) VALUES ('incident_number', 0), ('fencing_token', 0);

-- +goose Down
DROP TABLE counters;
DROP TABLE clock;
