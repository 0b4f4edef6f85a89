"""The systems by name: what each needs, and how it makes a function of a network."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any

from ansor.compare.case import Case, input_rank
from ansor.run.tuned import load

Network = Callable[..., Any]  # NumPy arrays in, the first output as a NumPy array out


@dataclass(frozen=True)
class System:
    """How a system is loaded.

    Attributes:
        loader: "module:function" of ``(case) -> Network``.
        packages: that it needs.
        exported: whether it reads the ONNX file.
        ranks: numbers of dimensions that the input may have; any, if empty.
        devices: that it runs on here.
        on_gpu: "module:function" of ``(case) -> why it cannot run on a GPU after all``.
    """

    loader: str
    packages: tuple[str, ...] = ()
    exported: bool = False
    ranks: tuple[int, ...] = ()
    devices: tuple[str, ...] = ("cpu", "cuda")
    on_gpu: str = ""

    @property
    def missing(self) -> tuple[str, ...]:
        """Packages that are not installed."""
        export = ("torch", "onnx", "onnxscript") if self.exported else ()
        return tuple(name for name in (*self.packages, *export) if find_spec(name) is None)

    def absence(self, case: Case) -> str:
        """Why it cannot run the case; nothing, if it can."""
        if self.missing:
            return f"not installed: {', '.join(self.missing)}"
        if case.device not in self.devices:
            return f"not on {case.device}"
        rank = input_rank(case)
        if self.ranks and rank not in self.ranks:
            return f"not for inputs of {rank} dimensions"
        asked = self.on_gpu and case.device != "cpu"
        return str(_named(self.on_gpu)(case)) if asked else ""

    def load(self, case: Case) -> Network:
        """Makes the network ready to run."""
        function: Callable[[Case], Network] = _named(self.loader)
        return function(case)


def _named(text: str) -> Callable[[Case], Any]:
    """The function that "module:function" names."""
    module, _, name = text.partition(":")
    function: Callable[[Case], Any] = getattr(importlib.import_module(module), name)
    return function


SYSTEMS: Mapping[str, System] = MappingProxyType(
    {
        "ansor": System("ansor.compare.systems:tuned"),
        "untuned": System("ansor.compare.systems:untuned"),
        "torch": System("ansor.compare.torch_systems:eager", ("torch",)),
        "torch_channels_last": System(
            "ansor.compare.torch_systems:channels_last", ("torch",), ranks=(4, 5)
        ),
        "inductor": System("ansor.compare.torch_systems:inductor", ("torch",)),
        "onnxruntime": System(
            "ansor.compare.onnx_systems:onnx_runtime",
            ("onnxruntime",),
            True,
            on_gpu="ansor.compare.onnx_systems:absence",
        ),
        "openvino": System(
            "ansor.compare.openvino_system:openvino_runtime", ("openvino",), True, devices=("cpu",)
        ),
    }
)
OWN = ("ansor", "untuned")
PEERS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "torch": ("torch", "torch_channels_last"),
        "inductor": ("inductor",),
        "onnxruntime": ("onnxruntime",),
        "openvino": ("openvino",),
    }
)


def tuned(case: Case) -> Network:
    """What this package made."""
    return load(case.tuned, case.threads)


def untuned(case: Case) -> Network:
    """What it started from."""
    return load(case.untuned, case.threads)
