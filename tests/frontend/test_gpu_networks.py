"""Networks for a GPU, as far as a machine without one allows: prepared, scheduled, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tvm
from gpu import GPU, TARGET

from ansor.annotate.complete import complete
from ansor.config import FULL
from ansor.cost_model.scorer import CostModel
from ansor.errors import ArgumentError, UnsupportedError
from ansor.frontend.apply import apply_programs, compile_module
from ansor.frontend.weights import detach_weights
from ansor.hardware.target import check_runs_here, resolve_target, target_text
from ansor.measure.nvcc import compile_source
from ansor.policy.policy import SearchPolicy
from ansor.prepare import prepare
from ansor.program.lower import lower
from ansor.program.program import Program
from ansor.sketch.generate import generate
from ansor.task import Task
from ansor.tune import auto_schedule
from ansor.workloads import build


def drafted(task: Task) -> Program:
    """What the draft prefers for a task."""
    sketches = [complete(s, GPU, FULL.sketch) for s in generate(task.dag, GPU, FULL.sketch)]
    model = CostModel(GPU, FULL.cost_model, FULL.sketch)
    rng = np.random.default_rng(0)
    best = SearchPolicy(task.key, sketches, model, FULL.evolution, rng).draft_best()
    assert best is not None
    return best.program


def sources(module: Any) -> list[str]:
    """CUDA source of a compiled module and all that it imports."""
    own = [module.inspect_source()] if str(module.kind) == "cuda" else []
    return [*own, *(text for child in module.imports for text in sources(child))]


def test_a_network_compiles_for_a_gpu_tuned_or_not() -> None:
    target = resolve_target("cuda -arch=sm_90")
    network = prepare("squeezenet1_1", target, target_text(target, 2))
    assert not network.variants
    assert not network.unscheduled
    tasks = network.tasks[:6]
    scheduled = {task.name: lower(task.func, drafted(task)) for task in tasks}
    bare, _ = detach_weights(apply_programs(network.mod, scheduled))
    executable = compile_module(bare, target)
    (source,) = sources(executable.mod)
    uses = {use.name: use for use in compile_source(source, GPU.arch)}
    assert len(uses) >= len(network.tasks)
    tuned = [use for name, use in uses.items() if any(task.name in name for task in tasks)]
    assert tuned
    assert all(use.spill_bytes == use.stack_bytes == 0 for use in tuned)


def test_a_gpu_target_has_one_text() -> None:
    for spelled in ("cuda -arch=sm_90", TARGET, tvm.target.Target(TARGET)):
        assert target_text(resolve_target(spelled), 7) == TARGET


def test_an_architecture_that_is_not_known() -> None:
    with pytest.raises(UnsupportedError, match=r"sm_35.*sm_70, .*sm_90"):
        resolve_target("cuda -arch=sm_35")


@pytest.mark.skipif(tvm.runtime.cuda(0).exist, reason="there is a GPU")
def test_without_a_gpu_it_says_so_before_anything_is_done() -> None:
    with pytest.raises(ArgumentError, match=r"^target='cuda': no NVIDIA GPU.*-arch=sm_NN$"):
        resolve_target("cuda")
    with pytest.raises(UnsupportedError, match="sm_90: no NVIDIA GPU"):
        check_runs_here(resolve_target("cuda -arch=sm_90"))
    with pytest.raises(UnsupportedError, match="no NVIDIA GPU"):
        auto_schedule(list(build("matmul").tensors), "cuda -arch=sm_90", trials=4)
