"""The published suite: its shapes, that all of it can be scheduled, and small twins computed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
import pytest
import tvm
from definitions import HARDWARE, SMALL_SUITE

from ansor.config import SketchConfig
from ansor.dag.from_tir.read import read_dag
from ansor.errors import ArgumentError
from ansor.sketch.generate import generate
from ansor.sketch.rules import CPU_RULES
from ansor.workloads import Workload, suite, suite_workload
from ansor.workloads.opevo import convolution_nchw, product
from ansor.workloads.suite import FAMILIES, SHAPES
from ansor.workloads.transposed import transposed_convolution

Shape = tuple[int, ...]
HEADS = ((12, 128, 128), (16, 128, 128), (12, 64, 64), (12, 128, 128))

# Inputs of the first member, and outputs of all four, without the batch.
PUBLISHED: Mapping[str, tuple[tuple[Shape, ...], tuple[Shape, ...]]] = {
    "C1D": (((1, 256, 64), (3, 64, 128)), ((128, 128), (64, 256), (64, 256), (32, 512))),
    "C2D": (
        ((1, 224, 224, 3), (7, 7, 3, 64)),
        ((112, 112, 64), (56, 56, 64), (14, 14, 256), (7, 7, 512)),
    ),
    "C3D": (
        ((1, 16, 224, 224, 3), (7, 7, 7, 3, 64)),
        ((8, 112, 112, 64), (16, 56, 56, 64), (16, 14, 14, 256), (16, 7, 7, 512)),
    ),
    "GMM": (
        ((1, 128, 128), (1, 128, 128)),
        ((128, 128), (512, 32), (512, 512), (1024, 1024)),
    ),
    "GRP": (
        ((1, 56, 56, 64), (3, 3, 16, 128)),
        ((28, 28, 128), (56, 56, 64), (14, 14, 256), (7, 7, 512)),
    ),
    "DIL": (
        ((1, 224, 224, 3), (7, 7, 3, 64)),
        ((109, 109, 64), (56, 56, 64), (12, 12, 256), (5, 5, 512)),
    ),
    "DEP": (
        ((1, 112, 112, 32), (3, 3, 32)),
        ((112, 112, 32), (56, 56, 64), (7, 7, 512), (7, 7, 1024)),
    ),
    "T2D": (
        ((1, 4, 4, 512), (4, 4, 512, 256)),
        ((8, 8, 256), (16, 16, 128), (32, 32, 64), (64, 64, 3)),
    ),
    "CAP": (
        ((1, 16, 16, 4, 4, 32), (3, 3, 4, 4, 32, 32)),
        ((8, 8, 4, 4, 32), (8, 8, 4, 4, 32), (8, 8, 4, 4, 16), (8, 8, 4, 4, 16)),
    ),
    "NRM": (((1, 256, 256),), ((), (), (), ())),
    "SFM": (((256, 256),), ((256,), (512,), (1024,), (2048,))),
    "CBR": (
        ((1, 224, 224, 3), (7, 7, 3, 64), (64,), (64,), (64,)),
        ((112, 112, 64), (28, 28, 128), (14, 14, 256), (7, 7, 512)),
    ),
    "TBG": (((1, 128, 12, 64),) * 2, HEADS),
    "TBS": (((1, 128, 12, 64),) * 2, HEADS),
}
OPEVO: Mapping[str, tuple[Shape, ...]] = {
    "OPE.0": ((512, 1024), (1024, 1024), (512, 1024)),
    "OPE.1": ((512, 1024), (1024, 4096), (512, 4096)),
    "OPE.2": ((512, 4096), (4096, 1024), (512, 1024)),
    "OPE.3": ((960, 128, 128), (960, 128, 64), (960, 128, 64)),
    "OPE.4": ((960, 128, 128), (960, 128, 64), (960, 128, 64)),
    "OPE.5": ((960, 128, 64), (960, 128, 64), (960, 128, 128)),
    "OPE.6": ((512, 3, 227, 227), (64, 3, 11, 11), (512, 64, 55, 55)),
    "OPE.7": ((512, 64, 27, 27), (192, 64, 5, 5), (512, 192, 27, 27)),
}
FURTHER = {
    "T2D stride 3": partial(transposed_convolution, "x", 1, 4, 3, 4, 8, 6, 3, 2),
    "T2D wide margin": partial(transposed_convolution, "x", 1, 5, 6, 4, 8, 4, 2, 2),
    "T2D no margin": partial(transposed_convolution, "x", 1, 3, 3, 4, 8, 2, 2, 0),
    "product": partial(product, "x", 3, 8, 6, 10),
    "product of A turned": partial(product, "x", 3, 8, 6, 10, "A"),
    "product of B turned": partial(product, "x", 3, 8, 6, 10, "B"),
    "channels first": partial(convolution_nchw, "x", 2, 3, 9, 8, 3, 2, 1),
    "channels first, no margin": partial(convolution_nchw, "x", 2, 3, 9, 8, 5, 4, 0),
    **{name: partial(FAMILIES[name], name, 2, shape) for name, shape in SMALL_SUITE.items()},
}


def shapes(workload: Workload) -> list[Shape]:
    return [tuple(int(size) for size in tensor.shape) for tensor in workload.tensors]


@pytest.mark.parametrize("name", FURTHER)
def test_small_members_agree_with_numpy(name: str) -> None:
    workload = FURTHER[name]()
    inputs = workload.inputs(np.random.default_rng(0))
    expected = workload.reference(*inputs)
    out = tvm.runtime.tensor(np.full(shapes(workload)[-1], np.nan, dtype=np.float32))
    assert expected.shape == out.shape
    assert expected.dtype == np.float32
    module = tvm.IRModule({"main": workload.func.with_attr("global_symbol", "main")})
    tvm.compile(module, "llvm")["main"](*[tvm.runtime.tensor(x) for x in inputs], out)
    assert np.abs(out.numpy() - expected).max() <= 1e-5 * np.abs(expected).max()


@pytest.mark.parametrize("family", PUBLISHED)
def test_shapes_are_the_published_ones(family: str) -> None:
    inputs, outputs = PUBLISHED[family]
    assert shapes(suite_workload(f"{family}.0"))[:-1] == list(inputs)
    for batch in (1, 16):
        for i, out in enumerate(outputs):
            found = shapes(suite_workload(f"{family}.{i}", batch))[-1]
            if family == "SFM":
                assert found == (batch * out[0], out[0])
            else:
                assert found == (batch, *out)


@pytest.mark.parametrize("name", OPEVO)
def test_opevo_has_its_own_shapes(name: str) -> None:
    assert shapes(suite_workload(name)) == list(OPEVO[name])


def test_the_suite_is_fourteen_families_of_four_and_eight() -> None:
    assert set(PUBLISHED) == set(SHAPES) == set(FAMILIES) == set(SMALL_SUITE)
    assert len(suite()) == 14 * 4 + 8
    assert suite(16) == suite()[:-8]
    assert suite()[-8:] == tuple(OPEVO)


@pytest.mark.parametrize("batch", [1, 16])
def test_every_member_has_sketches(batch: int) -> None:
    for name in suite(batch):
        workload = suite_workload(name, batch)
        dag = read_dag(workload.func)
        assert workload.name == name
        assert workload.flops == dag.flops
        assert generate(dag, HARDWARE, CPU_RULES, SketchConfig())


@pytest.mark.parametrize(
    ("name", "operations"),
    [
        ("C2D.2", 2 * 14 * 14 * 256 * 9 * 256),
        ("GMM.3", 2 * 1024**3),
        ("GRP.3", 2 * 7 * 7 * 512 * 9 * 128),
        ("T2D.0", 2 * 4 * 4 * 512 * 256 * 16),  # none spent on zeros
        ("NRM.0", 2 * 256 * 256 + 1),
    ],
)
def test_operations_are_counted(name: str, operations: int) -> None:
    assert suite_workload(name).flops == operations


@pytest.mark.parametrize("name", ["C2D.4", "C2D", "XYZ.0", "", "OPE.8", "C2D.2.0"])
def test_unknown_members_are_refused(name: str) -> None:
    with pytest.raises(ArgumentError, match=r"name a family of C1D, C2D, .* as in C2D\.2"):
        suite_workload(name)


def test_opevo_has_no_other_batch() -> None:
    with pytest.raises(ArgumentError, match=r"name='OPE\.0'"):
        suite_workload("OPE.0", 16)


@pytest.mark.parametrize("batch", [0, -1, "1"])
def test_a_batch_is_a_positive_integer(batch: int) -> None:
    with pytest.raises(ArgumentError, match=r"batch=.*at least 1"):
        suite(batch)


@pytest.mark.parametrize(("kernel", "stride", "padding"), [(3, 2, 1), (4, 2, 4)])
def test_a_transposed_kernel_must_suit_its_stride(kernel: int, stride: int, padding: int) -> None:
    with pytest.raises(ArgumentError, match=f"kernel={kernel}"):
        transposed_convolution("x", 1, 8, 8, 4, 8, kernel, stride, padding)
