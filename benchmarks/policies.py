"""Search policies at equal budgets on one device: how the best latency falls, over several seeds.

``python -m benchmarks.policies --ops OPE.0,C2D.2 --trials 64,128,512 --seeds 5 --json FILE``

The device is a surrogate (`benchmarks.surrogate`) or this machine. Finished searches are kept in a
file (`--state`), so the command may be stopped and repeated until all searches are done.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import click

from ansor.config import FULL
from ansor.measure.local_device import LocalDevice
from ansor.policy.registry import DEFAULT, PUBLISHED, policy_named
from ansor.program.codec import decode
from ansor.report.formatting import align, significant
from ansor.targets.cpu.detect import detect
from ansor.targets.host.threads import available_cores
from ansor.targets.target import resolve_target, target_text
from benchmarks.environment import environment, write
from benchmarks.policy_plot import plot
from benchmarks.policy_search import Job, Search, searched
from benchmarks.policy_state import State
from benchmarks.policy_summary import Overall, Row, overall, rows_of
from benchmarks.spaces import task_of
from benchmarks.surrogate_device import SurrogateDevice
from benchmarks.surrogate_model import FOLDER, file_of, read

SURROGATE, LOCAL = "surrogate", "local"
_WITHOUT_SEED = ("grid",)  # every seed has the same search
_ROUNDS = 5  # turns in which the best programs of real searches are timed again


@click.command()
@click.option("--ops", required=True, help="Separated by commas; as in benchmarks.operators.")
@click.option(
    "--policies",
    default=",".join((DEFAULT, *PUBLISHED)),
    show_default=True,
    help="Separated by commas; ratios are to the first.",
)
@click.option("--trials", default="64,128,512", show_default=True, help="Where searches compare.")
@click.option("--seeds", type=click.IntRange(1), default=5, show_default=True, help="How many.")
@click.option("--device", type=click.Choice([SURROGATE, LOCAL]), default=SURROGATE)
@click.option("--surrogates", type=click.Path(path_type=Path), default=FOLDER, metavar="DIR")
@click.option("--minutes", type=click.FloatRange(0), help="After which no search begins.")
@click.option("--processes", type=click.IntRange(1), help="Of searches on surrogates.")
@click.option("--threads", type=int, help="Of a program; all cores by default.")
@click.option("--state", type=click.Path(path_type=Path), metavar="FILE", help="Read and extended.")
@click.option("--plot", "drawing", type=click.Path(path_type=Path), metavar="FILE", help="SVG.")
@click.option("--json", "file", metavar="FILE", help="Where results are written.")
def main(
    ops: str,
    policies: str,
    trials: str,
    seeds: int,
    device: str,
    surrogates: Path,
    minutes: float | None,
    processes: int | None,
    threads: int | None,
    state: Path | None,
    drawing: Path | None,
    file: str | None,
) -> None:
    """Searches each operator with each policy and seed, and compares how far they come."""
    cores, names = threads or available_cores(), policies.split(",")
    counts = sorted({int(count) for count in trials.split(",")})
    for name in names:
        policy_named(name)
    jobs = jobs_of(ops.split(","), names, seeds)
    done = State(state, {"device": device, "trials": counts, "threads": cores})
    known = [] if device == LOCAL else [_quality(op, surrogates) for op in ops.split(",")]
    left = [job for job in jobs if job not in done.searches]
    deadline_s = None if minutes is None else time.monotonic() + 60 * minutes
    if device == LOCAL:
        _on_this_machine(left, done, counts, cores, deadline_s)
    else:
        count = min(processes or available_cores(), max(len(left), 1))
        for search in _on_surrogates(left, surrogates, max(counts), cores, count, deadline_s):
            done.add(search)
            print(progress(search), flush=True)
    found = [done.searches[job] for job in jobs if job in done.searches]
    about = environment(
        cores,
        device=device,
        trials=counts,
        seeds=seeds,
        policies=names,
        surrogates=known,
        plot=None if drawing is None else drawing.name,
    )
    report(found, counts, done.retimed_us, about, file, drawing)
    print(f"{len(found)} of {len(jobs)} searches are done")


def jobs_of(ops: Sequence[str], policies: Sequence[str], seeds: int) -> list[Job]:
    """All searches, operator by operator and seed by seed; an enumeration has one search."""
    pairs = [(seed, name) for seed in range(seeds) for name in policies]
    kept = [(seed, name) for seed, name in pairs if not seed or name not in _WITHOUT_SEED]
    return [Job(op, name, seed) for op in ops for seed, name in kept]


def report(
    searches: Sequence[Search],
    trials: Sequence[int],
    retimed_us: Mapping[str, Mapping[str, float]],
    about: Mapping[str, Any],
    file: str | None,
    drawing: Path | None,
) -> None:
    """Prints the summary; writes results and curves."""
    if not searches:
        return
    rows = rows_of(searches, trials, retimed_us)
    total = overall(rows, searches)
    document = {
        "environment": dict(about),
        "results": [asdict(row) for row in rows],
        "overall": [asdict(row) for row in total],
        "curves": [curve(search) for search in searches],
    }
    write(file, document)
    if drawing is not None:
        drawing.write_text(plot(document), encoding="utf-8")
    print(f"\n{table(rows)}\n\n{overall_table(total)}")


def curve(search: Search) -> dict[str, Any]:
    """A search as JSON values: the trials that were faster than all before, without programs."""
    steps = [[s.trial, round(s.seconds, 3), float(f"{s.best_us:.6g}")] for s in search.steps]
    trials, seconds = search.trials, round(search.seconds(search.trials), 3)
    return {**asdict(search.job), "trials": trials, "seconds": seconds, "steps": steps}


def _on_surrogates(
    jobs: Sequence[Job],
    folder: Path,
    trials: int,
    threads: int,
    processes: int,
    deadline_s: float | None,
) -> Iterator[Search]:
    """Searches on surrogates, several at a time."""
    if processes == 1:
        for job in jobs:
            if not _is_over(deadline_s):
                yield on_surrogate(job, folder, trials, threads)
        return
    spawned = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=spawned) as pool:
        waiting = [pool.submit(on_surrogate, job, folder, trials, threads) for job in jobs]
        for future in as_completed(waiting):
            if _is_over(deadline_s):
                pool.shutdown(wait=False, cancel_futures=True)
            if not future.cancelled():
                yield future.result()


def on_surrogate(job: Job, folder: Path, trials: int, threads: int) -> Search:
    """One search on the surrogate of its operator; its seconds are those of the processor, with
    the simulated ones of the measurements."""
    device = _surrogate_device(job.op, folder, threads)
    return searched(job, device, device.now, trials, threads, keeps_programs=False)


@cache
def _surrogate_device(op: str, folder: Path, threads: int) -> SurrogateDevice:
    hardware = detect(resolve_target("native"), threads)
    workers = min(FULL.measure.workers, threads)
    return SurrogateDevice([read(file_of(op, folder))], hardware, workers)


def _quality(op: str, folder: Path) -> dict[str, Any]:
    """What a surrogate was fitted to, and how well it predicts."""
    surrogate = read(file_of(op, folder))
    about = {name: surrogate.about[name] for name in ("processor", "commit", "time")}
    return {"op": op, **about, **asdict(surrogate.quality)}


def _on_this_machine(
    jobs: Sequence[Job], done: State, trials: Sequence[int], threads: int, deadline_s: float | None
) -> None:
    """Searches with real measurements; then the best programs of an operator are timed again."""
    target = target_text(resolve_target("native"), threads)
    with LocalDevice(target, threads, FULL.measure) as local:
        local.start()
        for job in jobs:
            if _is_over(deadline_s):
                return
            search = searched(job, local, time.monotonic, max(trials), threads, keeps_programs=True)
            done.add(search)
            print(progress(search), flush=True)
        for op in dict.fromkeys(job.op for job in done.searches):
            if op not in done.retimed_us and not _is_over(deadline_s):
                done.add_times(op, _retimed(op, done, local, trials, threads))


def _retimed(
    op: str, done: State, device: LocalDevice, trials: Sequence[int], threads: int
) -> dict[str, float]:
    """Microseconds of the best programs of all searches of an operator, timed in turns."""
    own = [search for search in done.searches.values() if search.job.op == op]
    steps = [step for search in own for n in trials if (step := search.at(n)) is not None]
    texts = list(dict.fromkeys(step.program for step in steps))
    programs = [decode(text) for text in texts]
    times = device.compare(task_of(op, threads), programs, _ROUNDS)
    return {text: t * 1e6 for text, t in zip(texts, times, strict=True) if t is not None}


def _is_over(deadline_s: float | None) -> bool:
    return deadline_s is not None and time.monotonic() >= deadline_s


def progress(done: Search) -> str:
    """One search in one line."""
    job, trials = done.job, done.trials
    spent = f"{trials} trials, {done.seconds(trials):.1f} s"
    return f"{job.op} {job.policy} seed {job.seed}: {done.best_us(trials):.1f} µs after {spent}"


_HEADER = ("op", "policy", "trials", "median µs", "quartiles µs", "seconds", "ratio", "near after")
_TOTAL = ("policy", "trials", "ratio", "spread", "near", "near after")


def table(rows: Sequence[Row]) -> str:
    """A line per operator, policy and number of trials."""
    cells = [
        (
            *(row.op, row.policy, str(row.trials), text(row.median_us)),
            f"{text(row.lower_us)} to {text(row.upper_us)}",
            *(text(row.seconds), text(row.ratio), text(row.trials_to_near)),
        )
        for row in rows
    ]
    return align(_HEADER, cells, (0, 1))


def overall_table(rows: Sequence[Overall]) -> str:
    """A line per policy and number of trials, over all operators."""
    cells = [
        (
            *(row.policy, str(row.trials), text(row.ratio), text(row.spread)),
            *("-" if row.reached is None else f"{row.reached:.0%}", text(row.trials_to_near)),
        )
        for row in rows
    ]
    return align(_TOTAL, cells, (0,))


def text(value: float | None) -> str:
    """Three digits, "-" for None."""
    return "-" if value is None else significant(value)


if __name__ == "__main__":
    main()
