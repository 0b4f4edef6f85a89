"""Programs per second on clusters: local ones of 1, 2 and 4 nodes, and simulated larger ones.

``python -m benchmarks.cluster --json FILE``. The nodes of the local clusters wait instead of
measuring, because they share this machine's cores. They show what Ray and the driver cost. The
simulation takes the seconds of a round from the records of a database, or else from the programs
per second of `docs/results/throughput.json`.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from ansor.config import FULL
from ansor.database.database import Database
from ansor.measure.fake import FakeDevice
from ansor.report.formatting import align
from benchmarks.cluster_search import (
    CONFIG,
    latency_of,
    products,
    searched,
    tuner_of,
    waiting_cluster,
)
from benchmarks.cluster_simulation import Load, simulate
from benchmarks.environment import environment, write
from benchmarks.ray_cluster import local_cluster

_LOCAL, _SIMULATED = (1, 2, 4), (16, 64, 256)
_FUNCTIONS, _TRIALS = 8, 48  # of the local runs: functions, and programs of each
_PROGRAM_S = 0.1  # seconds that a node waits for each program
_NETWORKS = (32, 256)  # functions of the simulated runs: one network, and several together
_SIMULATED_S = 1200.0
_THROUGHPUT = Path(__file__).parent.parent / "docs" / "results" / "throughput.json"


@dataclass(frozen=True)
class Row:
    """Programs per second on one cluster.

    Attributes:
        part: "waiting nodes" or "simulated".
        nodes: of the cluster.
        functions: that are searched at the same time.
        programs_per_s: measured programs.
        busy: share of the time in which nodes measure, or wait instead.
        limit: what bounds the programs per second of a simulation; "" elsewhere.
    """

    part: str
    nodes: int
    functions: int
    programs_per_s: float
    busy: float
    limit: str = ""


def local_rows(counts: Sequence[int], trials: int, program_s: float) -> Iterator[Row]:
    """Searches on one local cluster that grows."""
    tasks = products(_FUNCTIONS)
    with local_cluster(counts[0]) as cluster:
        present = counts[0]
        for count in counts:
            while present < count:
                cluster.add_node(num_cpus=1)
                present += 1
            messages: list[str] = []
            with waiting_cluster(cluster.address, program_s, messages.append) as device:
                found = searched(tasks, device, trials)
            busy = found.records * program_s / found.seconds / count
            speed = found.records / found.seconds
            yield Row("waiting nodes", count, len(tasks), speed, busy)


def round_seconds(file: Path) -> list[float]:
    """Seconds of one round on a node, from the programs per second of the last benchmark."""
    last = json.loads(file.read_text(encoding="utf-8"))["runs"][-1]["results"]
    speeds = {row["part"]: row["programs_per_s"] for row in last}
    return [FULL.evolution.batch / speeds["measuring"]]


def recorded_rounds(database: Database, target: str, batch: int, workers: int) -> list[float]:
    """Seconds of rounds of `batch` records: all workers build, then one program runs at a time."""
    measured = [record.measurement for record in database.all_records(target)]
    parts = [measured[i : i + batch] for i in range(0, len(measured), batch)]
    return [sum(m.build_s / workers + m.run_s for m in part) for part in parts]


def proposal_seconds() -> float:
    """Seconds of one core in which this machine proposes a batch of a full search."""
    taken_s = []
    with Database() as database:
        for search in tuner_of(products(4), FakeDevice(latency_of), database, FULL).searches:
            began_s = time.process_time()
            search.policy.propose(FULL.evolution.batch)
            taken_s.append(time.process_time() - began_s)
    return statistics.median(taken_s)


def simulated_rows(counts: Sequence[int], rounds: Sequence[float], propose_s: float) -> list[Row]:
    """Simulations of one network and of several."""
    rows = []
    for functions in _NETWORKS:
        load = Load(functions, FULL.evolution.batch, propose_s, rounds)
        for nodes in counts:
            found = simulate(nodes, load, _SIMULATED_S)
            rows.append(
                Row(
                    "simulated",
                    nodes,
                    functions,
                    found.programs_per_s,
                    found.busy,
                    load.limit(nodes),
                )
            )
    return rows


def table(rows: Sequence[Row]) -> str:
    """The rows for people."""
    cells = [
        (
            row.part,
            str(row.nodes),
            str(row.functions),
            f"{row.programs_per_s:.1f}",
            f"{row.busy:.0%}",
            row.limit,
        )
        for row in rows
    ]
    header = ("cluster", "nodes", "functions", "programs/s", "busy", "limit")
    return align(header, cells, (0, 5))


@click.command()
@click.option("--database", metavar="FILE", help="Records whose times the simulation takes.")
@click.option("--target", help="Of these records; by default the first one.")
@click.option("--simulation-only", is_flag=True, help="Leaves the local clusters out.")
@click.option("--json", "file", metavar="FILE", help="For the rows.")
def main(database: str | None, target: str | None, simulation_only: bool, file: str | None) -> None:
    """Programs per second on clusters of several sizes."""
    propose_s = proposal_seconds()
    rounds = round_seconds(_THROUGHPUT)
    source = _THROUGHPUT.name
    if database is not None:
        with Database(database) as records:
            name = target or records.targets()[0]
            batch, workers = FULL.evolution.batch, FULL.measure.workers
            rounds, source = recorded_rounds(records, name, batch, workers), database
    assumed = (
        f"local nodes wait {_PROGRAM_S} s for each program and measure nothing; "
        f"the simulation assumes {propose_s:.2f} s of the driver and "
        f"{statistics.mean(rounds):.2f} s of a node for a round of {FULL.evolution.batch} programs "
        f"({source}), equal nodes, and no time for messages"
    )
    about = environment(assumptions=assumed, config=asdict(CONFIG.evolution))
    rows = [] if simulation_only else list(local_rows(_LOCAL, _TRIALS, _PROGRAM_S))
    rows += simulated_rows(_SIMULATED, rounds, propose_s)
    click.echo(f"{table(rows)}\n\n{assumed}")
    write(file, {"environment": about, "results": [asdict(row) for row in rows]})


if __name__ == "__main__":
    main()
