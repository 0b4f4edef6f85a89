"""Programs as files for other processes and machines."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm
from definitions import workload

from ansor.errors import LoweringError
from ansor.targets.build import ENTRY, lowered_function
from ansor.targets.library import deployable
from ansor.targets.target import resolve_target, target_text

ELF = b"\x7fELF"
RISCV = "llvm -mtriple=riscv64-unknown-linux-gnu -mcpu=generic-rv64"


def module_for(target: str) -> Any:
    return lowered_function(workload("matmul").func, target_text(resolve_target(target), 1))


@pytest.mark.skipif(platform.machine() != "x86_64", reason="links for x86-64")
@pytest.mark.parametrize("linker", [None, "g++"])
def test_a_library_computes_the_same(linker: str | None, tmp_path: Path) -> None:
    suffix, code = deployable(module_for("native"), linker)
    assert suffix == "so"
    path, found = tmp_path / "program.so", workload("matmul")
    path.write_bytes(code)
    arrays = found.inputs(np.random.default_rng(0))
    tensors = [tvm.runtime.tensor(a) for a in (*arrays, np.zeros((32, 48), np.float32))]
    tvm.runtime.load_module(str(path))[ENTRY](*tensors)
    np.testing.assert_allclose(tensors[-1].numpy(), found.reference(*arrays), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("target", "suffix"),
    [("llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72", "so"), (RISCV, "o")],
)
def test_code_of_other_processors(target: str, suffix: str) -> None:
    found, code = deployable(module_for(target))
    assert (found, code[:4]) == (suffix, ELF)


@pytest.mark.parametrize(
    ("linker", "message"), [("no-such-linker", "does not start"), ("false", "false failed")]
)
def test_a_linker_that_fails(linker: str, message: str) -> None:
    with pytest.raises(LoweringError, match=message):
        deployable(module_for("native"), linker)
