"""Findings about Python and the packages."""

from __future__ import annotations

import importlib.metadata
import platform
import re
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from ansor.diagnosis.finding import Finding, State

_PIN = re.compile(r"^([A-Za-z0-9_.-]+)==([^;\s]+)$")  # a requirement without a condition
# Packages that some functions need, with their extras.
_OPTIONAL = MappingProxyType({"torch": "torch", "onnx": "onnx", "onnxruntime": "quantize"})
_SHOWN = ("numpy",)


def installed(package: str) -> str | None:
    """The version of a package; None if it is not installed."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def version_findings() -> Iterator[Finding]:
    """Python, the packages that must have one version, and optional packages."""
    yield Finding("Python", platform.python_version())
    required = importlib.metadata.requires("ansor") or []
    for package, wanted in pinned(required).items():
        yield required_finding(package, wanted, installed(package))
    for package in _SHOWN:
        yield Finding(package, installed(package) or "-")
    for package, extra in _OPTIONAL.items():
        yield optional_finding(package, extra, installed(package))


def pinned(requirements: Iterable[str]) -> Mapping[str, str]:
    """The packages that need one version, with it."""
    matches = (_PIN.match(each.replace(" ", "")) for each in requirements)
    return {match[1]: match[2] for match in matches if match is not None}


def required_finding(package: str, wanted: str, version: str | None) -> Finding:
    """A package that must have one version."""
    if version == wanted:
        return Finding(package, version)
    remedy = f"pip install '{package}=={wanted}'; other versions were not tested"
    return Finding(package, version or "not installed", State.WRONG, remedy)


def optional_finding(package: str, extra: str, version: str | None) -> Finding:
    """A package that some functions need."""
    if version is not None:
        return Finding(package, version)
    return Finding(package, "not installed", State.NOTE, f"pip install 'ansor[{extra}]' if needed")
