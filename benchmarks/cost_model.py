"""How well the cost models rank random programs, of tasks they have seen and of others.

``python -m benchmarks.cost_model --ops conv2d,matmul --programs 200 --json FILE``
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import click
import numpy as np
import numpy.typing as npt

from ansor.config import FULL, CostModelConfig
from ansor.cost_model.model import CostModel
from ansor.measure.local_device import LocalDevice
from ansor.report.formatting import align
from ansor.targets.cpu.detect import detect
from ansor.targets.cpu.machine import Hardware
from ansor.targets.cpu.search import CPU_SEARCH
from ansor.targets.host.threads import available_cores
from ansor.targets.target import resolve_target
from benchmarks.environment import environment, write
from benchmarks.measured_programs import Programs, draw, measure, settle
from benchmarks.ranking import best_of_top, pairwise, recall, spearman
from benchmarks.spaces import sketches_of, task_of

_OPS = "conv2d,matmul,depthwise_conv2d,transposed_conv2d,conv1d,batch_matmul,softmax,norm"
_HEADER = (
    "op", "model", "programs", "Spearman", "pairs", "recall@1", "@5", "@10", "best of 1", "5", "10"
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One model on programs of one operator that it has not learned from.

    Attributes:
        model: "draft"; "gbdt, same op" and "trees alone, same op" (without the draft), trained on
            half of the programs and judged on the other half, both ways; "draft, halves", the
            draft judged on the same halves; "gbdt, other ops", trained on the other operators'.
        programs: number of programs in each judgement.
        pairwise: share of pairs in the right order.
        recall_5: share of the 5 fastest that are among the 5 best scores.
        best_of_5: the fastest of the 5 best scores over the fastest of all, in latency.
    """

    op: str
    model: str
    programs: int
    spearman: float
    pairwise: float
    recall_1: float
    recall_5: float
    recall_10: float
    best_of_1: float
    best_of_5: float
    best_of_10: float


class Judge:
    """Trains models on some programs and judges them on others.

    Args:
        hardware: for the draft.
        seed: of the halves and of the training.
    """

    def __init__(self, hardware: Hardware, seed: int) -> None:
        self._hardware, self._seed = hardware, seed

    def model(self, config: CostModelConfig = FULL.cost_model) -> CostModel:
        """A model that has seen nothing."""
        return CostModel(self._hardware, CPU_SEARCH, config, FULL.sketch, self._seed)

    def rows(self, op: str, measured: Mapping[str, Programs]) -> list[Row]:
        """All models on one operator; those that need other operators only if there are any."""
        own, others = measured[op], [m for name, m in measured.items() if name != op]
        alone = replace(FULL.cost_model, use_draft=False)
        rows = [
            judged(op, "draft", own, own.scores(self.model())),
            self._halves(op, "draft, halves", own, replace(FULL.cost_model, use_gbdt=False)),
            self._halves(op, "gbdt, same op", own, FULL.cost_model),
            self._halves(op, "trees alone, same op", own, alone),
        ]
        if others:
            scores = own.scores(self._taught(others, FULL.cost_model))
            rows.append(judged(op, "gbdt, other ops", own, scores))
        return rows

    def _halves(self, op: str, name: str, own: Programs, config: CostModelConfig) -> Row:
        """Mean of both ways to learn from one half and be judged on the other."""
        first = np.random.default_rng(self._seed).permutation(len(own)) % 2 == 0
        rows = []
        for seen in (first, ~first):
            rest = own.take(~seen)
            scores = rest.scores(self._taught([own.take(seen)], config))
            rows.append(judged(op, name, rest, scores))
        return mean(op, name, rows)

    def _taught(self, programs: Sequence[Programs], config: CostModelConfig) -> CostModel:
        model = self.model(config)
        for known in programs:
            known.teach(model)
        model.fit()
        return model


def judged(op: str, name: str, programs: Programs, scores: npt.NDArray[np.float32]) -> Row:
    """The figures of one model."""
    times = programs.latency_s
    return Row(
        op=op,
        model=name,
        programs=len(programs),
        spearman=spearman(scores, times),
        pairwise=pairwise(scores, times),
        recall_1=recall(scores, times, 1),
        recall_5=recall(scores, times, 5),
        recall_10=recall(scores, times, 10),
        best_of_1=best_of_top(scores, times, 1),
        best_of_5=best_of_top(scores, times, 5),
        best_of_10=best_of_top(scores, times, 10),
    )


def mean(op: str, name: str, rows: Sequence[Row]) -> Row:
    """Figure by figure."""
    return _combined(op, name, rows, statistics.fmean)


def median(name: str, rows: Sequence[Row]) -> Row:
    """Figure by figure, over operators."""
    return _combined("median", name, rows, statistics.median)


@click.command()
@click.option("--ops", default=_OPS, show_default=True, help="Separated by commas.")
@click.option("--dtypes", default="float32", show_default=True, help="Separated by commas.")
@click.option("--programs", type=click.IntRange(2), default=200, show_default=True, help="Per op.")
@click.option("--rounds", type=click.IntRange(1), default=3, show_default=True)
@click.option("--threads", type=int, help="All cores by default.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--json", "file", metavar="FILE", help="Where results are written.")
def main(
    ops: str,
    dtypes: str,
    programs: int,
    rounds: int,
    threads: int | None,
    seed: int,
    file: str | None,
) -> None:
    """Measures random legal programs of each operator in rounds, those that decide once more in
    turns, and judges the models."""
    cores = threads or available_cores()
    hardware = detect(resolve_target("native"), cores)
    tasks = {
        op if dtype == "float32" else f"{op} {dtype}": task_of(op, cores, dtype)
        for dtype in dtypes.split(",")
        for op in ops.split(",")
    }
    judge, measured = Judge(hardware, seed), {}
    with LocalDevice(next(iter(tasks.values())).target, cores, FULL.measure) as device:
        for op, task in tasks.items():
            rng = np.random.default_rng(seed)
            drawn = draw(sketches_of(task, hardware, FULL), judge.model(), programs, rng)
            found = measure(task, drawn, device, FULL.evolution.batch, rounds)
            measured[op] = settle(task, found, judge.model(), device, rounds)
            print(f"{op}: {len(measured[op])} programs ran, {measured[op].failed} failed")
    usable = {op: found for op, found in measured.items() if len(found) > 1}
    rows = [row for op in usable for row in judge.rows(op, usable)]
    failed = {op: found.failed for op, found in measured.items()}
    about = environment(cores, seed=seed, programs=programs, failed=failed)
    write(file, {"environment": about, "results": [asdict(row) for row in rows]})
    print(f"\n{table(rows)}")


def table(rows: Sequence[Row]) -> str:
    """For people: every operator, then the median over all of them."""
    shown = list(rows)
    if len({row.op for row in rows}) > 1:
        names = dict.fromkeys(row.model for row in rows)
        shown += [median(name, [row for row in rows if row.model == name]) for name in names]
    return align(_HEADER, [_cells(row) for row in shown], (0, 1))


def _cells(row: Row) -> tuple[str, ...]:
    """One line of the table."""
    shares = (row.recall_1, row.recall_5, row.recall_10)
    ratios = (row.best_of_1, row.best_of_5, row.best_of_10)
    figures = (row.spearman, row.pairwise, *shares, *ratios)
    return (row.op, row.model, str(row.programs), *(f"{figure:.2f}" for figure in figures))


def _combined(
    op: str, name: str, rows: Sequence[Row], combine: Callable[[list[float]], float]
) -> Row:
    """One row out of several."""
    figures = {
        field: combine([float(getattr(row, field)) for row in rows])
        for field in Row.__dataclass_fields__
        if field not in ("op", "model", "programs")
    }
    return Row(op, name, sum(row.programs for row in rows) // len(rows), **figures)


if __name__ == "__main__":
    main()
