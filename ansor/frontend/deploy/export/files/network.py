"""Runs an exported network with the package apache-tvm-ffi and TVM's runtime library alone.

In Python: ``outputs = Network("FOLDER")(*inputs)``. On the command line, with files of raw numbers:
``python network.py FOLDER INPUT... --out PREFIX`` writes output I to PREFIX<I>.bin.
"""

from __future__ import annotations

import argparse
import ctypes
import math
import os
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tvm_ffi

FORMAT = 1  # of network.txt
RUNTIME = "libtvm_runtime.so"
ALIGNMENT_BYTES = 64  # of arrays, which the network's code relies on
CPU, POOLED_ALLOCATOR = 1, 2  # of TVM's virtual machine


@dataclass(frozen=True)
class Spec:
    """An input or an output."""

    name: str
    dtype: str
    shape: tuple[int, ...]

    @property
    def num_bytes(self) -> int:
        """Its size; elements lie in row-major order without gaps."""
        return math.prod(self.shape) * tvm_ffi.dtype(self.dtype).itemsize


@dataclass(frozen=True)
class Description:
    """The content of network.txt: what a network takes, keeps between calls and returns."""

    entry: str
    threads: int
    inputs: tuple[Spec, ...]
    states: tuple[Spec, ...]
    weights: tuple[Spec, ...]
    outputs: tuple[Spec, ...]


def read_description(path: Path) -> Description:
    """Reads network.txt.

    Raises:
        ValueError: the file describes no network, or has another format.
    """
    first, *lines = path.read_text(encoding="utf-8").splitlines()
    if first != f"ansor-export {FORMAT}":
        raise ValueError(f"{path}: not a network of format {FORMAT}; export the network again")
    specs: dict[str, list[Spec]] = {"input": [], "state": [], "weight": [], "output": []}
    values: dict[str, str] = {}
    for line in lines:
        kind, _, rest = line.partition(" ")
        if kind in specs:
            specs[kind].append(_spec(rest))
        else:
            values[kind] = rest
    parts = (tuple(specs[kind]) for kind in specs)
    return Description(values["entry"], int(values["threads"]), *parts)


def _spec(text: str) -> Spec:
    dtype, count, *rest = text.split(" ")
    shape = tuple(map(int, rest[: int(count)]))
    return Spec(" ".join(rest[int(count) :]), dtype, shape)


class Network:
    """A network that is called like a function; calls from several threads wait for each other.

    Args:
        folder: of the exported network.
        runtime: folder with TVM's runtime library; by default "lib" of the exported network.
        threads: of TVM's thread pool, which all networks of a process share. By default the number
            that the network was tuned for, or the number of cores if that is smaller. The first
            network of a process decides, or the variable TVM_NUM_THREADS.

    Attributes:
        inputs: names, dtypes and shapes of the arrays that a call takes.
        outputs: of the tensors that it returns.

    Raises:
        ValueError: the folder has another format.
        OSError: a file is missing.
    """

    def __init__(
        self, folder: str | Path, runtime: str | Path | None = None, threads: int | None = None
    ) -> None:
        home = Path(folder)
        self._description = read_description(home / "network.txt")
        cores = len(os.sched_getaffinity(0))
        count = threads or min(cores, self._description.threads)
        os.environ.setdefault("TVM_NUM_THREADS", str(count))
        ctypes.CDLL(str(Path(runtime or home / "lib") / RUNTIME), ctypes.RTLD_GLOBAL)
        self._function = _loaded(home, self._description.entry)
        arrays = list(_arrays(home / "weights.bin", self._description))
        first = len(self._description.weights)
        self._weights, self._initial = arrays[:first], arrays[first:]
        self._states = self._initial
        self._turn = threading.Lock()

    @property
    def inputs(self) -> tuple[Spec, ...]:
        """The arrays that a call takes."""
        return self._description.inputs

    @property
    def outputs(self) -> tuple[Spec, ...]:
        """The tensors that a call returns."""
        return self._description.outputs

    def __call__(self, *arrays: Any) -> tuple[tvm_ffi.Tensor, ...]:
        """Runs the network once; `numpy.from_dlpack` makes arrays of the outputs.

        Args:
            arrays: one for each input: an array or a tensor on the CPU with the method
                `__dlpack__`, or the numbers as `bytes` or another buffer.

        Raises:
            ValueError: another number, size, shape or dtype than that of the inputs.
        """
        if len(arrays) != len(self.inputs):
            raise ValueError(f"give {len(self.inputs)} inputs, not {len(arrays)}")
        tensors = [_input(spec, array) for spec, array in zip(self.inputs, arrays, strict=True)]
        with self._turn:
            found = list(_flat(self._function(*tensors, *self._states, *self._weights)))
            self._states = found[len(self.outputs) :]
        return tuple(found[: len(self.outputs)])

    def reset(self) -> None:
        """Gives what the network keeps between calls its initial values again."""
        with self._turn:
            self._states = self._initial


def to_bytes(tensor: tvm_ffi.Tensor) -> bytes:
    """The numbers of a tensor."""
    size = math.prod(tensor.shape) * tensor.dtype.itemsize
    memory = ctypes.create_string_buffer(size)
    _call("runtime.TVMTensorCopyToBytes", tensor, ctypes.c_void_p(ctypes.addressof(memory)), size)
    return memory.raw


def _loaded(home: Path, entry: str) -> Any:
    """The network's function, in a virtual machine of its own."""
    program = _call(
        "ffi.Module.load_from_bytes.relax.VMExecutable", (home / "network.vm").read_bytes()
    )
    program.import_module(tvm_ffi.load_module(str(home / "libnetwork.so")))
    machine = program["vm_load_executable"]()
    machine["vm_initialization"](CPU, 0, POOLED_ALLOCATOR)
    return machine[entry]


def _arrays(path: Path, description: Description) -> Iterator[tvm_ffi.Tensor]:
    """The weights and the initial states."""
    with path.open("rb") as file:
        for spec in (*description.weights, *description.states):
            data = file.read(-(-spec.num_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES)
            yield _from_bytes(spec, data[: spec.num_bytes])


def _input(spec: Spec, value: Any) -> Any:
    if not hasattr(value, "__dlpack__"):
        return _from_bytes(spec, bytes(value))
    tensor = tvm_ffi.from_dlpack(value)
    if tuple(tensor.shape) != spec.shape or str(tensor.dtype) != spec.dtype:
        found = f"{tensor.dtype} {tuple(tensor.shape)}"
        raise ValueError(f"input {spec.name}: {found}; it is {spec.dtype} {spec.shape}")
    if tensor.is_contiguous() and tensor.data_ptr() % ALIGNMENT_BYTES == 0:
        return tensor
    copy = _new(spec)
    _call("runtime.TVMTensorCopyFromTo", tensor, copy)
    return copy


def _from_bytes(spec: Spec, data: bytes) -> Any:
    if len(data) != spec.num_bytes:
        raise ValueError(f"{spec.name}: {len(data)} bytes; it has {spec.num_bytes}")
    tensor = _new(spec)
    place = ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p)
    _call("runtime.TVMTensorCopyFromBytes", tensor, place, len(data))
    return tensor


def _new(spec: Spec) -> Any:
    """A tensor whose elements have any values."""
    shape, device = tvm_ffi.Shape(spec.shape), tvm_ffi.device("cpu", 0)
    return _call("runtime.TVMTensorAllocWithScope", shape, tvm_ffi.dtype(spec.dtype), device, None)


def _flat(result: Any) -> Iterator[tvm_ffi.Tensor]:
    """The tensors of a result, which may be nested tuples."""
    if isinstance(result, tvm_ffi.Tensor):
        yield result
    else:
        for part in result:
            yield from _flat(part)


def _call(name: str, *arguments: Any) -> Any:
    """Calls a function of TVM's runtime library."""
    return tvm_ffi.get_global_func(name)(*arguments)


def main(words: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("inputs", nargs="*")
    parser.add_argument("--runtime")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--out", default="output", metavar="PREFIX")
    given = parser.parse_args(words)
    network = Network(given.folder, given.runtime, given.threads)
    outputs = network(*(Path(path).read_bytes() for path in given.inputs))
    for number, tensor in enumerate(outputs):
        Path(f"{given.out}{number}.bin").write_bytes(to_bytes(tensor))


if __name__ == "__main__":
    main()
