"""The constants of the draft stand on one page, and the draft uses each of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from types import ModuleType

import pytest

from ansor.targets.cpu.draft import constants as cpu
from ansor.targets.cuda.draft import constants as cuda

INSTANCES = [(cpu, "CORE"), (cpu, "COMPILER"), (cpu, "OVERLAP"), (cuda, "GPU")]


def modules(page: ModuleType) -> list[Path]:
    """The files of a draft beside its page of constants."""
    assert page.__file__ is not None
    return [
        file for file in sorted(Path(page.__file__).parent.glob("*.py")) if file.stem != "constants"
    ]


MODULES = [*modules(cpu), *modules(cuda)]


def nodes(file: Path) -> Iterator[ast.AST]:
    return ast.walk(ast.parse(file.read_text()))


def module_values(file: Path) -> Iterator[ast.expr]:
    """The values of the module's assignments, outside functions and classes."""
    for statement in ast.parse(file.read_text()).body:
        if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
            yield statement.value


def is_numeric(value: ast.expr) -> bool:
    """Whether an expression contains a number."""
    return any(
        isinstance(node, ast.Constant) and isinstance(node.value, int | float | complex)
        for node in ast.walk(value)
    )


@pytest.mark.parametrize(("page", "instance"), INSTANCES)
def test_every_constant_is_used(page: ModuleType, instance: str) -> None:
    used = {
        node.attr
        for file in modules(page)
        for node in nodes(file)
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == instance
    }
    assert used == {field.name for field in fields(getattr(page, instance))}


@pytest.mark.parametrize("file", MODULES, ids=lambda file: f"{file.parent.parent.name}-{file.stem}")
def test_numbers_stand_on_the_page_of_constants(file: Path) -> None:
    assert [ast.unparse(value) for value in module_values(file) if is_numeric(value)] == []


@pytest.mark.parametrize("text", ["8", "-0.5", "64 << 10", "(1, 2)", "np.float32(2)"])
def test_a_numeric_constant_is_noticed(text: str) -> None:
    assert is_numeric(ast.parse(text, mode="eval").body)
