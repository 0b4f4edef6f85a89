"""Networks for a GPU, as far as a machine without one allows: prepared, scheduled, compiled."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tvm
from cuda_compiler import compile_source, cuda_source
from gpu import GPU, TARGET, TF32_GPU, legal_sample, on_tensor_cores, sketches_of
from tvm import relax
from tvm.relax.frontend import nn

from ansor.calls import auto_schedule
from ansor.config import FULL
from ansor.cost_model.model import CostModel
from ansor.errors import ArgumentError, UnsupportedError
from ansor.frontend.deploy.assembly import apply_programs, compile_module
from ansor.frontend.deploy.detached_weights import detach_weights
from ansor.frontend.optimization import inference_form
from ansor.frontend.passes.wide_accumulation import with_wide_sums
from ansor.lowering.lower import lower
from ansor.policy.policy import SearchPolicy
from ansor.program.program import Program
from ansor.run.prepare import prepare_network
from ansor.targets.cuda.rules.tensor_cores import left_to_plain_cores
from ansor.targets.cuda.search import CUDA_SEARCH
from ansor.targets.target import check_runs_here, resolve_target, target_text
from ansor.task import Task
from ansor.workloads import build


def drafted(task: Task) -> Program:
    """The draft's preferred program for a task."""
    sketches = CUDA_SEARCH.sketches(task.dag, GPU, FULL.sketch)
    model = CostModel(GPU, CUDA_SEARCH, FULL.cost_model, FULL.sketch)
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
    network = prepare_network("squeezenet1_1", target, target_text(target, 2))
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


class Small(nn.Module):
    """A convolution, its activation, and a product of matrices."""

    def __init__(self, dtype: str) -> None:
        self.conv = nn.Conv2D(16, 32, 3, padding=1, bias=True, dtype=dtype)
        self.fc = nn.Linear(32, 24, bias=False, dtype=dtype)

    def forward(self, x: nn.Tensor) -> nn.Tensor:
        seen = nn.relu(self.conv(x))
        return self.fc(nn.reshape(nn.permute_dims(seen, [0, 2, 3, 1]), (2 * 8 * 8, 32)))


def small_network(dtype: str) -> tvm.IRModule:
    mod, params = Small(dtype).export_tvm({"forward": {"x": nn.spec.Tensor((2, 16, 8, 8), dtype)}})
    rng = np.random.default_rng(0)
    values = {}
    for name, param in params:
        drawn = rng.uniform(-0.3, 0.3, [int(n) for n in param.shape])
        kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype
        values[name] = tvm.runtime.tensor(drawn.astype(kind))
    return relax.transform.BindParams("forward", values)(mod)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_network_in_half_precision_uses_tensor_cores(dtype: str) -> None:
    target = resolve_target("cuda -arch=sm_90")
    network = prepare_network(small_network(dtype), target, target_text(target, 2))
    products = [task for task in network.tasks if task.dag.flops > 100_000]
    assert len(products) == 2
    for task in products:
        assert not left_to_plain_cores(task.dag, GPU)
        (sketch,) = [sketch for sketch in sketches_of(task.func) if on_tensor_cores(sketch)]
        program = legal_sample(sketch, 1).program(0)
        assert "wmma::mma_sync" in cuda_source(lower(task.func, program), TARGET)


def test_a_network_in_float32_compiles_with_products_rounded_to_tf32() -> None:
    target = resolve_target("cuda -arch=sm_90 -tf32")
    network = prepare_network(small_network("float32"), target, target_text(target, 2))
    products = [task for task in network.tasks if task.dag.flops > 100_000]
    scheduled = {}
    for task in products:
        (sketch,) = filter(on_tensor_cores, sketches_of(task.func, TF32_GPU))
        scheduled[task.name] = lower(task.func, legal_sample(sketch, 1).program(0))
    assert len(scheduled) == 2
    bare, _ = detach_weights(apply_programs(network.mod, scheduled))
    (source,) = sources(compile_module(bare, target).mod)
    assert source.count("void ansor_load_tf32(") == 1
    assert all(use.spill_bytes <= 16 for use in compile_source(source, GPU.arch))


def test_wide_sums_round_once() -> None:
    mod = inference_form(small_network("float16"))
    x = np.random.default_rng(1).uniform(-1, 1, (2, 16, 8, 8)).astype(np.float16)
    wide = run(with_wide_sums(mod), x)
    exact = run(inference_form(small_network("float32")), x.astype(np.float32))
    plain = run(mod, x)
    assert wide.dtype == np.float16
    assert np.abs(wide - exact).max() < np.abs(plain - exact).max() < 1e-2 * np.abs(exact).max()


def run(mod: tvm.IRModule, x: np.ndarray) -> np.ndarray:
    machine = relax.VirtualMachine(tvm.compile(mod, tvm.target.Target("llvm")), tvm.cpu())
    out: np.ndarray = machine["forward"](tvm.runtime.tensor(x)).numpy()
    return out


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
