"""Backends are found by the kind of a target, and imported by their homes."""

from __future__ import annotations

from typing import Any

import pytest
from tvm.target import Target

from ansor.errors import UnsupportedError
from ansor.targets.backend import Backend
from ansor.targets.cpu.backend import CPU
from ansor.targets.cuda.backend import CUDA
from ansor.targets.registry import backend_of, host_text, load_backend

HASWELL = '{"kind":"llvm","mcpu":"haswell"}'
HOPPER = '{"arch":"sm_90","kind":"cuda"}'


@pytest.mark.parametrize(("backend", "text"), [(CPU, HASWELL), (CUDA, HOPPER)])
def test_a_backend_is_found_by_kind_and_by_home(backend: Backend[Any], text: str) -> None:
    assert backend_of(text) is backend
    assert backend_of(Target(text)) is backend
    assert load_backend(backend.home) is backend


def test_a_kind_without_a_backend_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedError, match=r"'vulkan' cannot be tuned; give one of CPUs"):
        backend_of("vulkan")


def test_functions_on_the_host_have_a_target_of_a_cpu() -> None:
    assert host_text(HASWELL) == HASWELL
    assert host_text(HOPPER) == "llvm"
