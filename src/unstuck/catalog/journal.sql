-- The journal, format by format: one that an older unstuck made is brought up by those behind its own.
-- Format 1
CREATE TABLE IF NOT EXISTS events (seq INTEGER PRIMARY KEY AUTOINCREMENT, run TEXT NOT NULL, at REAL NOT NULL, body TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS events_of_run ON events (run, seq);
CREATE TRIGGER IF NOT EXISTS events_stay BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'events are never edited'); END;
CREATE TRIGGER IF NOT EXISTS events_last BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'events are never deleted'); END;
CREATE TABLE IF NOT EXISTS requests (
    id INTEGER PRIMARY KEY AUTOINCREMENT, run TEXT NOT NULL, at REAL NOT NULL, verb TEXT NOT NULL, task TEXT, text TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS claim (
    only INTEGER PRIMARY KEY CHECK (only = 1), run TEXT NOT NULL, pid INTEGER NOT NULL, started TEXT NOT NULL, host TEXT NOT NULL,
    token TEXT NOT NULL, since REAL NOT NULL, heartbeat REAL NOT NULL);
PRAGMA user_version = 1;
-- Format 2: says of every request whose it is, and holds the tables to what they are for.
ALTER TABLE requests ADD COLUMN shown TEXT NOT NULL DEFAULT '';
ALTER TABLE requests ADD COLUMN who TEXT NOT NULL DEFAULT '';
ALTER TABLE requests ADD COLUMN place TEXT NOT NULL DEFAULT '';
ALTER TABLE requests ADD COLUMN inside TEXT NOT NULL DEFAULT '';
CREATE TRIGGER requests_stay BEFORE UPDATE ON requests BEGIN SELECT RAISE(ABORT, 'requests are never edited'); END;
CREATE TRIGGER events_are_readable BEFORE INSERT ON events WHEN
    typeof(NEW.run) <> 'text' OR typeof(NEW.at) NOT IN ('real', 'integer') OR typeof(NEW.body) <> 'text'
    BEGIN SELECT RAISE(ABORT, 'this is no event of unstuck'); END;
PRAGMA user_version = 2;
-- Format 3: says which process stands by a request, and takes the verbs that older formats did not know.
ALTER TABLE requests ADD COLUMN pid INTEGER NOT NULL DEFAULT 0;
ALTER TABLE requests ADD COLUMN token TEXT NOT NULL DEFAULT '';
DROP TRIGGER IF EXISTS requests_are_readable;
CREATE TRIGGER requests_are_readable BEFORE INSERT ON requests WHEN
    typeof(NEW.run) <> 'text' OR typeof(NEW.at) NOT IN ('real', 'integer') OR typeof(NEW.text) <> 'text' OR NEW.who = '' OR NEW.place = ''
    OR NEW.verb NOT IN ('stop', 'retry', 'answer', 'skip', 'reset', 'accept', 'approve', 'rollback', 'undo', 'run')
    OR typeof(NEW.task) NOT IN ('text', 'null') OR typeof(NEW.who) <> 'text' OR typeof(NEW.place) <> 'text'
    OR typeof(NEW.pid) <> 'integer' OR typeof(NEW.token) <> 'text'
    BEGIN SELECT RAISE(ABORT, 'this is no request of unstuck'); END;
PRAGMA user_version = 3;
