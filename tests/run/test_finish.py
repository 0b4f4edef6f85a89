"""What wins is compiled ahead, once, and again only where something else has won."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from definitions import HARDWARE, workload

import ansor.run.finish
from ansor.callbacks import Finish
from ansor.config import SketchConfig
from ansor.program.program import Program
from ansor.run.finish import Finisher
from ansor.run.prepare import Network, prepare_network
from ansor.run.tuned.search_history import SearchHistory
from ansor.run.winners.choose import Winner
from ansor.targets.target import resolve_target, target_text

FINISH = Finish("no budget", [], 0, 0.0)
HISTORY = SearchHistory(HARDWARE, SketchConfig(), (), {})


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What was compiled with, once for each time."""
    seen: list[object] = []
    real = ansor.run.finish._built

    def noted(network: Network, target: object, threads: int, chosen: object) -> object:
        seen.append(chosen)
        return real(network, target, threads, chosen)  # type: ignore[arg-type]

    monkeypatch.setattr("ansor.run.finish._built", noted)
    return seen


@pytest.mark.parametrize(("ahead", "times"), [(None, 1), (Program(), 1), (Program("other"), 2)])
def test_a_network_is_compiled_with_what_has_won(
    ahead: Program | None, times: int, compiled: list[object]
) -> None:
    target, definition = resolve_target("native"), workload("matmul_relu")
    network = prepare_network(list(definition.tensors), target, target_text(target, 1))
    (task,) = network.tasks
    with ThreadPoolExecutor(1) as background:
        finisher = Finisher(network, target, 1, background)
        if ahead is not None:
            finisher.begin({task.name: (task, ahead)})
        winner = Winner(task, Program(), 0.5, 0.0, "as it was")
        tuned = finisher.tuned({task.name: winner}, FINISH, 7, HISTORY)
    assert len(compiled) == times
    assert compiled[-1] == {task.name: (task, Program())}
    assert tuned.history is HISTORY
    assert (tuned.seed, tuned.finish, tuned.tasks[0].latency_s) == (7, FINISH, 0.5)
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(spec.shape).astype(spec.dtype) for spec in tuned.compiled.inputs]
    np.testing.assert_allclose(tuned(*arrays), definition.reference(*arrays), rtol=1e-4, atol=1e-4)


def test_an_error_of_the_compiler_is_raised_where_the_result_is_wanted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("no such instruction")

    monkeypatch.setattr("ansor.run.finish._built", fails)
    target = resolve_target("native")
    network = prepare_network(list(workload("matmul").tensors), target, target_text(target, 1))
    (task,) = network.tasks
    with ThreadPoolExecutor(1) as background:
        finisher = Finisher(network, target, 1, background)
        finisher.begin({task.name: (task, Program())})
        with pytest.raises(RuntimeError, match="no such instruction"):
            finisher.tuned({task.name: Winner(task, Program(), None, None)}, FINISH, 0, HISTORY)
