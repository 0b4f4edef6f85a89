"""Records of measurements.

In: measurements. Out: the best known programs for a task on a target. The records are in one SQLite
file. Every `add` is a transaction, so that a kill loses no record, and several processes may share
the file. Module `record` has the content of a record, `schema` opens files, and `database` has the
queries. Module `jsonl` converts from and to text, and `log` writes text during a search.
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
