"""A small residual network, imported, optimised and compiled once for all tests of the folder."""

from __future__ import annotations

import pytest
import tvm
from tvm import relax
from tvm.target import Target

from ansor.frontend import CompiledModel, ImportedModel, compile_model, optimize
from ansor.frontend.importers.from_relax import from_relax
from ansor.models import BuiltInModel, ResNetConfig, build_from_config

TINY = ResNetConfig(blocks=(1, 2), width=8, classes=10, image=32)


@pytest.fixture(scope="session")
def target() -> Target:
    return Target({"kind": "llvm"})


@pytest.fixture(scope="session")
def built() -> BuiltInModel:
    return build_from_config(TINY, "tiny", seed=1)


@pytest.fixture(scope="session")
def imported(built: BuiltInModel) -> ImportedModel:
    return from_relax(relax.transform.BindParams("forward", dict(built.params))(built.mod))


@pytest.fixture(scope="session")
def optimized(imported: ImportedModel, target: Target) -> tvm.IRModule:
    return optimize(imported.mod, target)


@pytest.fixture(scope="session")
def compiled(optimized: tvm.IRModule, target: Target) -> CompiledModel:
    return compile_model(optimized, target)
