"""The systems by name: their requirements and their loaders."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any

from ansor.compare.case import Case, input_rank
from ansor.compare.turns import Answer
from ansor.run.tuned.saved import load

PRECISION = "precision"  # key in the notes of a system
Network = Callable[..., Any]  # NumPy arrays in, the first output as a NumPy array out


@dataclass(frozen=True)
class System:
    """A system and its loader.

    Attributes:
        loader: "module:function" of ``(case) -> Network``.
        packages: that it needs.
        exported: whether it reads the ONNX file.
        ranks: numbers of dimensions that the input may have; any, if empty.
        devices: that it runs on here.
        on_gpu: "module:function" of ``(case) -> why it cannot run on this GPU``.
        precision: that it computes in; "" if that is the case's.
        own_precision: "module:function" of ``(case) -> precision``, if it chooses by itself.
    """

    loader: str
    packages: tuple[str, ...] = ()
    exported: bool = False
    ranks: tuple[int, ...] = ()
    devices: tuple[str, ...] = ("cpu", "cuda")
    on_gpu: str = ""
    precision: str = "float32"
    own_precision: str = ""

    @property
    def missing(self) -> tuple[str, ...]:
        """Packages that are not installed."""
        export = ("torch", "onnx", "onnxscript") if self.exported else ()
        return tuple(name for name in (*self.packages, *export) if find_spec(name) is None)

    def absence(self, case: Case) -> str:
        """The reason why it cannot run the case; nothing if it can."""
        if self.missing:
            return f"not installed: {', '.join(self.missing)}"
        if case.device not in self.devices:
            return f"not on {case.device}"
        rank = input_rank(case)
        if self.ranks and rank not in self.ranks:
            return f"not for inputs of {rank} dimensions"
        asked = self.on_gpu and case.device != "cpu"
        return str(_named(self.on_gpu)(case)) if asked else ""

    def told(self, case: Case) -> Answer:
        """Its notes beside latencies: its precision."""
        if self.own_precision:
            return {PRECISION: str(_named(self.own_precision)(case))}
        return {PRECISION: self.precision or case.precision}

    def load(self, case: Case) -> Network:
        """Makes the network ready to run."""
        function: Callable[[Case], Network] = _named(self.loader)
        return function(case)


def _named(text: str) -> Callable[[Case], Any]:
    """The function that "module:function" names."""
    module, _, name = text.partition(":")
    function: Callable[[Case], Any] = getattr(importlib.import_module(module), name)
    return function


_TORCH, _ONNX = "ansor.compare.torch_systems", "ansor.compare.onnx_systems"
_OPENVINO = "ansor.compare.openvino_system"
_EXPORTED_TO_OPENVINO = (("openvino",), True, (), ("cpu",))
SYSTEMS: Mapping[str, System] = MappingProxyType(
    {
        "ansor": System("ansor.compare.systems:tuned", precision=""),
        "untuned": System("ansor.compare.systems:untuned", precision=""),
        "torch": System(f"{_TORCH}:eager", ("torch",)),
        "torch_channels_last": System(f"{_TORCH}:channels_last", ("torch",), ranks=(4, 5)),
        "inductor": System(f"{_TORCH}:inductor", ("torch",)),
        "torch_bfloat16": System(
            f"{_TORCH}:eager_bfloat16", ("torch",), devices=("cpu",), precision="bfloat16"
        ),
        "torch_bfloat16_channels_last": System(
            f"{_TORCH}:channels_last_bfloat16",
            ("torch",),
            ranks=(4, 5),
            devices=("cpu",),
            precision="bfloat16",
        ),
        "inductor_bfloat16": System(
            f"{_TORCH}:inductor_bfloat16", ("torch",), devices=("cpu",), precision="bfloat16"
        ),
        "onnxruntime": System(
            f"{_ONNX}:onnx_runtime", ("onnxruntime",), True, on_gpu=f"{_ONNX}:absence"
        ),
        "onnxruntime_int8": System(
            f"{_ONNX}:onnx_runtime_int8",
            ("onnxruntime",),
            True,
            devices=("cpu",),
            precision="int8",
        ),
        "openvino": System(f"{_OPENVINO}:float32", *_EXPORTED_TO_OPENVINO),
        "openvino_bfloat16": System(
            f"{_OPENVINO}:bfloat16", *_EXPORTED_TO_OPENVINO, precision="bfloat16"
        ),
        "openvino_default": System(
            f"{_OPENVINO}:by_default",
            *_EXPORTED_TO_OPENVINO,
            own_precision=f"{_OPENVINO}:default_precision",
        ),
        "openvino_int8": System(f"{_OPENVINO}:int8", *_EXPORTED_TO_OPENVINO, precision="int8"),
    }
)
OWN = ("ansor", "untuned")
DEFAULT = "_default"  # ends the names of systems that choose their precision
_IN_BFLOAT16 = {
    "torch": ("torch_bfloat16", "torch_bfloat16_channels_last"),
    "inductor": ("inductor_bfloat16",),
    "onnxruntime": ("onnxruntime",),  # it has no kernels for CPUs in bfloat16
    "openvino": ("openvino_bfloat16", "openvino_default"),
}
# Systems for a peer's name, by the precision of our own network.
PEERS: Mapping[str, Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "float32": {
            "torch": ("torch", "torch_channels_last"),
            "inductor": ("inductor",),
            "onnxruntime": ("onnxruntime",),
            "openvino": ("openvino", "openvino_default"),
        },
        "bfloat16": _IN_BFLOAT16,
        "auto": _IN_BFLOAT16,
        "int8": {"onnxruntime": ("onnxruntime_int8",), "openvino": ("openvino_int8",)},
    }
)


def tuned(case: Case) -> Network:
    """The tuned network of this package."""
    return load(case.tuned, case.threads)


def untuned(case: Case) -> Network:
    """The network before tuning."""
    return load(case.untuned, case.threads)
