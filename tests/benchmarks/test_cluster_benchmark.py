"""The benchmark of clusters: its simulation, and the searches of its local clusters."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from fake_world import make_task

from ansor.database.database import Database
from ansor.measure.fake import FakeDevice
from ansor.measure.result import Measurement
from ansor.program.program import Program
from ansor.run.search.allocation import LIMITS_MET
from benchmarks import cluster
from benchmarks.cluster_search import latency_of, products, searched
from benchmarks.cluster_simulation import Load, simulate


@pytest.mark.parametrize(
    ("nodes", "functions", "propose_s", "busy_nodes", "limit"),
    [(8, 100, 0.0, 8, "nodes"), (8, 3, 0.0, 3, "functions"), (64, 100, 0.4, 5, "driver")],
)
def test_the_slowest_part_bounds_the_simulation(
    nodes: int, functions: int, propose_s: float, busy_nodes: int, limit: str
) -> None:
    load = Load(functions, batch=16, propose_s=propose_s, round_s=[2.0])
    assert load.limit(nodes) == limit
    found = simulate(nodes, load, 800)
    assert found.programs_per_s == pytest.approx(busy_nodes * 16 / 2.0, rel=0.05)
    assert found.busy == pytest.approx(busy_nodes / nodes, rel=0.05)


def test_rounds_of_a_database_take_what_their_records_took() -> None:
    with Database() as database:
        for build_s, run_s in ((1.0, 0.5), (2.0, 0.25), (4.0, 1.0)):
            measurement = Measurement((1.0,), build_s=build_s, run_s=run_s)
            database.add(make_task("row_sum"), Program(), measurement)
        assert cluster.recorded_rounds(database, "fake", 2, 2) == [1.5 + 0.75, 2.0 + 1.0]


def test_a_search_spends_its_trials_on_each_function() -> None:
    found = searched(products(2), FakeDevice(latency_of), 16)
    assert found.finish.reason == LIMITS_MET
    assert found.records == found.programs == 32
    assert all(1e-3 <= best_s <= 2e-3 for best_s in found.best_s if best_s is not None)


def test_the_output_says_what_is_assumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "proposal_seconds", lambda: 0.25)
    monkeypatch.setattr(cluster, "_SIMULATED_S", 60.0)
    file = tmp_path / "cluster.json"
    done = CliRunner().invoke(cluster.main, ["--simulation-only", "--json", str(file)])
    assert done.exit_code == 0, done.output
    assert "0.25 s of the driver" in done.output
    document = json.loads(file.read_text())
    assert "measure nothing" in document["environment"]["assumptions"]
    assert [row["nodes"] for row in document["results"]] == [16, 64, 256] * 2
