-- The store of a fleet: the journal, the workers, their jobs, and what holds them back.

CREATE SCHEMA IF NOT EXISTS unstuck;
CREATE TABLE IF NOT EXISTS unstuck.format (version integer NOT NULL);

CREATE TABLE IF NOT EXISTS unstuck.events (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, key uuid NOT NULL UNIQUE,
    project text NOT NULL, run text NOT NULL, at double precision NOT NULL, body text NOT NULL);
CREATE INDEX IF NOT EXISTS events_of_run ON unstuck.events (project, run, seq);
CREATE OR REPLACE FUNCTION unstuck.stays() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION '% are never edited or deleted', TG_TABLE_NAME; END $$;
CREATE OR REPLACE TRIGGER events_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON unstuck.events
    FOR EACH STATEMENT EXECUTE FUNCTION unstuck.stays();

CREATE TABLE IF NOT EXISTS unstuck.requests (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, project text NOT NULL, run text NOT NULL, at double precision NOT NULL,
    verb text NOT NULL CHECK (verb IN ('stop', 'retry', 'answer', 'skip', 'reset', 'accept', 'approve', 'rollback', 'undo', 'run')),
    task text, text text NOT NULL, shown text NOT NULL, who text NOT NULL CHECK (who <> ''),
    place text NOT NULL CHECK (place <> ''), inside text NOT NULL);
CREATE OR REPLACE TRIGGER requests_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON unstuck.requests
    FOR EACH STATEMENT EXECUTE FUNCTION unstuck.stays();

CREATE TABLE IF NOT EXISTS unstuck.claims (
    project text NOT NULL, run text NOT NULL, pid integer NOT NULL, started text NOT NULL, host text NOT NULL,
    checkout text NOT NULL, token text NOT NULL, since timestamptz NOT NULL, heartbeat timestamptz NOT NULL,
    PRIMARY KEY (project, run));

CREATE TABLE IF NOT EXISTS unstuck.runs (
    project text NOT NULL, run text NOT NULL, sheet text NOT NULL, PRIMARY KEY (project, run));

CREATE TABLE IF NOT EXISTS unstuck.workers (
    id text PRIMARY KEY, lock bigint NOT NULL, project text NOT NULL, host text NOT NULL, pid integer NOT NULL,
    agents text[] NOT NULL, labels text[] NOT NULL, slots integer NOT NULL, lease double precision NOT NULL,
    state text NOT NULL, said text NOT NULL DEFAULT '', since timestamptz NOT NULL, beat timestamptz NOT NULL);

CREATE TABLE IF NOT EXISTS unstuck.jobs (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, key text NOT NULL UNIQUE, project text NOT NULL, run text NOT NULL,
    task text NOT NULL, kind text NOT NULL, agent text, labels text[] NOT NULL, priority integer NOT NULL,
    prefers text, must text, body text NOT NULL, state text NOT NULL DEFAULT 'queued', worker text,
    stop boolean NOT NULL DEFAULT false, listens boolean NOT NULL DEFAULT false, hints text[] NOT NULL DEFAULT '{}',
    said text NOT NULL DEFAULT '', result text,
    made timestamptz NOT NULL DEFAULT clock_timestamp(), begun timestamptz, ended timestamptz);
CREATE INDEX IF NOT EXISTS jobs_open ON unstuck.jobs (state, project) WHERE state IN ('queued', 'running');
CREATE INDEX IF NOT EXISTS jobs_of_run ON unstuck.jobs (project, run);

CREATE TABLE IF NOT EXISTS unstuck.holds (agent text PRIMARY KEY, until timestamptz NOT NULL, why text NOT NULL);
CREATE TABLE IF NOT EXISTS unstuck.limits (name text PRIMARY KEY, most integer NOT NULL, members text[] NOT NULL);
