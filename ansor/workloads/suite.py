"""Ansor's single operators and subgraphs by code, and the operators of OpEvo's study.

"C2D.2" is the third shape of the family C2D. Shapes are those of Ansor's evaluation; GRP.0, NRM.3
and SFM, which cannot be taken from there, are those of TVM's own test workloads. "OPE.0" to
"OPE.7" are OpEvo's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

from ansor.errors import ArgumentError
from ansor.workloads.attention import attention_scores
from ansor.workloads.capsule import capsule_convolution
from ansor.workloads.convolution import depthwise_conv2d
from ansor.workloads.convolution_nd import ConvolutionSizes, convolution, convolution_bn_relu
from ansor.workloads.matmul import batch_matmul
from ansor.workloads.normalise import softmax
from ansor.workloads.opevo import OPEVO, opevo
from ansor.workloads.reduction import norm
from ansor.workloads.transposed import transposed_convolution
from ansor.workloads.workload import Workload

Shape = tuple[int, ...]
_RESNET: tuple[Shape, ...] = (  # height, width, channels, filters, kernel, stride, padding
    (224, 224, 3, 64, 7, 2, 3),
    (56, 56, 64, 64, 1, 1, 0),
    (14, 14, 256, 256, 3, 1, 1),
    (7, 7, 512, 512, 3, 1, 1),
)
_HEADS: tuple[Shape, ...] = ((128, 12, 64), (128, 16, 64), (64, 12, 128), (128, 12, 128))

SHAPES: Mapping[str, tuple[Shape, ...]] = MappingProxyType(
    {
        # length, channels, filters, kernel, stride, padding
        "C1D": (
            (256, 64, 128, 3, 2, 1),
            (128, 128, 256, 1, 2, 0),
            (64, 256, 256, 5, 1, 2),
            (32, 512, 512, 3, 1, 1),
        ),
        "C2D": _RESNET,
        "C3D": tuple((16, *shape) for shape in _RESNET),
        # rows, columns, depth
        "GMM": ((128, 128, 128), (512, 32, 512), (512, 512, 512), (1024, 1024, 1024)),
        # ..., groups; three channels cannot be divided by four
        "GRP": ((56, 56, 64, 128, 3, 2, 1, 4), *((*shape, 4) for shape in _RESNET[1:])),
        "DIL": tuple((*shape, 2) for shape in _RESNET),  # ..., dilation
        # height, width, channels, kernel, stride, padding
        "DEP": (
            (112, 112, 32, 3, 1, 1),
            (112, 112, 64, 3, 2, 1),
            (14, 14, 512, 3, 2, 1),
            (7, 7, 1024, 3, 1, 1),
        ),
        "T2D": (
            (4, 4, 512, 256, 4, 2, 1),
            (8, 8, 256, 128, 4, 2, 1),
            (16, 16, 128, 64, 4, 2, 1),
            (32, 32, 64, 3, 4, 2, 1),
        ),
        # ..., capsule
        "CAP": (
            (16, 16, 32, 32, 3, 2, 1, 4),
            (8, 8, 32, 32, 3, 1, 1, 4),
            (16, 16, 8, 16, 3, 2, 1, 4),
            (8, 8, 16, 16, 3, 1, 1, 4),
        ),
        "NRM": ((256, 256), (512, 512), (1024, 1024), (4096, 1024)),
        "SFM": ((256, 256), (512, 512), (1024, 1024), (2048, 2048)),
        "CBR": (
            (224, 224, 3, 64, 7, 2, 3),
            (56, 56, 64, 128, 3, 2, 1),
            (28, 28, 128, 256, 1, 2, 0),
            (7, 7, 512, 512, 3, 1, 1),
        ),
        # length, heads, width
        "TBG": _HEADS,
        "TBS": _HEADS,
    }
)


def _conv(rank: int, batch: int, shape: Shape, dtype: str = "float32") -> ConvolutionSizes:
    channels, filters, kernel, stride, padding = shape[rank : rank + 5]
    sizes = batch, shape[:rank], channels, filters, kernel, stride, padding
    return ConvolutionSizes(*sizes, dtype=dtype)


def _grouped(name: str, batch: int, shape: Shape, dtype: str) -> Workload:
    return convolution(name, replace(_conv(2, batch, shape, dtype), groups=shape[-1]))


def _dilated(name: str, batch: int, shape: Shape, dtype: str) -> Workload:
    return convolution(name, replace(_conv(2, batch, shape, dtype), dilation=shape[-1]))


Maker = Callable[[str, int, Shape], Workload]  # of a name, a batch and a shape
TypedMaker = Callable[[str, int, Shape, str], Workload]  # of a dtype, too


def _in_float32(make: TypedMaker) -> Maker:
    return lambda name, batch, shape: make(name, batch, shape, "float32")


PRODUCTS: Mapping[str, TypedMaker] = MappingProxyType(
    {
        "C1D": lambda name, batch, s, dtype: convolution(name, _conv(1, batch, s, dtype)),
        "C2D": lambda name, batch, s, dtype: convolution(name, _conv(2, batch, s, dtype)),
        "C3D": lambda name, batch, s, dtype: convolution(name, _conv(3, batch, s, dtype)),
        "GMM": lambda name, batch, s, dtype: batch_matmul(batch, *s, dtype=dtype),
        "GRP": _grouped,
        "DIL": _dilated,
        "DEP": lambda name, batch, s, dtype: depthwise_conv2d(batch, *s, dtype=dtype),
    }
)
FAMILIES: Mapping[str, Maker] = MappingProxyType(
    {
        **{family: _in_float32(make) for family, make in PRODUCTS.items()},
        "T2D": lambda name, batch, s: transposed_convolution(name, batch, *s),
        "CAP": lambda name, batch, s: capsule_convolution(name, batch, *s),
        "NRM": lambda name, batch, s: norm(batch, *s),
        "SFM": lambda name, batch, s: softmax(batch * s[0], s[1]),
        "CBR": lambda name, batch, s: convolution_bn_relu(name, _conv(2, batch, s)),
        "TBG": lambda name, batch, s: attention_scores(name, batch, s[0], s[1], s[2]),
        "TBS": lambda name, batch, s: attention_scores(name, batch, s[0], s[1], s[2], True),
    }
)


def suite(batch: int = 1, dtype: str = "float32") -> tuple[str, ...]:
    """Names of all members that a dtype has; OpEvo's, which have a batch of their own, in float32
    with batch 1 only."""
    families = SHAPES if dtype == "float32" else PRODUCTS
    own = [f"{family}.{i}" for family in families for i in range(len(SHAPES[family]))]
    return (*own, *(OPEVO if _checked(batch) == 1 and dtype == "float32" else ()))


def suite_workload(name: str, batch: int = 1, dtype: str = "float32") -> Workload:
    """The member `name`, such as "C2D.2".

    Args:
        name: family and index.
        batch: images, matrices or sequences at once; SFM has `batch` times the rows.
        dtype: name of a precision, see `precision.py`: of the families in `PRODUCTS`.

    Raises:
        ArgumentError: no such member, a batch below one, or a dtype that the member lacks.
    """
    if name not in suite(batch):
        families = ", ".join((*SHAPES, *(("OPE",) if batch == 1 else ())))
        remedy = f"name a family of {families}, a point, and an index, as in C2D.2"
        raise ArgumentError("name", name, remedy)
    family, _, index = name.partition(".")
    if dtype != "float32" and family not in PRODUCTS:
        families = ", ".join(PRODUCTS)
        raise ArgumentError("dtype", dtype, f"{name} is of no family with dtypes: use {families}")
    if name in OPEVO:
        return opevo(name)
    shape = SHAPES[family][int(index)]
    made = (
        PRODUCTS[family](name, batch, shape, dtype)
        if family in PRODUCTS
        else FAMILIES[family](name, batch, shape)
    )
    return replace(made, name=name)


def _checked(batch: int) -> int:
    if not isinstance(batch, int) or batch < 1:
        raise ArgumentError("batch", batch, "must be an integer of at least 1")
    return batch
