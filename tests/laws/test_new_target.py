"""A kind of target that the package does not know, added through its seams alone."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from definitions import workload
from toy_target import TOY

from ansor import auto_schedule
from ansor.database.database import Database
from ansor.errors import UnsupportedError
from ansor.targets import registry
from ansor.targets.target import resolve_target


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "_BACKENDS", dict(registry._BACKENDS))
        registry.register(TOY)
        yield


def test_an_operator_is_tuned_for_it() -> None:
    definition = workload("matmul_relu")
    with Database() as records:
        tuned = auto_schedule(list(definition.tensors), "c", trials=6, database=records, threads=1)
        (row,) = tuned.tasks
        assert row.trials == 4  # all programs: two stages, each unrolled or not
        assert {record.measurement.error for record in records.all_records('{"kind":"c"}')} == {
            None
        }
    rng = np.random.default_rng(0)
    arrays = [
        rng.standard_normal(tuple(map(int, t.shape))).astype(np.float32)
        for t in definition.tensors[:-1]
    ]
    np.testing.assert_allclose(tuned(*arrays), definition.reference(*arrays), rtol=1e-4, atol=1e-4)


def test_without_its_backend_the_kind_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(registry._BACKENDS, "c")
    with pytest.raises(UnsupportedError, match="target 'c'"):
        resolve_target("c")
