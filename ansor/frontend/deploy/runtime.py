"""A compiled network that is called like a function."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import tvm
from tvm import relax
from tvm.target import Target

from ansor.config import MeasureConfig
from ansor.errors import ArgumentError, UnsupportedError
from ansor.frontend.deploy.built import DeployableNetwork, built
from ansor.frontend.deploy.convert import Staging, check_array, from_tvm, is_torch_tensor, to_tvm
from ansor.frontend.deploy.detached_weights import in_huge_pages
from ansor.frontend.deploy.foreign import ForeignModel
from ansor.frontend.deploy.machine_code import load_code
from ansor.frontend.signature import InputSpec
from ansor.measure.function_arguments import on_device, on_host
from ansor.targets.host.threads import on_threads, start_threads
from ansor.targets.registry import backend_of
from ansor.targets.target import runs_here


@dataclass(frozen=True, eq=False)
class CompiledModel:
    """A network as machine code in memory.

    `machine` runs the `built` network (without its weights) on `device`, with `threads` threads,
    and with `weights` as further arguments.

    Several threads may call it, one at a time. So may a process that was forked from this one.
    """

    built: DeployableNetwork
    device: tvm.runtime.Device
    machine: relax.VirtualMachine
    weights: tuple[Any, ...]
    threads: int
    # The machine and the memory for copies of inputs serve one call at a time in each process. A
    # forked child needs its own lock, because it never sees the end of a call of the parent.
    _locks: dict[int, threading.Lock] = field(default_factory=dict, init=False, repr=False)

    @property
    def target(self) -> Target:
        """The target of the code."""
        return self.built.target

    @property
    def inputs(self) -> tuple[InputSpec, ...]:
        """The inputs of the network."""
        return self.built.inputs

    @property
    def mod(self) -> tvm.IRModule:
        """The scheduled module, with its weights."""
        return self.complete.mod

    @property
    def complete(self) -> DeployableNetwork:
        """The built network with its weights; a process that loads it has the same."""
        names = [str(p.name) for p in self.built.bare()[self.built.entry].params]
        arrays = map(on_host, self.weights)
        names = names[len(self.inputs) :]
        return replace(self.built, weights=dict(zip(names, arrays, strict=True)))

    def __call__(self, *arrays: Any) -> Any:
        """Runs the network on NumPy arrays or torch tensors; returns the kind of the arguments.

        Several outputs come as a tuple.

        Raises:
            ArgumentError: wrong number, kind, shape or dtype; names the input.
        """
        with self._turn():
            tensors = self._tensors(arrays)
            with on_threads(self.threads):
                result = self.machine[self.built.entry](*tensors, *self.weights)
            found = from_tvm(result, to_torch=any(map(is_torch_tensor, arrays)))
            return self._apart(found)

    def _turn(self) -> threading.Lock:
        """The lock of a call.

        Raises:
            UnsupportedError: a network on a GPU, in a process that was forked.
        """
        process = os.getpid()
        if process not in self._locks and self._locks and not _on_host(self.target):
            kind = self.target.kind.name
            raise UnsupportedError(
                f"a {kind} device cannot be used in a forked process", "load the file there"
            )
        return self._locks.setdefault(process, threading.Lock())

    def _apart(self, result: Any) -> Any:
        """The result. A result in the memory of a staged input is copied, because the next call
        overwrites this memory."""
        if isinstance(result, tuple):
            return tuple(map(self._apart, result))
        if is_torch_tensor(result):
            spans = [(at.array.ctypes.data, at.array.nbytes) for at in self._staging if at]
            inside = any(0 <= result.data_ptr() - first < size for first, size in spans)
            return result.clone() if inside else result
        shared = any(np.may_share_memory(result, at.array) for at in self._staging if at)
        return result.copy() if shared else result

    @cached_property
    def _staging(self) -> list[Staging | None]:
        return [Staging.of(spec) for spec in self.inputs]

    def latency(self, min_time_s: float = 0.5, repeats: int = 5) -> float:
        """Median time of one run in seconds, on random inputs, after warm-up.

        `repeats` measurements share `min_time_s`, so that each averages over many runs of a fast
        network and over one run of a slow one. TVM runs once, untimed, before each series.

        Raises:
            ArgumentError: a number that is not positive.
        """
        _check_positive("min_time_s", min_time_s)
        _check_positive("repeats", repeats)
        with self._turn():
            tensors = self._tensors(random_inputs(self.inputs))
            once = self._mean_times(tensors, number=1, repeat=1)[0]
            number = min(MeasureConfig.max_network_runs, max(1, round(min_time_s / repeats / once)))
            return float(np.median(self._mean_times(tensors, number, repeats)))

    def _mean_times(self, tensors: Sequence[Any], number: int, repeat: int) -> Sequence[float]:
        evaluate = self.machine.time_evaluator(
            self.built.entry, self.device, number=number, repeat=repeat
        )
        with on_threads(self.threads):
            times = evaluate(*tensors, *self.weights).results
        return [float(time_s) for time_s in times]

    def _tensors(self, arrays: Sequence[Any]) -> list[Any]:
        if len(arrays) != len(self.inputs):
            names = ", ".join(spec.name for spec in self.inputs)
            raise ArgumentError("inputs", len(arrays), f"give {len(self.inputs)} arrays: {names}")
        for array, spec in zip(arrays, self.inputs, strict=True):
            check_array(array, spec)
        places = zip(arrays, self._staging, strict=True)
        return [to_tvm(array, self.device, staging) for array, staging in places]


def compile_model(mod: tvm.IRModule, target: Target, threads: int | None = None) -> CompiledModel:
    """Compiles an optimised module for this process.

    `threads` defaults to all available cores.

    Raises:
        ArgumentError: fewer threads than one, or more than the system allows.
    """
    threads = start_threads(threads)
    return loaded(built(mod, target, threads), threads)


def loaded(model: DeployableNetwork, threads: int | None = None) -> CompiledModel:
    """The built network, ready to run in this process; see `compile_model`."""
    threads = start_threads(threads)
    target, arrays = model.target, model.weights
    on_host = _on_host(target)
    device = tvm.cpu() if on_host else tvm.device(str(target.kind.name))
    weights = in_huge_pages(arrays) if on_host else on_device(list(arrays.values()), device)
    executable = model.executable if model.code is None else load_code(model.code)
    machine = relax.VirtualMachine(executable, device)
    return CompiledModel(replace(model, weights={}), device, machine, tuple(weights), threads)


def ready(model: DeployableNetwork, threads: int) -> CompiledModel | ForeignModel:
    """The built network, ready to run in this process if it is for this machine."""
    return loaded(model, threads) if runs_here(model.target) else ForeignModel(model, threads)


def _on_host(target: Target) -> bool:
    return backend_of(target).execution.on_host


def random_inputs(specs: Sequence[InputSpec], seed: int = 0) -> list[Any]:
    """Arrays for the inputs: normal numbers, or zeros for integers (safe as indices)."""
    rng = np.random.default_rng(seed)
    return [_random_input(spec, rng) for spec in specs]


def _random_input(spec: InputSpec, rng: np.random.Generator) -> Any:
    if "float" in spec.dtype:
        return rng.standard_normal(spec.shape).astype(spec.dtype)
    return np.zeros(spec.shape, spec.dtype)


def _check_positive(name: str, value: float) -> None:
    if value <= 0:
        raise ArgumentError(name, value, "must be positive")
