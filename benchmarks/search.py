"""What each part of the search brings: best-so-far curves with and without it, over seeds.

``python -m benchmarks.search --ops conv2d,matmul --policies full,random --replay --json FILE``
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import asdict, replace

import click

from ansor.config import FULL, TuneConfig
from ansor.database.database import Database, TaskEntry
from ansor.database.journal import Journal
from ansor.database.record import Record
from ansor.measure.local_device import LocalDevice
from ansor.program.codec import encode
from ansor.program.program import Program
from ansor.report.formatting import align, significant
from ansor.run.search.budget import Budget
from ansor.run.search.tuner import Tuner
from ansor.targets.cpu.detect import detect
from ansor.targets.cpu.machine import Hardware
from ansor.targets.cpu.search import CPU_SEARCH
from ansor.targets.host.threads import available_cores
from ansor.targets.target import resolve_target
from ansor.task import Task
from benchmarks.ablations import POLICIES, chosen
from benchmarks.curves import Curve, Summary, curve, summarise
from benchmarks.environment import environment, write
from benchmarks.replay import ReplayDevice
from benchmarks.spaces import task_of

_HEADER = (
    "op",
    "policy",
    "final µs",
    "re-timed",
    "vs best",
    "trials to 5 %",
    "seconds to 5 %",
    "reached",
    "search s",
)
_ROUNDS = 5  # turns in which the best programs are timed again


class Trials:
    """Searches one operator after another, all with the same hardware, device and budget.

    Attributes:
        best: the best program of every search, under operator, policy and seed.
    """

    def __init__(
        self, hardware: Hardware, device: ReplayDevice, trials: int, config: TuneConfig = FULL
    ) -> None:
        self._hardware, self._device = hardware, device
        self._trials, self._config = trials, config
        self.best: dict[tuple[str, str, int], Program] = {}
        self._before: tuple[list[TaskEntry], list[Record]] = [], []

    def begin_after(self, task: Task) -> None:
        """Searches another operator once; all later searches find its records."""
        with Database() as database:
            tuner = Tuner(
                [task],
                self._hardware,
                CPU_SEARCH,
                self._device,
                Journal(database),
                self._config,
                executor=self._device.executor,
            )
            tuner.run(Budget(self._trials))
            self._before = database.tasks(), database.all_records(task.target)

    def search(self, op: str, task: Task, policy: str, seed: int) -> Curve:
        """One search, from nothing but what `begin_after` found."""
        device = self._device
        device.trials.clear()
        began_s = device.now()
        config = POLICIES[policy](self._config)
        with Database() as database:
            database.add_records(*self._before)
            tuner = Tuner(
                [task],
                self._hardware,
                CPU_SEARCH,
                device,
                Journal(database, device.now),
                config,
                seed,
                executor=device.executor,
            )
            finish = tuner.run(Budget(self._trials))
        if finish.reason == "interrupted":
            raise KeyboardInterrupt
        done = [trial for trial in device.trials if trial.latency_s is not None]
        if done:
            best = min(done, key=lambda trial: trial.latency_s or math.inf)
            self.best[op, policy, seed] = best.program
        return curve(op, policy, seed, device.trials, began_s)

    def retimed(self, task: Task, curves: Sequence[Curve]) -> list[Curve]:
        """The searches of one operator, their best programs timed again, in turns."""
        programs = {c: self.best.get((c.op, c.policy, c.seed)) for c in curves}
        distinct = {encode(p): p for p in programs.values() if p is not None}
        times = self._device.compare(task, list(distinct.values()), _ROUNDS)
        known = dict(zip(distinct, times, strict=True))
        found = {c: None if p is None else known[encode(p)] for c, p in programs.items()}
        return [replace(c, retimed_us=None if t is None else t * 1e6) for c, t in found.items()]


@click.command()
@click.option(
    "--ops", default="conv2d", show_default=True, help="Separated by commas; as in operators."
)
@click.option(
    "--policies",
    default="full,no-draft,no-gbdt,no-crossover,random",
    show_default=True,
    help=f"Separated by commas, of {', '.join(POLICIES)}.",
)
@click.option("--trials", type=click.IntRange(1), default=128, show_default=True)
@click.option("--seeds", type=click.IntRange(1), default=5, show_default=True, help="How many.")
@click.option("--threads", type=int, help="All cores by default.")
@click.option("--after", help="Another operator, whose records every search may use.")
@click.option("--replay", is_flag=True, help="Measure no program twice, whoever asks for it.")
@click.option("--json", "file", metavar="FILE", help="Where results are written.")
def main(
    ops: str,
    policies: str,
    trials: int,
    seeds: int,
    threads: int | None,
    after: str | None,
    replay: bool,
    file: str | None,
) -> None:
    """Searches each operator with each policy and seed, and tells how fast and how far they get."""
    cores, names, target = threads or available_cores(), chosen(policies), resolve_target("native")
    tasks = {op: task_of(op, cores) for op in ops.split(",")}
    seen = list(range(seeds))
    about = environment(cores, trials=trials, seeds=seen, replay=replay, after=after)
    curves: list[Curve] = []
    with LocalDevice(next(iter(tasks.values())).target, cores, FULL.measure) as local:
        local.measure(next(iter(tasks.values())), [Program()] * cores, None)  # starts the workers
        device = ReplayDevice(local, replay, executor=local.share)
        runs = Trials(detect(target, cores), device, trials)
        if after is not None:
            runs.begin_after(task_of(after, cores))
        for op, task in tasks.items():
            own: list[Curve] = []
            for seed in range(seeds):  # policies take turns: a change of the machine hits all
                for policy in names:
                    own.append(runs.search(op, task, policy, seed))
                    print(progress(own[-1]), flush=True)
            curves += runs.retimed(task, own)
            save(file, {**about, "built": device.built}, curves)
    print(f"\n{table(summarise(curves))}")


def save(file: str | None, about: dict[str, object], curves: Sequence[Curve]) -> None:
    """Writes all that is known so far."""
    rows = [asdict(row) for row in summarise(curves)]
    document = {"environment": about, "results": rows, "curves": [asdict(c) for c in curves]}
    write(file, document)


def progress(done: Curve) -> str:
    """One search in one line."""
    spent = done.seconds[-1] if done.seconds else 0.0
    return f"{done.op} {done.policy} seed {done.seed}: {done.final_us:.1f} µs after {spent:.1f} s"


def table(rows: Sequence[Summary]) -> str:
    """For people: every operator, then the geometric mean over all of them."""
    cells: list[tuple[str, ...]] = [
        (
            row.op,
            row.policy,
            text(row.final_us),
            text(row.retimed_us),
            text(row.ratio),
            "-" if row.trials_to_near is None else f"{row.trials_to_near:.0f}",
            text(row.seconds_to_near),
            f"{row.reached}/{row.searches}",
            text(row.search_s),
        )
        for row in rows
    ]
    if len({row.op for row in rows}) > 1:
        cells += [overall(policy, rows) for policy in dict.fromkeys(row.policy for row in rows)]
    return align(_HEADER, cells, (0, 1))


def overall(policy: str, rows: Sequence[Summary]) -> tuple[str, ...]:
    """The line of one policy over all operators."""
    own = [row for row in rows if row.policy == policy]
    ratios = [row.ratio for row in own if row.ratio is not None]
    mean = math.exp(statistics.fmean(map(math.log, ratios))) if len(ratios) == len(own) else None
    reached = f"{sum(row.reached for row in own)}/{sum(row.searches for row in own)}"
    return ("all", policy, "-", "-", text(mean), "-", "-", reached, "-")


def text(value: float | None) -> str:
    """Three digits, "-" for None."""
    return "-" if value is None else significant(value)


if __name__ == "__main__":
    main()
