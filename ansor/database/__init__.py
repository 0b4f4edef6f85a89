"""Records: in go measurements, out come the best programs known for a task on a target.

One SQLite file; every `add` is a transaction, so a kill at any moment loses nothing that was
recorded, and several processes may share the file. Read `record` for what is kept, `schema` for the
tables, `database` for the queries, `jsonl` for text in and out, `log` for text that a search writes
while it runs.
"""

from ansor.database.database import Database
from ansor.database.jsonl import ImportCount, export_jsonl, import_jsonl
from ansor.database.log import RecordLog, opened_records
from ansor.database.merge import MergeCount, merge
from ansor.database.prune import PruneCount, PruneRequest, prune
from ansor.database.record import Origin, Record
from ansor.database.statistics import Statistics, statistics

__all__ = [
    "Database",
    "ImportCount",
    "MergeCount",
    "Origin",
    "PruneCount",
    "PruneRequest",
    "Record",
    "RecordLog",
    "Statistics",
    "export_jsonl",
    "import_jsonl",
    "merge",
    "opened_records",
    "prune",
    "statistics",
]
