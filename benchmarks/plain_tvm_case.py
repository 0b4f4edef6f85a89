"""What `benchmarks.plain_tvm` compares, and its end in the process of a system.

``python -m benchmarks.plain_tvm_case CASE``, a `PlainCase` as JSON. Nothing of the process of plain
TVM changes how TVM compiles or runs: it imports of this package only how turns are timed.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tvm
from tvm import relax
from tvm.s_tir import meta_schedule

from ansor.compare.turns import LATENCY, Answer, answer_turns

OUTPUT = "first_outputs"
SHOWN = 16  # first elements of the output, which are compared
_WARM_UP_RUNS = 3


@dataclass(frozen=True)
class PlainCase:
    """A network in one system.

    Attributes:
        path: of a folder that `TunedModel.export_metaschedule` wrote, or of a saved network.
        shape: of its input, in float32.
        threads: that it runs on.
        seconds: of timed runs, each turn.
    """

    path: str
    shape: tuple[int, ...]
    threads: int
    seconds: float

    def arguments(self) -> list[str]:
        """Of the interpreter that runs the system."""
        return ["-m", "benchmarks.plain_tvm_case", json.dumps(asdict(self))]


def _loaded(case: PlainCase) -> tuple[Answer, Callable[[], Answer]]:
    x = np.random.default_rng(0).standard_normal(tuple(case.shape), dtype=np.float32)
    call = _in_plain_tvm(case, x) if Path(case.path).is_dir() else _in_ansor(case, x)
    first = [float(value) for value in call().reshape(-1)[:SHOWN]]
    return {OUTPUT: first}, lambda: {LATENCY: _median_s(call, case.seconds)}


def _median_s(call: Callable[[], Any], seconds: float) -> float:
    """Median seconds of one call; `ansor.compare.child` has the same, and imports the package."""
    for _ in range(_WARM_UP_RUNS):
        call()
    times: list[float] = []
    end = time.perf_counter() + seconds
    while not times or time.perf_counter() < end:
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def _in_ansor(case: PlainCase, x: Any) -> Callable[[], Any]:
    from ansor.run.tuned.saved import load  # the process of plain TVM must not import it

    network = load(case.path, case.threads)
    return lambda: network(x)


def _in_plain_tvm(case: PlainCase, x: Any) -> Callable[[], Any]:
    """The network by TVM's passes alone; threads are those of its pool."""
    folder = Path(case.path)
    database = meta_schedule.database.JSONDatabase(work_dir=str(folder))
    target = database.get_all_tuning_records()[0].target
    mod = tvm.ir.load_json((folder / "network.json").read_text(encoding="utf-8"))
    with target, database:
        mod = relax.transform.MetaScheduleApplyDatabase()(mod)
        mod = relax.transform.SplitLayoutRewritePreproc()(mod)
        mod = relax.transform.FoldConstant()(mod)
        machine = relax.VirtualMachine(tvm.compile(mod, target), tvm.cpu())
    (entry,) = (v.name_hint for v, f in mod.functions.items() if isinstance(f, relax.Function))
    function, given = machine[entry], tvm.runtime.tensor(x)
    return lambda: function(given).numpy()


if __name__ == "__main__":
    case = PlainCase(**json.loads(sys.argv[1]))
    answer_turns(lambda: _loaded(case))
