-- The tables of a journal as format 3 has them; part of what was recorded, never to be changed.
CREATE TABLE events (seq INTEGER PRIMARY KEY AUTOINCREMENT, run TEXT NOT NULL, at REAL NOT NULL, body TEXT NOT NULL);
CREATE INDEX events_of_run ON events (run, seq);
CREATE TRIGGER events_stay BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'events are never edited'); END;
CREATE TRIGGER events_last BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'events are never deleted'); END;
CREATE TABLE requests (
    id INTEGER PRIMARY KEY AUTOINCREMENT, run TEXT NOT NULL, at REAL NOT NULL, verb TEXT NOT NULL, task TEXT, text TEXT NOT NULL, shown TEXT NOT NULL DEFAULT '', who TEXT NOT NULL DEFAULT '', place TEXT NOT NULL DEFAULT '', inside TEXT NOT NULL DEFAULT '', pid INTEGER NOT NULL DEFAULT 0, token TEXT NOT NULL DEFAULT '');
CREATE TABLE claim (
    only INTEGER PRIMARY KEY CHECK (only = 1), run TEXT NOT NULL, pid INTEGER NOT NULL, started TEXT NOT NULL, host TEXT NOT NULL,
    token TEXT NOT NULL, since REAL NOT NULL, heartbeat REAL NOT NULL);
CREATE TRIGGER requests_stay BEFORE UPDATE ON requests BEGIN SELECT RAISE(ABORT, 'requests are never edited'); END;
CREATE TRIGGER events_are_readable BEFORE INSERT ON events WHEN
    typeof(NEW.run) <> 'text' OR typeof(NEW.at) NOT IN ('real', 'integer') OR typeof(NEW.body) <> 'text'
    BEGIN SELECT RAISE(ABORT, 'this is no event of unstuck'); END;
CREATE TRIGGER requests_are_readable BEFORE INSERT ON requests WHEN
    typeof(NEW.run) <> 'text' OR typeof(NEW.at) NOT IN ('real', 'integer') OR typeof(NEW.text) <> 'text' OR NEW.who = '' OR NEW.place = ''
    OR NEW.verb NOT IN ('stop', 'retry', 'answer', 'skip', 'reset', 'accept', 'approve', 'rollback', 'undo', 'run')
    OR typeof(NEW.task) NOT IN ('text', 'null') OR typeof(NEW.who) <> 'text' OR typeof(NEW.place) <> 'text'
    OR typeof(NEW.pid) <> 'integer' OR typeof(NEW.token) <> 'text'
    BEGIN SELECT RAISE(ABORT, 'this is no request of unstuck'); END;
PRAGMA user_version = 3;
