"""A run on a Ray cluster of processes on this machine."""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import psutil
import pytest

import ansor
from ansor.callbacks import Callback, Round
from ansor.config import CLUSTER
from ansor.database.database import Database
from ansor.errors import ArgumentError
from ansor.workloads import build
from benchmarks.fault_scenarios import ray_cluster
from benchmarks.fault_scenarios.row import Scale
from benchmarks.ray_cluster import local_cluster

ray = pytest.importorskip("ray", reason="needs Ray: pip install 'ansor[ray]'")


MARK = ("ANSOR_TEST_CLUSTER", uuid.uuid4().hex)  # in the environment of the processes


class Stages(Callback):
    def __init__(self) -> None:
        self.texts: list[str] = []
        self.had_workers = False

    def on_stage(self, text: str) -> None:
        self.texts.append(text)

    def on_round(self, done: Round) -> None:
        self.had_workers |= has_workers()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(*MARK)
        with local_cluster(1) as made:
            yield made


def has_workers() -> bool:
    """Whether a worker process of a node of this cluster is there."""
    for process in psutil.process_iter(["cmdline"]):
        with suppress(psutil.Error):
            is_worker = "ansor.measure.child" in (process.info["cmdline"] or [])
            if is_worker and process.environ().get(MARK[0]) == MARK[1]:
                return True
    return False


def test_a_network_is_tuned_on_a_cluster(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    calm = replace(CLUSTER, slower_than_best=math.inf)  # other tests run meanwhile
    monkeypatch.setattr("ansor.cluster.ray_nodes.CLUSTER", calm)
    definition = build("matmul", rows=32, columns=40, depth=36)
    stages = Stages()
    with Database() as database:
        tuned = ansor.auto_schedule(
            list(definition.tensors),
            trials=8,
            threads=1,
            device=f"ray:{cluster.address}",
            database=database,
            callbacks=[stages],
        )
        assert database.count() == 8
    assert [result.trials for result in tuned.tasks] == [8]
    assert any("measures, 1 in all" in text for text in stages.texts)
    assert not ray.is_initialized()
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal(shape).astype(np.float32) for shape in ((32, 36), (36, 40))]
    np.testing.assert_allclose(tuned(*inputs), definition.reference(*inputs), rtol=1e-4, atol=1e-4)
    assert stages.had_workers
    end_s = time.monotonic() + 30
    while has_workers():
        assert time.monotonic() < end_s, "workers end with their node"
        time.sleep(0.1)


@pytest.mark.slow
def test_a_run_survives_nodes_that_come_and_go() -> None:
    assert [row for row in ray_cluster.run(Scale.QUICK) if not row.holds] == []


@pytest.mark.parametrize("address", ["127.0.0.1:1", "nowhere"])
def test_an_address_without_a_cluster_is_an_error_with_a_remedy(address: str) -> None:
    with pytest.raises(ArgumentError, match="ray start --head"):
        ansor.auto_schedule("resnet18", trials=8, device=f"ray:{address}")
