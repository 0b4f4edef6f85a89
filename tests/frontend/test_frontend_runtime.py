"""Calling a compiled network."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import tvm
from tvm import relax
from tvm.target import Target

from ansor.errors import ArgumentError
from ansor.frontend import CompiledModel, InputSpec, compile_model, optimize, random_inputs
from ansor.frontend.deploy.convert import to_tvm
from ansor.targets.host.thread_pool import num_threads
from ansor.targets.host.threads import available_cores, use_threads

SHAPE = (1, 3, 32, 32)


def test_arrays_in_arrays_out(compiled: CompiledModel) -> None:
    result = compiled(*random_inputs(compiled.inputs))
    assert isinstance(result, np.ndarray)
    assert (result.shape, result.dtype) == ((1, 10), np.float32)


def test_torch_in_torch_out(compiled: CompiledModel) -> None:
    torch = pytest.importorskip("torch")
    (x,) = random_inputs(compiled.inputs)
    result = compiled(torch.from_numpy(x))
    assert isinstance(result, torch.Tensor)
    np.testing.assert_array_equal(result.numpy(), compiled(x))


def test_any_memory_layout_is_accepted(compiled: CompiledModel) -> None:
    (x,) = random_inputs(compiled.inputs)
    expected = compiled(x)
    strided = np.asfortranarray(x)
    shifted = np.zeros(x.size + 1, np.float32)[1:].reshape(SHAPE)  # not aligned
    shifted[:] = x
    frozen = x.copy()
    frozen.flags.writeable = False
    for same in (strided, shifted, frozen):
        np.testing.assert_array_equal(compiled(same), expected)


def test_torch_gradients_and_strides_do_not_matter(compiled: CompiledModel) -> None:
    torch = pytest.importorskip("torch")
    (x,) = random_inputs(compiled.inputs)
    tensor = torch.from_numpy(x).to(memory_format=torch.channels_last).requires_grad_()
    np.testing.assert_array_equal(compiled(tensor).numpy(), compiled(x))


@pytest.mark.parametrize("offset", range(4))
def test_an_array_without_dimensions_keeps_none(offset: int) -> None:
    """For any address; aligned arrays are not copied."""
    memory = np.full(64 + 16, 3, np.float32)
    start = (-memory.ctypes.data % 64) // 4
    scalar = memory[start + offset * 4 :][:1].reshape(())
    found = to_tvm(scalar, tvm.cpu())
    assert tuple(found.shape) == ()
    assert found.numpy() == 3


def test_aligned_array_is_not_copied() -> None:
    memory = np.zeros(64 + 16, np.float32)
    start = (-memory.ctypes.data % 64) // 4
    aligned = memory[start : start + 16]
    shared = to_tvm(aligned, tvm.cpu())
    aligned[:] = 3
    assert (shared.numpy() == 3).all()


def test_results_outlive_later_calls(compiled: CompiledModel) -> None:
    first, second = (random_inputs(compiled.inputs, seed=seed) for seed in (0, 1))
    kept = compiled(*first)
    copy = kept.copy()
    compiled(*second)
    np.testing.assert_array_equal(kept, copy)


@pytest.mark.parametrize("aligned", [True, False])
def test_an_output_that_is_an_input_outlives_later_calls(target: Target, aligned: bool) -> None:
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((4, 4), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            flat = builder.emit(relax.op.reshape(x, (16,)))
            outputs = builder.emit_output(relax.Tuple([flat, relax.op.negative(x)]))
        builder.emit_func_output(outputs)
    model = compile_model(optimize(builder.get(), target), target)
    first, second = (placed(random_inputs(model.inputs, seed=s)[0], aligned) for s in (0, 1))
    flat, negative = model(first)
    model(second)
    np.testing.assert_array_equal(flat, first.reshape(16))
    np.testing.assert_array_equal(negative, -first)
    torch = pytest.importorskip("torch")
    flat, _ = model(torch.from_numpy(first))
    model(torch.from_numpy(second))
    np.testing.assert_array_equal(flat.numpy(), first.reshape(16))


def placed(array: np.ndarray, aligned: bool) -> np.ndarray:
    """A copy at an address that is a multiple of 64, or just not."""
    memory = np.zeros(array.size + 32, np.float32)
    first = (-memory.ctypes.data % 64) // 4 + (0 if aligned else 4)
    out = memory[first : first + array.size].reshape(array.shape)
    out[...] = array
    return out


def test_threads_may_call_the_same_network(compiled: CompiledModel) -> None:
    inputs = [placed(random_inputs(compiled.inputs, seed=s)[0], aligned=False) for s in range(8)]
    expected = [compiled(x) for x in inputs]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(compiled, inputs * 8))
    for result, right in zip(found, expected * 8, strict=True):
        np.testing.assert_array_equal(result, right)


def test_several_outputs_are_a_tuple(target: Target) -> None:
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((4, 4), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            outputs = builder.emit_output(relax.Tuple([relax.op.exp(x), relax.op.negative(x)]))
        builder.emit_func_output(outputs)
    model = compile_model(optimize(builder.get(), target), target)
    (data,) = random_inputs(model.inputs)
    exponential, negative = model(data)
    np.testing.assert_allclose(exponential, np.exp(data), rtol=1e-5)
    np.testing.assert_array_equal(negative, -data)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ((), "inputs=0: give 1 arrays: x"),
        ((np.zeros((1, 3, 32, 31), np.float32),), r"x=\(1, 3, 32, 31\): the shape must be"),
        ((np.zeros(SHAPE, np.float64),), "x='float64': the dtype must be float32"),
        (([1.0],), "x='list': give a NumPy array or a torch tensor"),
    ],
)
def test_wrong_input_is_named(
    compiled: CompiledModel, arrays: tuple[object, ...], message: str
) -> None:
    with pytest.raises(ArgumentError, match=message):
        compiled(*arrays)


def test_latency_is_plausible(compiled: CompiledModel) -> None:
    assert 1e-6 < compiled.latency(min_time_s=0.05, repeats=3) < 1.0


@pytest.mark.parametrize(("min_time_s", "repeats"), [(0, 3), (0.1, 0)])
def test_latency_needs_positive_numbers(
    compiled: CompiledModel, min_time_s: float, repeats: int
) -> None:
    with pytest.raises(ArgumentError, match="must be positive"):
        compiled.latency(min_time_s, repeats)


def test_random_inputs_follow_the_seed() -> None:
    specs = (InputSpec("x", (3,), "float32"), InputSpec("index", (2,), "int64"))
    first, again = random_inputs(specs, seed=4), random_inputs(specs, seed=4)
    np.testing.assert_array_equal(first[0], again[0])
    assert first[1].dtype == np.int64
    assert not np.array_equal(first[0], random_inputs(specs, seed=5)[0])


def test_all_cores_run(compiled: CompiledModel) -> None:
    assert compiled.threads == available_cores()
    assert num_threads() >= available_cores()


def test_threads_must_be_positive() -> None:
    with pytest.raises(ArgumentError, match="threads=0"):
        use_threads(0)


def test_threads_of_a_program_call_one_model_and_others(
    compiled: CompiledModel, optimized: tvm.IRModule, target: Target
) -> None:
    models = [compiled, compile_model(optimized, target, 1), compile_model(optimized, target, 2)]
    arrays = random_inputs(compiled.inputs)
    expected = compiled(*arrays)

    def call(number: int) -> float:
        found = [models[number % len(models)](*arrays) for _ in range(20)]
        return max(float(np.abs(one - expected).max()) for one in found)

    with ThreadPoolExecutor(max_workers=6) as executor:
        worst = list(executor.map(call, range(6), timeout=60))
    assert max(worst) < 1e-4


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork")
def test_a_forked_child_calls_it(compiled: CompiledModel) -> None:
    arrays = random_inputs(compiled.inputs)
    expected = compiled(*arrays)
    with compiled._turn():  # another thread of the parent is inside a call
        child = os.fork()
        if child == 0:
            os._exit(0 if np.array_equal(compiled(*arrays), expected) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_another_number_of_threads_later(optimized: tvm.IRModule, target: Target) -> None:
    before = dict(os.environ)
    one, three = (compile_model(optimized, target, count) for count in (1, 3))
    arrays = random_inputs(one.inputs)
    np.testing.assert_allclose(one(*arrays), three(*arrays), rtol=1e-4, atol=1e-5)
    assert (one.threads, three.threads) == (1, 3)
    assert dict(os.environ) == before
    use_threads(available_cores())
