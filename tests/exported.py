"""An exported network with inputs and outputs of many dtypes, and the programs that run it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import tvm
from tvm import relax
from tvm.target import Target

from ansor.frontend import optimize
from ansor.frontend.importers.from_relax import from_relax

INPUTS = {
    "x": ((256, 256), "float32"),
    "keep": ((256, 128), "bool"),
    "small": ((256, 128), "int8"),
    "half": ((256, 128), "bfloat16"),
    "index": ((5,), "int64"),
}
RUN_PYTHON = """
import sys

class NoTVM:
    def find_spec(self, name, path=None, target=None):
        assert name.split(".")[0] not in ("tvm", "ansor", "xgboost"), name

sys.meta_path.insert(0, NoTVM())
sys.path.insert(0, sys.argv[1])
import network
network.main(sys.argv[1:])
assert "libtvm_compiler" not in open("/proc/self/maps").read()
"""


def many_dtypes() -> tvm.IRModule:
    """A network with five inputs and five outputs, see `check_against_numpy`."""
    builder = relax.BlockBuilder()
    x, keep, small, half, index = (
        relax.Var(name, relax.TensorType(shape, dtype)) for name, (shape, dtype) in INPUTS.items()
    )
    weight = _weight()
    op, const = relax.op, relax.const
    with builder.function("main", [x, keep, small, half, index]):
        with builder.dataflow():
            product = builder.emit(op.nn.relu(op.matmul(x, const(weight))))
            kept = builder.emit(op.where(keep, product, const(0.5, "float32")))
            total = builder.emit(op.add(op.astype(small, "int32"), const(7, "int32")))
            double = builder.emit(op.multiply(half, const(np.array(2, ml_dtypes.bfloat16))))
            large = builder.emit(op.greater(kept, const(1.0, "float32")))
            rows = builder.emit(op.take(kept, index, axis=0, mode="clip"))
            result = builder.emit_output(relax.Tuple([kept, total, double, large, rows]))
        builder.emit_func_output(result)
    return builder.get()


def _weight() -> Any:
    return np.random.default_rng(1).standard_normal((256, 128), dtype=np.float32)


def check_against_numpy(found: Sequence[Any], arrays: Sequence[Any]) -> None:
    """Compares results of `many_dtypes` with those of NumPy; the first may be rounded."""
    x, keep, small, half, index = arrays
    kept = np.where(keep, np.maximum(x @ _weight(), 0), np.float32(0.5))
    np.testing.assert_allclose(found[0], kept, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(found[1], small.astype(np.int32) + 7)
    np.testing.assert_array_equal(found[2], half * half.dtype.type(2))
    np.testing.assert_array_equal(found[3], found[0] > 1)
    np.testing.assert_array_equal(found[4], found[0][index])


def arrays_of(found: Sequence[bytes]) -> list[Any]:
    """The results of `many_dtypes` from their numbers."""
    dtypes = (np.float32, np.int32, ml_dtypes.bfloat16, np.bool_, np.float32)
    pairs = zip(found, dtypes, strict=True)
    return [np.frombuffer(raw, dtype).reshape(-1, 128) for raw, dtype in pairs]


def with_state() -> tvm.IRModule:
    """A network that keeps its input for the next call, and adds it to the next one's."""
    builder = relax.BlockBuilder()
    x, last = (relax.Var(name, relax.TensorType((2,), "float32")) for name in ("x", "last"))
    with builder.function("main", [x, last]):
        with builder.dataflow():
            total = builder.emit(relax.op.add(x, last))
            result = builder.emit_output(relax.Tuple([total, x]))
        builder.emit_func_output(result)
    return optimize(from_relax(builder.get()).mod, Target("llvm"))


def inputs(seed: int = 0) -> list[Any]:
    """Arrays for `many_dtypes`."""
    rng = np.random.default_rng(seed)
    drawn = []
    for shape, name in INPUTS.values():
        dtype = np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)
        values = rng.standard_normal(shape) if "float" in name else rng.integers(0, 9, shape)
        drawn.append(values.astype(dtype))
    return drawn


def files_of(arrays: Sequence[Any], folder: Path) -> list[Path]:
    """Files with the numbers of arrays."""
    paths = [folder / f"input{number}.bin" for number in range(len(arrays))]
    for path, array in zip(paths, arrays, strict=True):
        path.write_bytes(array.tobytes())
    return paths


def bytes_of(results: Any) -> list[bytes]:
    """The numbers of a network's results."""
    row = results if isinstance(results, tuple) else (results,)
    return [np.ascontiguousarray(array).tobytes() for array in row]


def build(folder: Path, *options: str) -> Path:
    """Builds the programs of an exported folder; the folder with them."""
    made = folder / "build"
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    configure = ["cmake", "-S", folder, "-B", made, *generator, "-DCMAKE_BUILD_TYPE=", *options]
    for command in (configure, ["cmake", "--build", made]):
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
    return made


def run(command: Sequence[Any], status: int = 0) -> str:
    """Runs a program; returns its output."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == status, (done.returncode, done.stdout, done.stderr)
    return done.stdout + done.stderr


def in_python(*words: Any, status: int = 0) -> str:
    """Runs network.py in a process that can import neither TVM nor this package."""
    return run([sys.executable, "-c", RUN_PYTHON, *words], status)
