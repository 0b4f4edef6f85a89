"""Tunes an operator with MetaSchedule; ``python -m benchmarks.metaschedule_child CASE``.

The tuning has its own process, which leaves the GPU before the programs are timed. The best
program is written to the case's folder, notes on the search to "metaschedule.json".
"""

from __future__ import annotations

import json
import os
import sys

from tvm.ir import save_json

from ansor.targets.cuda.compiler import compiler_variables
from benchmarks.operator_case import Case
from benchmarks.peers_metaschedule import best

SYSTEM = "metaschedule"


def run(case: Case) -> None:
    """Tunes, or takes the result of an earlier run.

    Raises:
        NothingFoundError: no program runs.
    """
    os.environ.update(compiler_variables())  # MetaSchedule's builders see them
    func, notes = best(case)
    case.program(SYSTEM).write_text(save_json(func), encoding="utf-8")
    case.file(f"{SYSTEM}.json").write_text(json.dumps(notes), encoding="utf-8")


if __name__ == "__main__":
    run(Case(**json.loads(sys.argv[1])))
