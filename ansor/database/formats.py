"""The tables, and the migration of files of earlier formats.

Each format consists of the statements that convert the format before. A new file runs all
statements, and an earlier file the remaining ones, so that both have the same tables.
"""

from __future__ import annotations

import sqlite3

_FORMAT_1 = """
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS tasks (
    key TEXT PRIMARY KEY, name TEXT NOT NULL, definition TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS records (
    id INTEGER PRIMARY KEY,
    task_key TEXT NOT NULL REFERENCES tasks (key),
    target TEXT NOT NULL,
    sketch TEXT NOT NULL,     -- name, for people
    program TEXT NOT NULL,    -- ansor.program.codec
    latency_s REAL,           -- median, NULL when it failed
    latencies_s TEXT NOT NULL,  -- JSON list
    build_s REAL NOT NULL,
    run_s REAL NOT NULL,
    error TEXT,               -- ErrorKind
    message TEXT NOT NULL,
    host TEXT NOT NULL,
    versions TEXT NOT NULL,   -- JSON object
    seed INTEGER,
    time_s REAL NOT NULL      -- since 1970
);
CREATE TABLE IF NOT EXISTS checks (  -- programs whose results were found right
    task_key TEXT NOT NULL REFERENCES tasks (key),
    target TEXT NOT NULL,
    program TEXT NOT NULL,
    host TEXT NOT NULL,
    versions TEXT NOT NULL,
    difference REAL NOT NULL, -- largest error relative to the reference's largest value
    PRIMARY KEY (task_key, target, program, host, versions)
);
CREATE TABLE IF NOT EXISTS elections (  -- what a function ended with after a comparison
    function TEXT NOT NULL,   -- key of its first variant
    target TEXT NOT NULL,
    host TEXT NOT NULL,
    task_key TEXT NOT NULL REFERENCES tasks (key),
    program TEXT NOT NULL,
    time_s REAL NOT NULL,     -- since 1970
    PRIMARY KEY (function, target, host)
);
CREATE INDEX IF NOT EXISTS by_latency ON records (target, task_key, latency_s);
CREATE INDEX IF NOT EXISTS by_time ON records (target, task_key, time_s);
"""

_FORMAT_2 = """
CREATE TABLE runs (           -- searches, so that an interrupted one can be resumed
    id INTEGER PRIMARY KEY,
    identity TEXT NOT NULL,   -- hash of the arguments that decide the search
    settings TEXT NOT NULL,   -- JSON object, for people
    horizon INTEGER NOT NULL, -- id of the newest record when it began, 0 if there was none
    began_s REAL NOT NULL,    -- since 1970
    spent_s REAL NOT NULL,    -- seconds of work up to its last measurement
    finished INTEGER NOT NULL, -- 1 after its budget was spent and its result was made
    owner TEXT                -- process that works on it
);
CREATE TABLE readings (       -- of the clock, by an unfinished run
    run INTEGER NOT NULL REFERENCES runs (id),
    number INTEGER NOT NULL,  -- from 0
    time_s REAL NOT NULL,     -- of the run
    PRIMARY KEY (run, number)
) WITHOUT ROWID;
ALTER TABLE records ADD COLUMN run INTEGER REFERENCES runs (id);
CREATE INDEX by_identity ON runs (identity);
CREATE INDEX by_run ON records (run) WHERE run IS NOT NULL;
"""

# See `checksum`; NULL in rows of earlier formats.
_FORMAT_3 = """
ALTER TABLE tasks ADD COLUMN checksum TEXT;
ALTER TABLE records ADD COLUMN checksum TEXT;
ALTER TABLE checks ADD COLUMN checksum TEXT;
ALTER TABLE elections ADD COLUMN checksum TEXT;
"""

_FORMAT_4 = """
ALTER TABLE records ADD COLUMN
    disturbed INTEGER NOT NULL DEFAULT 0; -- 1 where the machine was slow or busy
"""

FORMATS = (_FORMAT_1, _FORMAT_2, _FORMAT_3, _FORMAT_4)
FORMAT_VERSION = len(FORMATS)  # a reader refuses a higher one


def migrate(connection: sqlite3.Connection) -> None:
    """Gives a file the tables of this format, inside a transaction of the caller.

    A file of format 1 may lack tables, because some were added without a new format.
    """
    found = format_of(connection)
    if found == FORMAT_VERSION:
        return
    for statements in FORMATS[0 if found <= 1 else found :]:
        for statement in statements.split(";"):
            connection.execute(statement)
    rows = [("package", "ansor"), ("format_version", str(FORMAT_VERSION))]
    connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", rows)


def format_of(connection: sqlite3.Connection) -> int:
    """The format of a file; 0 for a file without tables."""
    known = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone()
    if known is None:
        return 0
    row = connection.execute("SELECT value FROM meta WHERE name = 'format_version'").fetchone()
    return 0 if row is None else int(row[0])
