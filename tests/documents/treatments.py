"""What pages need to be run in a test: small sizes, files that they take as given, and reasons.

A page without an entry runs as it stands. Devices answer from a formula.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ansor
from ansor.frontend.deploy.export.write import RUNTIME_LIBRARIES
from ansor.targets.registry import backend_of
from ansor.targets.target import resolve_target

Names = dict[str, Any]
Replacement = tuple[str, str]

TRIALS = r"\b(trials|trials_per_task|early_stopping)=[1-9]\d*", r"\1=2"
MINUTES = r"\bminutes=\d+", "trials=2"
MINUTES_OPTION = r"--minutes \d+", "--trials 2"
TRIALS_OPTION = r"--trials [1-9]\d*", "--trials 2"
IMAGE = r"\b1, 3, 224, 224\b", "1, 3, 32, 32"
SIZE_256 = r"\b256\b", "32"


def nothing(_: Any) -> Any:
    """Gives and checks nothing."""
    return {}


@dataclass(frozen=True)
class Treatment:
    """How one page is run.

    Attributes:
        small: regular expressions and what takes the place of their matches.
        given: from the module's folder, the names that the page takes as given.
        check: checks the names of the page after its last block.
        left_out: from the beginning of a block or a command to the reason why it is not run.
    """

    small: tuple[Replacement, ...] = ()
    given: Callable[[Path], Names] = nothing
    check: Callable[[Names], Any] = nothing
    left_out: Mapping[str, str] = field(default_factory=dict)
    slow: bool = False


def bfloat16_is_here(_: Path) -> Names:
    reason = backend_of("llvm").network.why_not_short(resolve_target("native"), "bfloat16")
    if reason is not None:
        pytest.skip(reason)
    return {}


def is_matrix_product(*results: str) -> Callable[[Names], None]:
    def check(names: Names) -> None:
        a, b = np.random.default_rng(0).standard_normal((2, 32, 32)).astype(np.float32)
        for result in results:
            np.testing.assert_allclose(names[result](a, b), a @ b, 1e-4, 1e-4)

    return check


def pytorch_backend(folder: Path) -> Names:
    pytest.importorskip("torch")
    from ansor.torch_compile.backend import compile_graph

    return {"backend": compile_graph}


def pytorch_result(names: Names) -> None:
    assert names["scores"].shape == (1, 32)
    assert Path("records.sqlite").exists()


def product(names: Names) -> None:
    np.testing.assert_allclose(names["product"], names["x"] @ names["y"], 1e-4, 1e-4)


def calibration(folder: Path) -> Names:
    for package in ("onnx", "onnxruntime", "sympy"):
        pytest.importorskip(package)
    import onnx

    from tests.frontend.quantized_networks import IMAGE, residual_network

    onnx.save(residual_network(), folder / "resnet50.onnx")
    images = np.random.default_rng(0).standard_normal((2, *IMAGE)).astype(np.float32)
    np.save(folder / "images.npy", images)
    return {}


def tuned_network(folder: Path) -> Names:
    tuned = ansor.auto_schedule("resnet18", trials=0)
    tuned.save(folder / "model.ansor")
    np.zeros((1, 3, 32, 32), np.float32).tofile(folder / "input0.bin")
    (folder / "arm-libraries").mkdir()
    for name in RUNTIME_LIBRARIES:
        (folder / "arm-libraries" / name).touch()
    return {"ansor": ansor, "tuned": tuned}


def packages(*names: str) -> Callable[[Path], Names]:
    """Skips the page where one of them is missing."""

    def given(_: Path) -> Names:
        for name in names:
            pytest.importorskip(name)
        return {}

    return given


def small_model(folder: Path) -> Names:
    """A float model in a file, and the shape of its input."""
    bfloat16_is_here(folder)
    calibration(folder)
    (folder / "resnet50.onnx").rename(folder / "model.onnx")
    return {"shape": np.load(folder / "images.npy").shape[1:]}


TREATMENTS = {
    "README.md": Treatment((MINUTES, TRIALS, IMAGE, ("batch=16", "batch=2"))),
    "docs/cluster.md": Treatment(
        left_out={"ray start": "several machines: tests/cluster has nodes on this one"}
    ),
    "docs/command.md": Treatment((MINUTES,)),
    "docs/cuda.md": Treatment(
        left_out={
            "tuned = ansor.auto_schedule(model,": "a GPU",
            "pip download": "downloads 2 GB",
        }
    ),
    "docs/concepts/search.md": Treatment((TRIALS,)),
    "docs/deployment.md": Treatment(
        (
            IMAGE,
            (r"model\.ansor resnet18", "model.ansor again"),
            (r"model\.ansor arm-resnet18", "model.ansor arm-again"),
        ),
        given=tuned_network,
        left_out={"cmake -S arm-resnet18": "a compiler for Arm: `make check-arm` builds with it"},
        slow=True,
    ),
    "docs/explain.md": Treatment((TRIALS, TRIALS_OPTION, SIZE_256)),
    "docs/farm.md": Treatment(
        left_out={
            "python -m tvm.exec": "servers: tests/cli/test_farm_page.py starts them",
            "device = ansor.RpcDevice": "another machine",
        }
    ),
    "docs/installation.md": Treatment(
        (TRIALS_OPTION,), left_out={"pip install .": "changes the environment of the tests"}
    ),
    "docs/limits.md": Treatment(given=packages("torch", "onnx")),
    "docs/metaschedule.md": Treatment((TRIALS,)),
    "docs/operators.md": Treatment((TRIALS, SIZE_256), check=product),
    "docs/precision.md": Treatment((MINUTES,), given=bfloat16_is_here),
    "docs/pytorch.md": Treatment(
        (('"minutes": 5', '"trials": 2'), ('"ansor"', "backend"), SIZE_256),
        pytorch_backend,
        pytorch_result,
    ),
    "docs/quantization.md": Treatment((MINUTES,), given=calibration),
    "docs/recovery.md": Treatment((TRIALS_OPTION, ("resnet18", "matmul:rows=8"))),
    "docs/report.md": Treatment(((r"resnet50 --minutes 10", "matmul:rows=32 --trials 2"),)),
    "docs/templates.md": Treatment((TRIALS, SIZE_256), check=is_matrix_product("tuned", "alone")),
    "docs/tutorials/deployment.md": Treatment((MINUTES_OPTION, IMAGE), slow=True),
    "docs/tutorials/low_precision.md": Treatment(
        (MINUTES, (r"\(16, ", "(2, ")), given=small_model, slow=True
    ),
    "docs/tutorials/onnx_file.md": Treatment((MINUTES_OPTION,), given=packages("onnx")),
    "docs/tutorials/operator.md": Treatment((TRIALS,)),
    "docs/tutorials/pytorch_cnn.md": Treatment(
        (MINUTES, ("untuned=True", "min_time_s=0.01")), given=packages("torch")
    ),
    "docs/upstream.md": Treatment(
        left_out={"import os\n\n# `module`": "a defect: the program hangs"}, slow=True
    ),
}
